import { HoldfastError, type Surroundings, type Transport } from '../../../client/src/index.ts';

interface Timer {
  at: number;
  act: () => void;
  idle: boolean;
}

/** Two clocks and the timers of a process, which a test moves by hand. Timers follow the monotonic clock, as on Linux. */
export class ManualSurroundings implements Surroundings {
  wallMs = Date.parse('2026-01-01T00:00:00Z');
  monotonicMs = 1000;
  timers: Timer[] = [];
  chance = () => 0.5;
  #ids = 0;

  wall = () => this.wallMs;
  monotonic = () => this.monotonicMs;
  random = () => this.chance();
  uuid = () => `id-${++this.#ids}`;

  after = (ms: number, act: () => void, idle = false) => {
    const timer = { at: this.monotonicMs + ms, act, idle };
    this.timers.push(timer);
    return () => {
      this.timers = this.timers.filter((one) => one !== timer);
    };
  };

  /** Lets time go by in a process that runs: timers fire, and what they began goes as far as it can. */
  async advance(ms: number): Promise<void> {
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

  /** Lets time go by while the event loop is blocked, or the process is stopped. */
  block(ms: number): void {
    this.wallMs += ms;
    this.monotonicMs += ms;
  }

  /** Lets the machine sleep: the monotonic clock stands still. */
  suspend(ms: number): void {
    this.wallMs += ms;
  }
}

/** Waits until everything is done that needs no time. */
export async function settled(): Promise<void> {
  for (let turns = 0; turns < 3; turns++) await new Promise(setImmediate);
}

export interface Sent {
  operation: string;
  payload: Record<string, unknown>;
  signal: AbortSignal;
  answer(body: object): void;
  fail(code: string, fields?: object): void;
}

/** A service whose answers the test gives by hand. `reply` answers the calls for which it returns something. */
export class ManualService {
  sent: Sent[] = [];
  reply: (sent: Sent) => unknown = () => undefined;

  transport: Transport = (operation, payload, signal) =>
    new Promise((resolve, reject) => {
      const sent: Sent = {
        operation,
        payload: payload as Record<string, unknown>,
        signal,
        answer: resolve,
        fail: (code, fields) => reject(new HoldfastError({ code, detail: `${operation} failed`, ...fields })),
      };
      this.sent.push(sent);
      const answer = this.reply(sent);
      if (answer) resolve(answer);
    });

  of(operation: string): Sent[] {
    return this.sent.filter((one) => one.operation === operation);
  }
}

/** The answer of the service to acquire and heartbeat. */
export const grantOf = (payload: Record<string, unknown>, remainingMs = 60_000) => ({
  key: payload.key as string,
  holder: (payload.holder as string) ?? 'tester',
  leaseId: 'lease-1',
  version: 'version-1',
  fence: 7,
  acquiredAt: '2026-01-01T00:00:00.000Z',
  expiresAt: '2026-01-01T00:01:00.000Z',
  remainingMs,
  waitedMs: 0,
  repeated: false,
  previous: null,
});
