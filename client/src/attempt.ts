import { isHoldfastError, unreachable } from './errors.ts';
import type { Emit } from './events.ts';
import { interruptible, moment, type Surroundings, since, sleep } from './surroundings.ts';
import type { AnswerOf, Operation, RequestOf, Transport } from './transport.ts';

/** What every call stands on. */
export interface Core {
  transport: Transport;
  by: Surroundings;
  emit: Emit;
}

/** How long one try may take, in milliseconds, besides what it waits inside the service. */
const TRY_MS = 10_000;

/** API Gateway ends each request after 30 seconds, and these may need them. */
const SLOW: readonly Operation[] = ['commit', 'report', 'clean'];

interface Try {
  /** Milliseconds until the try is given up. */
  ms?: number | undefined;
  signal?: AbortSignal | undefined;
}

/**
 * One try of a call.
 * @throws HoldfastError Unreachable where no answer came in time, and as the transport; the reason of the signal
 */
export function attempt<O extends Operation>(
  { transport, by }: Core,
  operation: O,
  payload: RequestOf<O>,
  { ms = SLOW.includes(operation) ? 35_000 : TRY_MS, signal }: Try = {},
): Promise<AnswerOf<O>> {
  return interruptible(signal, (resolve, reject) => {
    const controller = new AbortController();
    const cancel = by.after(ms, () => reject(unreachable(`no answer in ${ms} ms`)));
    transport(operation, payload, controller.signal).then(resolve as (answer: unknown) => void, reject);
    return () => {
      cancel();
      controller.abort();
    };
  });
}

const TRANSIENT: readonly string[] = ['Throttled', 'Unavailable', 'OutcomeUnknown', 'Unreachable'];

/** After these the same call may succeed. */
export const isTransient = (error: unknown): boolean => isHoldfastError(error) && TRANSIENT.includes(error.code);

/** After these a write may have landed. */
export const isUnknown = (error: unknown): boolean =>
  isHoldfastError(error, 'OutcomeUnknown') || isHoldfastError(error, 'Unreachable');

/** How long to wait after a number of failures: full jitter, and at least as long as the service asks for. */
export const backoff = (by: Surroundings, failures: number, error?: unknown): number =>
  ((error as { retryAfterMs?: number })?.retryAfterMs ?? 0) + by.random() * Math.min(5000, 100 * 2 ** failures);

/** The caller's limits to one call. */
export interface CallOptions {
  /** How long to go on trying after failures that may pass, in milliseconds; 30,000 where it is not given. */
  timeoutMs?: number | undefined;
  /** Ends the call; what it has sent may land. */
  signal?: AbortSignal | undefined;
}

interface Limits extends CallOptions {
  /** Milliseconds until one try is given up. */
  tryMs?: number | undefined;
  /** Told of each failure that is tried again, or thrown. */
  onFailure?: ((error: unknown) => void) | undefined;
}

/**
 * Tries a call until it succeeds, fails for good, or the time is up. After a lost answer it sends the same call with
 * what the service asks for, so that the retry learns the outcome.
 * @throws HoldfastError; the reason of the signal
 */
export async function insist<O extends Operation>(
  core: Core,
  operation: O,
  payload: RequestOf<O>,
  { timeoutMs = 30_000, signal, tryMs, onFailure }: Limits = {},
): Promise<AnswerOf<O>> {
  const { by } = core;
  const startedAt = moment(by);
  let told = payload;
  for (let failures = 0; ; failures++) {
    try {
      return await attempt(core, operation, told, { signal, ms: tryMs });
    } catch (error) {
      onFailure?.(error);
      const pause = backoff(by, failures, error);
      // A report that goes on unseen would refuse a second one.
      const again = isTransient(error) && !(operation === 'report' && isHoldfastError(error, 'Unreachable'));
      if (signal?.aborted || !again || since(by, startedAt) + pause >= timeoutMs) throw error;
      told = { ...told, ...(error as { retryWith?: object }).retryWith };
      await sleep(by, pause, signal);
    }
  }
}
