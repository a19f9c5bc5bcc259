import {
  type AcquireOptions,
  Holdfast,
  HoldfastError,
  isHoldfastError,
} from '../../../clients/typescript/src/index.ts';
import { ManualClock, settled } from '../../../clients/typescript/src/manual-clock.ts';
import type { Call, Movement, Player, Report } from './player.ts';
import type { Fields, Json, Outcome, Step } from './row.ts';

/** The client loads these at their first use. The clock of a test does not wait for that, so load them now. */
await Promise.all([
  import('../../../clients/typescript/src/once.ts'),
  import('../../../clients/typescript/src/rate.ts'),
]);

/** What the work holds: a lease, a run of `once`, or a start. */
type Held = Record<string, unknown> & {
  release?(): Promise<boolean>;
  settle?(units: Record<string, number>): Promise<boolean>;
  assertHeld?(): void;
};

/** Plays rows with the TypeScript client, in this process. */
export class TypeScriptPlayer implements Player {
  reports: Report[] = [];
  #clock = new ManualClock();
  #controller = new AbortController();
  #open = 0;
  /** The steps that the work has not taken yet, and the function that signals a new one. */
  #steps: [Step, number][] = [];
  #signalStep = () => {};

  async begin({ call, key, options, client, endpoint, random = 0.5, waits }: Call): Promise<void> {
    this.reports = [];
    this.#steps = [];
    this.#clock = new ManualClock();
    this.#clock.chance = () => random;
    this.#controller = new AbortController();
    this.#open = 0;
    const holdfast = new Holdfast({
      ...{ ...client, endpoint, holder: 'tester', surroundings: this.#clock, fetch: this.#fetch },
      onEvent: (event) => this.reports.push({ event: JSON.parse(JSON.stringify(event)) }),
    });
    const { waitMs, ...rest } = options;
    const given = { ...rest, ...(waitMs !== undefined && { waitMs: waitMs === 'forever' ? Infinity : waitMs }) };
    const own = { ...given, signal: this.#controller.signal } as AcquireOptions;
    const work = (held: object) => (waits ? this.#work(held as Held) : 'done');
    const calling =
      call === 'lease'
        ? holdfast.withLease(key, own, work)
        : call === 'once'
          ? holdfast.once(key, own as object, work)
          : holdfast
              .rate(key, own as never)
              .then((start) => (waits ? this.#work(start as unknown as Held) : ({ ...start } as object)));
    calling.then(
      (value) => this.#report({ returns: plain(value) }),
      (error) =>
        this.#report(this.#controller.signal.aborted && error === 'cancelled' ? { cancelled: true } : failed(error)),
    );
  }

  #report(outcome: Outcome): void {
    this.reports.push({ outcome });
  }

  #fetch: typeof fetch = async (...args) => {
    this.#open++;
    try {
      const response = await fetch(...args);
      const text = await response.text();
      return new Response(text, { status: response.status, headers: response.headers });
    } finally {
      this.#open--;
    }
  };

  async #work(held: Held): Promise<Json> {
    for (;;) {
      while (this.#steps.length === 0)
        await new Promise<void>((resolve) => {
          this.#signalStep = resolve;
        });
      const [step, index] = this.#steps.shift() as [Step, number];
      if (step.do === 'return') return step.value ?? 'done';
      if (step.do === 'fail') throw new Error('the work failed');
      if (step.do === 'check') held.assertHeld?.();
      else this.reports.push({ step: index, gave: await gives(held, step) });
    }
  }

  async act(step: Step, index: number): Promise<void> {
    if (step.do === 'cancel') return this.#controller.abort('cancelled');
    this.#steps.push([step, index]);
    this.#signalStep();
  }

  async move(ms: number, how: Movement): Promise<void> {
    if (how === 'runs') await this.#clock.advance(ms);
    else if (how === 'paused') this.#clock.block(ms);
    else this.#clock.suspend(ms);
  }

  async isIdle(open: number): Promise<boolean> {
    await settled();
    return this.#open === open;
  }

  async nextMs(): Promise<number> {
    return Math.min(...this.#clock.timers.map(({ at }) => at - this.#clock.monotonicMs));
  }

  async end(): Promise<void> {
    this.#clock.timers = [];
  }
}

const SHOWN = [
  'key',
  'holder',
  'fence',
  'mode',
  'limit',
  'weight',
  'used',
  'limitChanged',
  'held',
  'remainingMs',
  'slot',
];

async function gives(held: Held, step: Step): Promise<Json> {
  if (step.do === 'release') return (await held.release?.()) ?? null;
  if (step.do === 'settle') return (await held.settle?.(step.units as Record<string, number>)) ?? null;
  const { lost, previous } = held;
  const reason = isHoldfastError(lost, 'LeaseLost') ? lost.reason : null;
  const shown = Object.fromEntries(SHOWN.map((name) => [name, held[name]]));
  return plain({ ...shown, previous, lost: reason, text: String(lost ?? '') }) ?? null;
}

/** A copy by JSON, which undefined values do not survive. */
const plain = (value: unknown): Json => (value === undefined ? null : JSON.parse(JSON.stringify(value)));

function failed(error: unknown): Outcome {
  const { message, stack } = error as Error;
  const fields = error instanceof HoldfastError ? { ...error } : {};
  const { cause: _cause, ...shown } = fields as Fields;
  return { error: { ...(plain(shown) as Fields), message: `${message}`, text: `${stack}` } };
}
