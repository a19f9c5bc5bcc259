import { isHoldfastError, unreachable } from './errors.ts';
import type { Emit } from './events.ts';
import { interruptible, moment, type Surroundings, since, sleep } from './surroundings.ts';
import type { AnswerOf, Operation, RequestOf, Transport } from './transport.ts';

/** What every call needs. */
export interface Core {
  transport: Transport;
  namespace?: string | undefined;
  surroundings: Surroundings;
  emit: Emit;
}

/** How long one try may take, in milliseconds, on top of its wait inside the service. */
const TRY_MS = 10_000;

/** Calls that may need the whole 30 seconds after which API Gateway ends a request. */
const SLOW: readonly Operation[] = ['commit', 'resetFence', 'report', 'clean'];

export interface Try {
  /** After how many milliseconds the client stops waiting for an answer. */
  ms?: number | undefined;
  signal?: AbortSignal | undefined;
}

/**
 * Runs `act` with a time limit.
 * @param act receives a signal that aborts at the end of the time
 * @throws HoldfastError Unreachable if it takes too long; what `act` throws; the reason of the signal
 */
export const inTime = <T>(
  surroundings: Surroundings,
  { ms, signal }: Try & { ms: number },
  act: (trySignal: AbortSignal) => Promise<T>,
) =>
  interruptible<T>(signal, (resolve, reject) => {
    const controller = new AbortController();
    const cancel = surroundings.after(ms, () => reject(unreachable(`no answer in ${ms} ms`)));
    act(controller.signal).then(resolve, reject);
    return () => {
      cancel();
      controller.abort();
    };
  });

/** One try of a call. @throws as `inTime` and the transport */
export const attempt = <O extends Operation>(
  { transport, namespace, surroundings }: Core,
  operation: O,
  payload: RequestOf<O>,
  { ms = SLOW.includes(operation) ? 35_000 : TRY_MS, signal }: Try = {},
): Promise<AnswerOf<O>> =>
  inTime(
    surroundings,
    { ms, signal },
    async (trySignal) => (await transport(operation, payload, trySignal, namespace, ms)) as AnswerOf<O>,
  );

const TRANSIENT: readonly string[] = ['Throttled', 'Unavailable', 'OutcomeUnknown', 'Unreachable', 'QueueFull'];

/**
 * True if the same call may succeed when it is repeated.
 * @param request the fields of the call. With a task token or a callback id, QueueFull is final, because it has ended the task or the callback
 */
export const isTransient = (error: unknown, request: { taskToken?: unknown; callbackId?: unknown } = {}): boolean =>
  isHoldfastError(error) &&
  TRANSIENT.includes(error.code) &&
  !(error.code === 'QueueFull' && (request.taskToken || request.callbackId));

/** True if the service may have done what was asked, in spite of the error. */
export const isUnknown = (error: unknown): boolean => isHoldfastError(error, 'OutcomeUnknown') || isUnanswered(error);

const isUnanswered = (error: unknown) => isHoldfastError(error, 'Unreachable') && error.sent !== false;

/**
 * How long to pause after a number of failures: as long as the service asks for, and a random time on top, so that clients do not return together. The
 * random time is less than the five seconds for which the service keeps a position in line.
 */
export const backoff = (surroundings: Surroundings, failures: number, error?: unknown): number =>
  ((error as { retryAfterMs?: number })?.retryAfterMs ?? 0) +
  surroundings.random() * Math.min(4000, 100 * 2 ** failures);

/** How long one call may take. */
export interface CallOptions {
  /** How long to retry after transient failures, in milliseconds. The default is 30,000. */
  timeoutMs?: number | undefined;
  /** Ends the call when it aborts. A request that was sent may still take effect. */
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
 * Repeats `act` until it succeeds, fails permanently, or the time has run out.
 * @param act receives the fields that the service wants in a retry, so that the retry finds out what became of the try before
 * @throws what `act` throws; the reason of the signal
 */
export async function retry<T>(
  surroundings: Surroundings,
  { timeoutMs = 30_000, signal }: CallOptions,
  act: (retryWith: object) => Promise<T>,
  mayRetry: (error: unknown) => boolean = isTransient,
): Promise<T> {
  const startedAt = moment(surroundings);
  let retryWith = {};
  for (let failures = 0; ; failures++) {
    try {
      return await act(retryWith);
    } catch (error) {
      const pause = backoff(surroundings, failures, error);
      if (signal?.aborted || !mayRetry(error) || since(surroundings, startedAt) + pause >= timeoutMs) throw error;
      retryWith = { ...retryWith, ...(error as { retryWith?: object }).retryWith };
      await sleep(surroundings, pause, signal);
    }
  }
}

/** The field that names a call, so that a retry after a lost answer finds what an earlier try has done. */
export const ID_OF: { [O in Operation]?: string } = {
  acquire: 'requestId',
  onceBegin: 'requestId',
  rateReserve: 'requestId',
  publish: 'requestId',
  repairNames: 'requestId',
  commit: 'commitId',
  resetFence: 'commitId',
};

/** Sends a call until it succeeds, fails permanently, or the time has run out. All tries carry the same id. @throws as `retry` and `attempt` */
export const call = <O extends Operation>(
  core: Core,
  operation: O,
  payload: RequestOf<O>,
  { ms, ...limits }: CallOptions & Try = {},
): Promise<AnswerOf<O>> => {
  const id = ID_OF[operation];
  const named = id && !(id in payload) ? { ...payload, [id]: core.surroundings.uuid() } : payload;
  return retry(
    core.surroundings,
    limits,
    (retryWith) => attempt(core, operation, { ...named, ...retryWith }, { ms, signal: limits.signal }),
    // A report whose answer is lost may still run, and would refuse a second report.
    (error) => isTransient(error, payload as object) && !(operation === 'report' && isUnanswered(error)),
  );
};
