import type { Clock } from '../surroundings/clock.ts';

/** Keeps all segments together under a rate. */
export interface Pacer {
  /** How many milliseconds to wait until the rate allows what was spent before. */
  dueInMs(): number;
  spend(units: number): void;
}

/** @param unitsPerSecond the rate. 0 means no limit */
export function pacer(clock: Clock, unitsPerSecond: number): Pacer {
  let paidAt = clock.now();
  return {
    dueInMs: () => Math.max(0, paidAt - clock.now()),
    spend: (units) => {
      if (unitsPerSecond > 0) paidAt = Math.max(paidAt, clock.now()) + (units / unitsPerSecond) * 1000;
    },
  };
}
