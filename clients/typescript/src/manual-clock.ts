import type { Surroundings } from './surroundings.ts';

interface Timer {
  at: number;
  act: () => void;
  idle: boolean;
}

/**
 * The clocks, timers and random numbers of a client in a unit test. The test advances the time. All clients of a test share one clock.
 * @example
 * const clock = new ManualClock();
 * const service = new MemoryService({ surroundings: clock });
 * const holdfast = new Holdfast({ transport: service.transport, surroundings: clock, holder: 'test' });
 * await clock.advance(60_000);
 */
export class ManualClock implements Surroundings {
  /** The wall clock, in epoch milliseconds. */
  wallMs = Date.parse('2026-01-01T00:00:00Z');
  monotonicMs = 1000;
  /** The timers that have not fired. */
  timers: Timer[] = [];
  /** The next random number. */
  chance = () => 0.5;
  #ids = 0;

  wall = () => this.wallMs;
  monotonic = () => this.monotonicMs;
  random = () => this.chance();
  uuid = () => `id-${++this.#ids}`;

  after = (ms: number, act: () => void, idle = false) => {
    // Whole milliseconds, as in a process: fractions would add up to a moment just before or after the one that is meant.
    const timer = { at: this.monotonicMs + Math.ceil(ms), act, idle };
    this.timers.push(timer);
    return () => {
      this.timers = this.timers.filter((one) => one !== timer);
    };
  };

  /** Advances the time of a running process: timers fire, and the work that they start runs until it needs more time. @throws RangeError if `ms` is no finite number */
  async advance(ms: number): Promise<void> {
    if (!Number.isFinite(ms)) throw new RangeError('ms must be a finite number');
    await settled();
    const until = this.monotonicMs + ms;
    for (;;) {
      const next = this.timers.filter(({ at }) => at <= until).sort((left, right) => left.at - right.at)[0];
      if (!next) break;
      this.timers = this.timers.filter((one) => one !== next);
      this.block(Math.max(0, next.at - this.monotonicMs));
      next.act();
      await settled();
    }
    this.block(Math.max(0, until - this.monotonicMs));
    await settled();
  }

  /** Advances the time while the event loop is blocked, or the process is paused: no timer fires. */
  block(ms: number): void {
    this.wallMs += ms;
    this.monotonicMs += ms;
  }

  /** Advances the wall clock while the machine sleeps. The monotonic clock stops. */
  suspend(ms: number): void {
    this.wallMs += ms;
  }
}

/** Browsers have no `setImmediate`. */
const soon: (act: () => void) => unknown =
  (globalThis as { setImmediate?: typeof setImmediate }).setImmediate ?? setTimeout;

/** Waits until all work that needs no time is done. */
export async function settled(): Promise<void> {
  for (let turns = 0; turns < 3; turns++) await new Promise<void>((resolve) => soon(resolve));
}
