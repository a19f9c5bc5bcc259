import { isHoldfastError, unreachable } from './errors.ts';
import type { Emit } from './events.ts';
import { interruptible, moment, type Surroundings, since, sleep } from './surroundings.ts';
import type { AnswerOf, Operation, RequestOf, Transport } from './transport.ts';

/** The dependencies of every call. */
export interface Core {
  transport: Transport;
  namespace?: string | undefined;
  by: Surroundings;
  emit: Emit;
}

/** How long one try may take, in milliseconds, in addition to its wait inside the service. */
const TRY_MS = 10_000;

/** API Gateway ends each request after 30 seconds, and these may need them. */
const SLOW: readonly Operation[] = ['commit', 'resetFence', 'report', 'clean'];

export interface Try {
  /** Milliseconds until the try is abandoned. */
  ms?: number | undefined;
  signal?: AbortSignal | undefined;
}

/**
 * Runs `act` once, with a signal that aborts it.
 * @throws HoldfastError Unreachable if it takes too long; what `act` throws; the reason of the signal
 */
export const inTime = <T>(
  by: Surroundings,
  { ms, signal }: Try & { ms: number },
  act: (own: AbortSignal) => Promise<T>,
) =>
  interruptible<T>(signal, (resolve, reject) => {
    const own = new AbortController();
    const cancel = by.after(ms, () => reject(unreachable(`no answer in ${ms} ms`)));
    act(own.signal).then(resolve, reject);
    return () => {
      cancel();
      own.abort();
    };
  });

/** One try of a call. @throws as `inTime` and the transport */
export const attempt = <O extends Operation>(
  { transport, namespace, by }: Core,
  operation: O,
  payload: RequestOf<O>,
  { ms = SLOW.includes(operation) ? 35_000 : TRY_MS, signal }: Try = {},
): Promise<AnswerOf<O>> =>
  inTime(by, { ms, signal }, async (own) => (await transport(operation, payload, own, namespace, ms)) as AnswerOf<O>);

const TRANSIENT: readonly string[] = ['Throttled', 'Unavailable', 'OutcomeUnknown', 'Unreachable', 'QueueFull'];

/**
 * These errors are transient: if the client repeats the call, the call may succeed.
 * @param request the fields of the call. With a task token or a callback id, QueueFull has ended the task or callback, which can receive no grant
 */
export const isTransient = (error: unknown, request: { taskToken?: unknown; callbackId?: unknown } = {}): boolean =>
  isHoldfastError(error) &&
  TRANSIENT.includes(error.code) &&
  !(error.code === 'QueueFull' && (request.taskToken || request.callbackId));

/** A write may have landed in spite of these errors. */
export const isUnknown = (error: unknown): boolean => isHoldfastError(error, 'OutcomeUnknown') || isUnanswered(error);

const isUnanswered = (error: unknown) => isHoldfastError(error, 'Unreachable') && error.sent !== false;

/**
 * How long to wait after a number of failures: full jitter, and at least as long as the service asks for. The bound of the jitter is less than
 * the five seconds for which the service keeps a position in line.
 */
export const backoff = (by: Surroundings, failures: number, error?: unknown): number =>
  ((error as { retryAfterMs?: number })?.retryAfterMs ?? 0) + by.random() * Math.min(4000, 100 * 2 ** failures);

/** The caller's limits to one call. */
export interface CallOptions {
  /** How long to retry after transient failures, in milliseconds; the default is 30,000. */
  timeoutMs?: number | undefined;
  /** Ends the call. A request that was sent may still take effect. */
  signal?: AbortSignal | undefined;
}

/** @throws TypeError for a time that is not a number, or is negative */
export function assertTimes(times: { waitMs?: number | undefined; timeoutMs?: number | undefined }): void {
  for (const name of ['waitMs', 'timeoutMs'] as const) {
    const ms = times[name];
    if (ms !== undefined && !(ms >= 0)) throw new TypeError(`${name} must be a number from 0, not ${ms}`);
  }
}

/**
 * Repeats `act` until it succeeds, fails permanently, or the time is up.
 * @param act receives the fields that the service wants in a retry, so that the retry learns the outcome of a lost answer
 * @throws what `act` throws; the reason of the signal
 */
export async function persist<T>(
  by: Surroundings,
  { timeoutMs = 30_000, signal }: CallOptions,
  act: (retryWith: object) => Promise<T>,
  again: (error: unknown) => boolean = isTransient,
): Promise<T> {
  const startedAt = moment(by);
  let retryWith = {};
  for (let failures = 0; ; failures++) {
    try {
      return await act(retryWith);
    } catch (error) {
      const pause = backoff(by, failures, error);
      if (signal?.aborted || !again(error) || since(by, startedAt) + pause >= timeoutMs) throw error;
      retryWith = { ...retryWith, ...(error as { retryWith?: object }).retryWith };
      await sleep(by, pause, signal);
    }
  }
}

/** The name by which a retry after a lost answer finds what the first try has done. */
export const ID_OF: { [O in Operation]?: string } = {
  acquire: 'requestId',
  onceBegin: 'requestId',
  rateReserve: 'requestId',
  publish: 'requestId',
  repairNames: 'requestId',
  commit: 'commitId',
  resetFence: 'commitId',
};

/** Tries a call until it succeeds, fails permanently, or the time is up. All tries have the same name. @throws as `persist` and `attempt` */
export const insist = <O extends Operation>(
  core: Core,
  operation: O,
  payload: RequestOf<O>,
  { ms, ...limits }: CallOptions & Try = {},
): Promise<AnswerOf<O>> => {
  const id = ID_OF[operation];
  const named = id && !(id in payload) ? { ...payload, [id]: core.by.uuid() } : payload;
  return persist(
    core.by,
    limits,
    (retryWith) => attempt(core, operation, { ...named, ...retryWith }, { ms, signal: limits.signal }),
    // A report that goes on unseen would refuse a second one.
    (error) => isTransient(error, payload as object) && !(operation === 'report' && isUnanswered(error)),
  );
};
