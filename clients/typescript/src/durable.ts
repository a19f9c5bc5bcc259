import { mostWaitSeconds } from '../../../shared/rates/charge.ts';
import type { PermitOptions } from './acquire.ts';
import { isTransient } from './attempt.ts';
import { invalidRequest } from './errors.ts';
import { type Holdfast, HoldfastError, isHoldfastError, type RateTerms, unreachable } from './index.ts';
import { inOrder } from './several.ts';
import type { RequestOf } from './transport.ts';

/** The part of the context of `@aws/durable-execution-sdk-js` that the helpers use. */
export interface DurableContext {
  executionContext: { readonly durableExecutionArn: string };
  logger: { warn(...message: unknown[]): void };
  createCallback(name: string, config: CallbackConfig): PromiseLike<[result: PromiseLike<string>, callbackId: string]>;
  step<T>(name: string, run: () => Promise<T>): PromiseLike<T>;
  wait(name: string, duration: { seconds: number }): PromiseLike<void>;
}

interface CallbackConfig {
  timeout: { seconds: number };
  serdes: { deserialize(text: string | undefined): Promise<string | undefined> };
}

/** How a durable function waits for a lease or a permit, and how long the function holds the lease. */
export type DurableLeaseOptions = PermitOptions & {
  /** How long to wait in line, in seconds; the default is 3600, and the most is a week. The execution is suspended for that time. */
  parkSeconds?: number | undefined;
  /**
   * Latest wins: older requests of the key that said `replace` and still wait fail with Superseded. With `running`, a holder that said `running` is asked to
   * stop too: an execution learns that by `lease.check()`. Not for permits.
   */
  replace?: 'waiting' | 'running' | undefined;
  /** Who holds the lease, shown to others. The default is the holder of the client with the name of the execution, such as `billing/order-42`. */
  holder?: string | undefined;
  /** Any JSON up to 4 KiB, shown to others. */
  data?: unknown;
  /**
   * How long the lease stays after the execution was stopped or timed out, in whole seconds up to 900, because the code may still run. The default is
   * 900, the longest timeout of a Lambda function. Lower it to the timeout of your function, not to less.
   */
  graceSeconds?: number | undefined;
  /** The lease lasts until the release or the end of the execution. The default is true, unless `ttlSeconds` is given. */
  bound?: boolean | undefined;
  /**
   * An expiry in place of `bound`, in seconds. The whole body, with all suspensions, must end before: no call extends the lease. The default is 60 if
   * `bound` is false. Not with `bound: true`.
   */
  ttlSeconds?: number | undefined;
};

/** One of several leases or permits, with the options that override the common options. */
export type DurableLeaseEntry = DurableLeaseOptions & { key: string };

/** A lease or a permit of a durable execution. */
export interface DurableLease {
  readonly key: string;
  /** The fencing token, the same in every replay. */
  readonly fence: number;
  /**
   * Asks the service in a step whether the lease is still held, and extends a lease with an expiry. The role needs the call `heartbeat`.
   * @throws HoldfastError LeaseLost, with the reason `superseded` or `broken` if the body is asked to stop; Throttled, Unavailable, OutcomeUnknown and
   * Unreachable after four retries
   */
  check(): Promise<void>;
}

/** Several leases or permits of a durable execution. */
export interface DurableLeases {
  /** The leases, in the order of the entries. */
  readonly leases: readonly DurableLease[];
  /** The fencing token of each key. */
  readonly fences: Readonly<Record<string, number>>;
}

/** How a durable function waits for a start, and what it takes of one rate or several. */
export type DurableRateOptions = RateTerms & {
  /** How late the start may be, in seconds; the default is 3600, and the most is a week, with `settle` the longest period. The execution is suspended. */
  waitSeconds?: number | undefined;
  /** True to report the units that the work really took by `settle`. */
  settle?: boolean | undefined;
  /** Who reserves, shown to others. The default is the holder of the client with the name of the execution. */
  holder?: string | undefined;
};

