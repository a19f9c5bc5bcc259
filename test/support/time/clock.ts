import type { Surroundings } from '../../../client/src/index.ts';
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

interface Timer {
  at: number;
  act: () => void;
}

/**
 * One clock for clients and for the service that they call in the same process. Time stands still while a request to an emulator is under way or code
 * runs, and otherwise goes on to the next timer. So a busy machine makes no client late.
 */
class IdleTime implements Clock, Surroundings {
  readonly #random: () => number;
  #now = Date.parse('2026-01-01T00:00:00Z');
  #underWay = 0;
  #isWatching = false;
  #ids = 0;
  #timers: Timer[] = [];

  constructor(random: () => number) {
    this.#random = random;
  }

  now = (): number => this.#now;
  wall = (): number => this.#now;
  monotonic = (): number => this.#now;
  random = (): number => this.#random();
  uuid = (): string => `00000000-0000-4000-8000-${String(++this.#ids).padStart(12, '0')}`;

  after = (ms: number, act: () => void): (() => void) => {
    const timer = { at: this.#now + Math.max(0, Math.ceil(ms)), act };
    const later = this.#timers.findIndex(({ at }) => at > timer.at);
    this.#timers.splice(later < 0 ? this.#timers.length : later, 0, timer);
    this.#watch();
    return () => {
      this.#timers = this.#timers.filter((one) => one !== timer);
    };
  };

  sleep = (ms: number): Promise<void> => new Promise((resolve) => void this.after(ms, resolve));

  /** Lets time stand still until the promise has settled. */
  async during<T>(request: Promise<T>): Promise<T> {
    this.#underWay++;
    try {
      return await request;
    } finally {
      this.#underWay--;
      this.#watch();
    }
  }

  /** Not at once: what becomes of a promise that was just kept shows only after the microtasks. */
  #watch(): void {
    if (this.#isWatching) return;
    this.#isWatching = true;
    setImmediate(() => {
      this.#isWatching = false;
      if (this.#underWay > 0) return;
      const next = this.#timers.shift();
      if (!next) return;
      this.#now = next.at;
      next.act();
      this.#watch();
    });
  }
}
