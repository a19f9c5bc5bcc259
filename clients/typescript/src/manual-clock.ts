import type { Surroundings } from './surroundings.ts';

interface Timer {
  at: number;
  act: () => void;
  idle: boolean;
}

/**
 * The clock of a unit test, which the test advances, so that an hour of waiting takes no time. It also has the timers and random numbers of the client. All
 * clients and services of a test share one clock.
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
  /** The timers that have not fired yet. */
  timers: Timer[] = [];
  /** Returns each random number. Replace it to test other delays. */
  chance = () => 0.5;
  #ids = 0;

  wall = () => this.wallMs;
  monotonic = () => this.monotonicMs;
  random = () => this.chance();
  uuid = () => `id-${++this.#ids}`;

  after = (ms: number, act: () => void, idle = false) => {
    // Timers of a process fire at whole milliseconds. Fractions would let a timer fire just before the moment that a test advances to.
    const timer = { at: this.monotonicMs + Math.ceil(ms), act, idle };
    this.timers.push(timer);
    return () => {
      this.timers = this.timers.filter((one) => one !== timer);
    };
  };

  /**
   * Advances the time: timers fire, and the work that they start runs until it waits for more time.
   * @throws RangeError if `ms` is not a finite number
   */
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

  /** Advances the time without firing timers, as if the event loop were blocked or the process paused. */
  block(ms: number): void {
    this.wallMs += ms;
    this.monotonicMs += ms;
  }

  /** Advances only the wall clock, as if the machine were asleep, when the monotonic clock of Linux stops. */
  suspend(ms: number): void {
    this.wallMs += ms;
  }
}

/** Runs `act` after all work that is ready now. Browsers have no `setImmediate`. */
const soon: (act: () => void) => unknown =
  (globalThis as { setImmediate?: typeof setImmediate }).setImmediate ?? setTimeout;

/** Waits until all work that does not wait for a timer is done. */
export async function settled(): Promise<void> {
  for (let turns = 0; turns < 3; turns++) await new Promise<void>((resolve) => soon(resolve));
}
