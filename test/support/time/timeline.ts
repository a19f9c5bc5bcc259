import type { Clock } from '../../../shared/surroundings/clock.ts';

/**
 * A clock for several actors at once. Time stands still while an actor works, and jumps to the next moment when all of them sleep.
 * So waiting does not take real time, and the actors continue in the right order.
 */
export class Timeline implements Clock {
  #now: number;
  #awake = 0;
  readonly #sleepers: { at: number; resume: () => void }[] = [];

  constructor(now = Date.parse('2026-01-01T00:00:00.123Z')) {
    this.#now = now;
  }

  now = (): number => this.#now;

  /** Lets `ms` pass while an actor works, as during a slow request. */
  advance(ms: number): void {
    this.#now += ms;
  }

  sleep = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      const sleeper = { at: this.#now + Math.max(0, ms), resume: resolve };
      const later = this.#sleepers.findIndex(({ at }) => at > sleeper.at);
      this.#sleepers.splice(later < 0 ? this.#sleepers.length : later, 0, sleeper);
      this.#awake--;
      this.#goOn();
    });

  /** Acts after that time. */
  later = async <Result>(ms: number, act: () => Promise<Result>): Promise<Result> => {
    await this.sleep(ms);
    return act();
  };

  /** Plays all actors to their ends. */
  async play<Results extends unknown[]>(
    ...actors: { [Index in keyof Results]: () => Promise<Results[Index]> }
  ): Promise<Results> {
    this.#awake += actors.length;
    const playing = actors.map((act) =>
      act().finally(() => {
        this.#awake--;
        this.#goOn();
      }),
    );
    return (await Promise.all(playing)) as Results;
  }

  #goOn(): void {
    if (this.#awake > 0) return;
    const next = this.#sleepers.shift();
    if (!next) return;
    this.#now = Math.max(this.#now, next.at);
    this.#awake++;
    next.resume();
  }
}