/** A reserved start whose moment has come. */
export interface DurableStart {
  /** The earliest start, by the clock of the service, the same in every replay. ISO 8601. */
  readonly startAt: string;
  /**
   * Reports the units that the work really took, by the name of the rate, in a step. Needs the option `settle`.
   * @returns false if the estimates stand
   * @throws HoldfastError InvalidRequest
   */
  settle(units: Readonly<Record<string, number>>): Promise<boolean>;
}

/** In seconds: two minutes, within which the service ends a wait after `parkSeconds`, and two minutes for the retries of the request. */
const MARGIN_SECONDS = 240;

/** How often a request is sent again after a transient error. The execution is suspended before each retry. */
const RETRIES = 4;

/** How long one step repeats its request, in milliseconds. */
const STEP_MS = 5000;

/** The fields of an error, as the result of a step. A replay keeps them all, but only the message of an error that a step throws. */
type Problem = ConstructorParameters<typeof HoldfastError>[0];

/**
 * Runs the body under a lease or a permit. The execution is suspended while it waits in line, and holds the lease over the suspensions of the body. The
 * lease is released after the body, and at the latest `graceSeconds` after the end of the execution.
 *
 * The body runs again in each replay, as all code outside steps does. Put effects into steps.
 * @param ctx the context of `withDurableExecution`, or of a branch of `ctx.parallel`
 * @throws what the body throws; HoldfastError LeaseHeld after `parkSeconds`, Superseded, QueueFull, and the other errors of `acquire`; Unreachable if
 * the callback has no answer four minutes after `parkSeconds`
 * @example
 * export const handler = withDurableExecution(async (event, ctx) =>
 *   withLease(ctx, holdfast, `tenant/${event.tenant}`, { limit: 5 }, async ({ fence }) => {
 *     await ctx.step('charge', () => charge(event, { fence }));
 *     await ctx.wait({ hours: 2 });
 *     return ctx.step('report', () => report(event));
 *   }),
 * );
 */
export async function withLease<T>(
  ctx: DurableContext,
  holdfast: Holdfast,
  key: string,
  ...[options, body]: [options: DurableLeaseOptions, body: (lease: DurableLease) => T | PromiseLike<T>]
): Promise<T> {
  const { leaseId, fence } = await acquired(ctx, holdfast, { key, ...options });
  const check = async () => {
    const beat = () => holdfast.heartbeat({ key, leaseId }, { timeoutMs: STEP_MS }).then(() => null);
    const checked = await inSteps(ctx, 'check', key, beat);
    if ('failure' in checked) throw checked.failure;
  };
  try {
    return await body({ key, fence, check });
  } finally {
    // The SDK never settles the promise of a suspended body, so this runs only when the body has ended.
    await released(ctx, holdfast, { key, leaseId });
  }
}

/**
 * Runs the body under several leases or permits, for example at most five of a tenant and twenty in total. The keys are acquired in the order of
 * `holdfast.withLeases`, and released in the reverse order. `parkSeconds` is for each key.
 * @throws HoldfastError InvalidRequest if two entries have one key; as `withLease`
 * @example
 * const entries = [{ key: `openai/${tenant}`, limit: 5 }, { key: 'openai', limit: 20 }];
 * await withLeases(ctx, holdfast, entries, { parkSeconds: 600 }, ({ fences }) => ctx.step('ask', () => ask(prompt, fences)));
 */
