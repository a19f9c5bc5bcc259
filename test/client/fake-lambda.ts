import {
  Holdfast,
  type HoldfastEvent,
  type Operation,
  type Transport,
  unreachable,
} from '../../clients/typescript/src/index.ts';
import { ManualClock, MemoryService } from '../../clients/typescript/src/testing.ts';

/** What happens to a request: it is refused, its answer is lost, it lands but is never answered, or it lands after 300 ms. */
export type Fault = 'refused' | 'answer lost' | 'hangs' | 'late' | undefined;

interface Sent {
  operation: Operation;
  payload: Record<string, unknown>;
}

/** The end of an invocation. Lambda kills an invocation whose handler has not answered in time. */
export type Outcome = { value: unknown } | { error: unknown } | { killed: true };

type Handler<Event> = (event: Event, context: LambdaContext) => unknown;

/** A context as Lambda makes it, on the clock of a test. */
export interface LambdaContext {
  functionName: string;
  awsRequestId: string;
  getRemainingTimeInMillis(): number;
}

/** A Lambda function with a client of a service in memory, all on one clock that stands still between two invocations. */
export class FakeLambda {
  readonly clock = new ManualClock();
  readonly service = new MemoryService({ surroundings: this.clock });
  readonly sent: Sent[] = [];
  readonly events: HoldfastEvent[] = [];
  /** Decides about each request by its number, from 0. */
  faultOf: (at: number, operation: Operation) => Fault = () => undefined;
  readonly holdfast: Holdfast;

  constructor() {
    const options = { transport: this.#transport, surroundings: this.clock, holder: 'lambda' };
    this.holdfast = new Holdfast({ ...options, onEvent: (event) => this.events.push(event) });
  }

  readonly #transport: Transport = async (operation, payload, signal, ...more) => {
    const fault = this.faultOf(this.sent.length, operation);
    this.sent.push({ operation, payload: payload as Record<string, unknown> });
    if (fault === 'refused') throw unreachable('refused');
    if (fault === 'late') await this.sleep(300);
    const answer = await this.service.transport(operation, payload, signal, ...more);
    if (fault === 'answer lost') throw unreachable('lost');
    return fault === 'hangs' ? new Promise(() => {}) : answer;
  };

  /** The operations that were sent. */
  get operations(): Operation[] {
    return this.sent.map(({ operation }) => operation);
  }

  /** Runs a handler until it answers, or Lambda kills the invocation. Then the process is frozen: no timer fires any more. */
  async invoke<Event>(handler: Handler<Event>, event: Event, timeoutMs = 60_000): Promise<Outcome> {
    const { clock } = this;
    const endsAt = clock.monotonicMs + timeoutMs;
    const getRemainingTimeInMillis = () => endsAt - clock.monotonicMs;
    const context = { functionName: 'test', awsRequestId: clock.uuid(), getRemainingTimeInMillis };
    let outcome: Outcome | undefined;
    Promise.resolve(handler(event, context)).then(
      (value) => {
        outcome = { value };
      },
      (error: unknown) => {
        outcome = { error };
      },
    );
    await clock.advance(0);
    while (!outcome && clock.monotonicMs < endsAt) {
      const next = Math.min(endsAt, ...clock.timers.map(({ at }) => at));
      await clock.advance(Math.max(0, next - clock.monotonicMs));
    }
    return outcome ?? { killed: true };
  }

  /** Whether this function has the key, by what the service says. */
  async holds(key: string): Promise<boolean> {
    const { state, holder } = (await this.service.transport('readLeases', { key }, new AbortController().signal)) as {
      state: string;
      holder: string | null;
    };
    return state === 'held' && holder === 'lambda';
  }

  /** A promise that resolves after some time of the clock. */
  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.clock.after(ms, resolve));
  }
}

/** Work that ends when the signal aborts, with its reason. */
export const untilAborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
