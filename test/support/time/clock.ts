import type { Clock } from '../../../shared/surroundings/clock.ts';

/**
 * A clock that moves only when a test moves it, or code sleeps on it. A sleep ends at once: the time has then gone by, and everything planned
 * for that time has happened.
 */
export class ManualClock implements Clock {
  #now: number;
  #plans: { at: number; what: () => unknown }[] = [];

  constructor(now = Date.parse('2026-01-01T00:00:00.123Z')) {
    this.#now = now;
  }

  now = (): number => this.#now;

  /** A negative number steps back. */
  advance(ms: number): void {
    this.#now += ms;
  }

  set(epochMs: number): void {
    this.#now = epochMs;
  }

  /** Plans something for the moment when a sleep reaches `epochMs`. */
  at(epochMs: number, what: () => unknown): void {
    this.#plans.push({ at: epochMs, what });
    this.#plans.sort((a, b) => a.at - b.at);
  }

  sleep = async (ms: number): Promise<void> => {
    const until = this.#now + ms;
    for (let next = this.#plans[0]; next && next.at <= until; next = this.#plans[0]) {
      this.#plans.shift();
      this.#now = Math.max(this.#now, next.at);
      await next.what();
    }
    this.#now = Math.max(this.#now, until);
  };
}