export async function withLeases<T>(
  ctx: DurableContext,
  holdfast: Holdfast,
  entries: readonly DurableLeaseEntry[],
  ...[options, body]: [options: DurableLeaseOptions, body: (held: DurableLeases) => T | PromiseLike<T>]
): Promise<T> {
  for (const [at, { key }] of entries.entries())
    if (entries.findIndex((one) => one.key === key) < at) throw invalidRequest('key', `${key} is in two entries`);
  const held: Record<string, DurableLease> = {};
  const under = async ([first, ...rest]: DurableLeaseEntry[]): Promise<T> => {
    if (first === undefined)
      return body({
        leases: entries.map(({ key }) => held[key] as DurableLease),
        fences: Object.fromEntries(entries.map(({ key }) => [key, (held[key] as DurableLease).fence])),
      });
    return withLease(ctx, holdfast, first.key, { ...options, ...first } as DurableLeaseOptions, (lease) => {
      held[lease.key] = lease;
      return under(rest);
    });
  };
  return under(inOrder(entries));
}

/**
 * Reserves a start in a step, and suspends the execution until then, so that no more units start in a period than the rate allows. With a permit too, call
 * `rate` in the body of `withLease`.
 * @throws HoldfastError RateExceeded if the start would be later than `waitSeconds`; Throttled, Unavailable, OutcomeUnknown and Unreachable after four retries
 * @example
 * const { settle } = await rate(ctx, holdfast, 'openai', { name: 'tokens', limit: 100_000, per: '1m', units: 2000, settle: true });
 * const { usage } = await ctx.step('ask', () => ask(prompt));
 * await settle({ tokens: usage.total });
 */
export async function rate(
  ctx: DurableContext,
  holdfast: Holdfast,
  key: string,
  options: DurableRateOptions,
): Promise<DurableStart> {
  const { waitSeconds = 3600, settle, holder = holderOf(ctx, holdfast), ...terms } = options;
  const rates = 'rates' in terms ? [...terms.rates] : [terms];
  const most = Math.min(waitSeconds, mostWaitSeconds(rates, settle));
  const reserve = (before: Problem | undefined) => {
    // Later steps repeat the id, so that a retry does not pay again.
    const { requestId = holdfast.surroundings.uuid() } = (before ?? {}) as { requestId?: string };
    const request = { key, holder, requestId, rates, settle, waitSeconds: most } as RequestOf<'rateReserve'>;
    return holdfast.rateReserve(request, { timeoutMs: STEP_MS }).catch((error) => {
      throw Object.assign(error, { requestId });
    });
  };
  const reserved = await inSteps(ctx, 'reserve', key, reserve);
  if ('failure' in reserved) throw reserved.failure;
  const { reservation, startAt, sleepSeconds } = reserved.value;
  if (sleepSeconds > 0) await ctx.wait(nameOf('start', key), { seconds: sleepSeconds });
  return {
    startAt,
    async settle(units) {
      const request = { key, reservation, units } as RequestOf<'rateSettle'>;
      const send = () => holdfast.rateSettle(request, { timeoutMs: STEP_MS });
      const settled = await inSteps(ctx, 'settle', key, send);
      if (!('failure' in settled)) return 'settled' in settled.value && settled.value.settled;
      if (!isTransient(settled.failure)) throw settled.failure;
      ctx.logger.warn(`the estimates of ${key} stand`, settled.failure);
      return false;
    },
  };
}

/**
 * Runs a call in a step. After a transient error, suspends the execution and runs the call again.
 * @param act receives the problem of the try before
 * @returns the answer, or after how many tries the call has failed for good
 */
async function inSteps<T>(
  ctx: DurableContext,
  verb: string,
  key: string,
  ...[act, request]: [act: (before?: Problem) => Promise<T>, request?: object]
): Promise<{ value: T } | { failure: HoldfastError; tries: number }> {
  let before: Problem | undefined;
  for (let tries = 1; ; tries++) {
    const last = before;
    const outcome = await ctx.step(nameOf(verb, key), async (): Promise<{ value: T } | { problem: Problem }> => {
      try {
        return { value: await act(last) };
      } catch (error) {
        if (!isHoldfastError(error)) throw error;
        return { problem: { ...error, detail: error.message } };
      }
    });
    if ('value' in outcome) return outcome;
    before = outcome.problem;
    const failure = new HoldfastError(before);
    if (!isTransient(failure, request) || tries > RETRIES) return { failure, tries };
    await ctx.wait(nameOf('try again for', key), { seconds: 5 * 2 ** (tries - 1) });
  }
}

