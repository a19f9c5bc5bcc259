import { maxWaitSeconds } from '../../../shared/rates/charge.ts';
import type { PermitOptions } from './acquire.ts';
import { isTransient } from './attempt.ts';
import { invalidRequest } from './errors.ts';
import { type Holdfast, HoldfastError, isHoldfastError, type RateTerms, unreachable } from './index.ts';
import { inOrder } from './several.ts';
import type { RequestOf } from './transport.ts';

/** The part of the context of `@aws/durable-execution-sdk-js` that these functions use. */
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
  /** How long to wait in line, in seconds up to a week. The default is 3600. The execution is suspended for that time, and costs nothing. */
  parkSeconds?: number | undefined;
  /**
   * Latest wins, for work that only the newest request needs. Older requests of the key that also said `replace` and still wait fail with Superseded. With
   * `running`, a holder that said `running` is asked to stop too, which an execution finds out with `lease.check()`. Not for permits.
   */
  replace?: 'waiting' | 'running' | undefined;
  /** The name that other callers see. The default is the holder of the client with the name of the execution, such as `billing/order-42`. */
  holder?: string | undefined;
  /** Any JSON up to 4 KiB that other callers may read. */
  data?: unknown;
  /**
   * How long the lease stays after the execution was stopped or timed out, in whole seconds up to 900, because its code may still run. The default is 900, the
   * longest timeout of a Lambda function. If your function has a shorter timeout, set it to that timeout, and never to less.
   */
  graceSeconds?: number | undefined;
  /** True for a lease that lasts until its release or the end of the execution. That is the default, unless `ttlSeconds` is given. */
  bound?: boolean | undefined;
  /**
   * A time after which the lease expires, in seconds, in place of `bound`. The body must end before that time, with all its suspensions, because nothing
   * extends the lease except `check()`. The default is 60 if `bound` is false. Not with `bound: true`.
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
   * Asks the service in a step whether the lease is still held, and extends a lease that has a `ttlSeconds`. Call it between the steps of long work, so
   * that the work can stop when it is asked to. The role of the function needs the permission for the call `heartbeat`.
   * @throws HoldfastError LeaseLost, with the reason `superseded` or `broken` if the body should stop; Throttled, Unavailable, OutcomeUnknown and
   * Unreachable after four retries
   * @example
   * for (const part of parts) {
   *   await lease.check();
   *   await ctx.step(`part ${part}`, () => write(part, { fence: lease.fence }));
   * }
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

/** The rate or rates of a durable function, and how long it waits for a start. */
export type DurableRateOptions = RateTerms & {
  /** How late the start may be, in seconds up to a week, or with `settle` up to the longest period. The default is 3600. The execution is suspended. */
  waitSeconds?: number | undefined;
  /** True if the `units` are an estimate, which you correct by the `settle` of the answer after the work. */
  settle?: boolean | undefined;
  /** The name that operators see. The default is the holder of the client with the name of the execution. */
  holder?: string | undefined;
};

/** A reserved start whose moment has come. */
export interface DurableStart {
  /** The earliest start, by the clock of the service, the same in every replay. ISO 8601. */
  readonly startAt: string;
  /**
   * Corrects the estimates in a step: reports the units that the work really took, by the name of the rate. Needs the option `settle`.
   * @returns false if the estimates stand
   * @throws HoldfastError InvalidRequest
   */
  settle(units: Readonly<Record<string, number>>): Promise<boolean>;
}

/**
 * How long after `parkSeconds` the callback times out, in seconds: the service may take two minutes to end the wait, and the retries of the request two
 * more.
 */
const MARGIN_SECONDS = 240;

/** How many times a request is sent again after a transient error. The execution is suspended before each retry. */
const RETRIES = 4;

/** How long one step repeats its request, in milliseconds. */
const STEP_MS = 5000;

/** A step returns the fields of its error instead of throwing it: of a thrown error, a replay keeps only the message. */
type Problem = ConstructorParameters<typeof HoldfastError>[0];

