import type { Clock } from '../surroundings/clock.ts';

/** Keeps all segments together under a rate: each waits until the rate allows what was read before. */
export interface Pacer {
  /** Milliseconds to wait before the next page. */
  dueInMs(): number;
  spend(units: number): void;
}

/** @param unitsPerSecond 0 for no limit */
export function pacer(clock: Clock, unitsPerSecond: number): Pacer {
  let paidAt = clock.now();
  return {
    dueInMs: () => Math.max(0, paidAt - clock.now()),
    spend: (units) => {
      if (unitsPerSecond > 0) paidAt = Math.max(paidAt, clock.now()) + (units / unitsPerSecond) * 1000;
    },
  };
}