/** The name of an operation, the same in every replay. AWS allows up to 256 printable ASCII characters. Two operations may have one name. */
const nameOf = (verb: string, key: string): string =>
  `${verb} ${key}`.replace(/[^ -~]/g, (other) => `\\u${other.charCodeAt(0).toString(16)}`).slice(0, 256);

/** Several executions of a function wait side by side: each shows its own name, which is the last but one part of its ARN. */
const holderOf = ({ executionContext }: DurableContext, { holder }: Holdfast): string =>
  `${holder}/${executionContext.durableExecutionArn.split('/').at(-2)}`;

/** Waits in line, suspended. @throws HoldfastError as `withLease` */
async function acquired(
  ctx: DurableContext,
  holdfast: Holdfast,
  entry: DurableLeaseEntry,
): Promise<{ leaseId: string; fence: number }> {
  const {
    key,
    holder = holderOf(ctx, holdfast),
    parkSeconds = 3600,
    ttlSeconds,
    graceSeconds = 900,
    bound = ttlSeconds === undefined,
    ...asked
  } = entry;
  if (!bound) ctx.logger.warn(`the lease of ${key} has an expiry, and no heartbeats: its body must end before`);
  const [grant, callbackId] = await ctx.createCallback(nameOf('lease', key), {
    timeout: { seconds: parkSeconds + MARGIN_SECONDS },
    serdes: { deserialize: async (text) => text },
  });
  const request = {
    ...{ key, holder, callbackId, parkSeconds, execution: ctx.executionContext.durableExecutionArn },
    ...(bound && { bound }),
    ...{ ttlSeconds, graceSeconds, ...asked },
  } as Parameters<Holdfast['park']>[0];
  const park = async () => {
    await holdfast.park(request, { timeoutMs: STEP_MS });
    return null;
  };
  const parked = await inSteps(ctx, 'park', key, park, request);
  const failure = 'failure' in parked ? parked.failure : undefined;
  if ('failure' in parked && parked.tries === 1) throw parked.failure;
  // A try without an answer may be in line. If this call gave up, the line would grant the lease later, and no call would release it.
  if (failure) ctx.logger.warn(`the request for ${key} may be in line: waiting for its callback`, failure);
  return JSON.parse(await Promise.resolve(grant).catch((error) => refused(key, error, failure)));
}

/**
 * Throws the problem that the service sent, which the SDK passes on as text.
 * @param failure the error of the last request, if the service did not confirm that the request is in line
 * @throws HoldfastError; or `error` as it is, if it is not from Holdfast
 */
function refused(key: string, error: unknown, failure: HoldfastError | undefined): never {
  const { errorType, errorData } = Object(error) as { errorType?: unknown; errorData?: unknown };
  if (errorType === 'CallbackTimeoutError')
    throw unreachable(`Holdfast has not answered the callback for ${key}`, failure ?? error);
  let problem: unknown;
  try {
    problem = JSON.parse(String(errorData));
  } catch {
    throw error;
  }
  const { code, detail } = Object(problem) as Record<string, unknown>;
  if (typeof code !== 'string' || typeof detail !== 'string') throw error;
  throw new HoldfastError({ ...(problem as object), code, detail }, error);
}

/**
 * Releases the lease. After an error the SDK suspends the execution and runs the step again. If the last try fails too, this only logs a warning, because the
 * body has done its work.
 */
async function released(
  ctx: DurableContext,
  holdfast: Holdfast,
  { key, leaseId }: { key: string; leaseId: string },
): Promise<void> {
  const release = async () => (await holdfast.release({ key, leaseId }, { timeoutMs: STEP_MS })).released;
  try {
    await ctx.step(nameOf('release', key), release);
  } catch (error) {
    ctx.logger.warn(`the release of ${key} failed: the lease may stay until this execution ends`, error);
  }
}