/**
 * Runs the body of a durable function under a lease or a permit. The execution is suspended while it waits in line, and keeps the lease while the body is
 * suspended. The lease is released after the body, and at the latest `graceSeconds` after the end of the execution.
 *
 * The body runs again in each replay, like all code outside of steps. Put effects into steps.
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
  const { leaseId, fence } = await waitInLine(ctx, holdfast, { key, ...options });
  const check = async () => {
    const beat = () => holdfast.heartbeat({ key, leaseId }, { timeoutMs: STEP_MS }).then(() => null);
    const checked = await inSteps(ctx, 'check', key, beat);
    if ('failure' in checked) throw checked.failure;
  };
  try {
    return await body({ key, fence, check });
  } finally {
    // The SDK never settles the promise of a suspended body, so this runs only when the body has ended.
    await releaseInStep(ctx, holdfast, { key, leaseId });
  }
}

/**
 * Runs the body under several leases or permits, for example at most five calls of a tenant and twenty in total. The keys are acquired in the same order as by
 * `holdfast.withLeases`, so that callers cannot block each other for good. `parkSeconds` is the limit for each key.
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
 * Suspends the execution until the work may start, so that all callers together start no more units in a period than the rate allows. If the work also needs
 * a permit, call `rate` in the body of `withLease`.
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
  const reserve = (before: Problem | undefined) => {
    // Later steps repeat the id, so that a retry does not pay again.
    const { requestId = holdfast.core.surroundings.uuid() } = (before ?? {}) as { requestId?: string };
    const request = {
      ...{ key, holder, requestId, rates, settle },
      waitSeconds: Math.min(waitSeconds, maxWaitSeconds(rates, settle)),
    } as RequestOf<'rateReserve'>;
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
      ctx.logger.warn(`the units for ${key} were not reported: the estimates stand`, settled.failure);
      return false;
    },
  };
}

/**
 * Runs a call in a step. After a transient error, suspends the execution and runs the call again.
 * @param act receives the problem of the try before
 * @returns the answer, or the error of the last try with the number of tries
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

/** The name of an operation, which must be the same in every replay, but need not be unique. AWS allows up to 256 printable ASCII characters. */
const nameOf = (verb: string, key: string): string =>
  `${verb} ${key}`.replace(/[^ -~]/g, (other) => `\\u${other.charCodeAt(0).toString(16)}`).slice(0, 256);

/** The default holder: the name of the execution tells executions of one function apart. It is the last but one part of the ARN. */
const holderOf = ({ executionContext }: DurableContext, { holder }: Holdfast): string =>
  `${holder}/${executionContext.durableExecutionArn.split('/').at(-2)}`;

/** Waits in line, suspended. @throws HoldfastError as `withLease` */
async function waitInLine(
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
    ...terms
  } = entry;
  if (!bound) ctx.logger.warn(`the lease of ${key} expires after its ttl, unless check() extends it`);
  const [grant, callbackId] = await ctx.createCallback(nameOf('lease', key), {
    timeout: { seconds: parkSeconds + MARGIN_SECONDS },
    serdes: { deserialize: async (text) => text },
  });
  const request = {
    ...{ key, holder, callbackId, parkSeconds, execution: ctx.executionContext.durableExecutionArn },
    ...(bound && { bound }),
    ...{ ttlSeconds, graceSeconds, ...terms },
  } as Parameters<Holdfast['park']>[0];
  const park = async () => {
    await holdfast.park(request, { timeoutMs: STEP_MS });
    return null;
  };
  const parked = await inSteps(ctx, 'park', key, park, request);
  const failure = 'failure' in parked ? parked.failure : undefined;
  if ('failure' in parked && parked.tries === 1) throw parked.failure;
  // A try without an answer may be in line, and would be granted later. If this call stopped now, no call would release that grant.
  if (failure) ctx.logger.warn(`the request for ${key} may be in line: waiting for its callback`, failure);
  return JSON.parse(await Promise.resolve(grant).catch((error) => throwRefusal(key, error, failure)));
}

/**
 * Throws the problem with which the service failed the callback. The SDK passes it on as text.
 * @param failure the error of the last request, if the service did not confirm that the request is in line
 * @throws HoldfastError, or the `error` itself if it is not from Holdfast
 */
function throwRefusal(key: string, error: unknown, failure: HoldfastError | undefined): never {
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
 * Releases the lease in a step, which the SDK repeats after an error. If the last try fails too, only a warning is logged, because the body has done its work.
 */
async function releaseInStep(
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
