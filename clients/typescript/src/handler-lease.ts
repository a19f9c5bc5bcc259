import type { LockOptions, PermitOptions } from './acquire.ts';
import {
  type Holdfast,
  HoldfastError,
  inTime,
  isHoldfastError,
  type Lease,
  type RatesOptions,
  stayAlive,
} from './index.ts';

/** The part of the context of an invocation that the wrappers use. */
export interface LambdaContext {
  getRemainingTimeInMillis(): number;
}

/** A string for all events, or a function that returns it for an event. */
export type ByEvent<Event, Text extends string | undefined = string | undefined> = string | ((event: Event) => Text);

/**
 * How the wrappers acquire a lease or a permit: the options of `acquire`, except those that the wrapper computes from the invocation. The wait is never longer
 * than a third of the remaining time. With `rates` or `replace`, that is also the default of `waitMs`.
 */
export type HandlerLeaseOptions<Event, Key extends string | undefined> = Omit<
  LockOptions,
  'signal' | 'maxHoldMs' | 'waitUntil' | 'execution'
> &
  PermitOptions &
  RatesOptions & {
    holdfast: Holdfast;
    /** The key, for example by the id in the event. If the function returns `undefined` for an event, the handler runs without a lease. */
    key: ByEvent<Event, Key>;
    /** The ARN of the Standard execution that called the function. When that execution ends, the lease is freed, even if the function crashed. */
    execution?: ByEvent<Event> | undefined;
    /**
     * With `replace`: what the wrapper does if a newer request replaces this one, in line or while the handler works. `skip` (the default) answers
     * `undefined`, so that the event counts as done. `throw` throws the error, for callers that do not repeat a failed event: an event that is delivered
     * again would replace the newer one.
     */
    onSuperseded?: 'skip' | 'throw' | undefined;
  };

/** The lease that a handler receives. It can be undefined only if `key` may return undefined. */
export type LeaseOf<Key> = undefined extends Key ? Lease | undefined : Lease;

export type { HeldError } from './errors.ts';

/** With less remaining time, a wrapper does not acquire, because the handler could do nothing with the lease. In milliseconds. */
const MIN_LEFT_MS = 3000;

/** How long before the end of the invocation the signal of the lease aborts, in milliseconds. */
const ABORT_MS = 1000;

/** How long before the end of the invocation the wrapper stops waiting for an answer, in milliseconds, so that there is time for the withdrawal. */
const WITHDRAW_MS = 1500;

/** How much time is left for the response of the handler, in milliseconds. */
export const ANSWER_MS = 200;

/** How long a release may take if there is time, in milliseconds. */
const RELEASE_MS = 5000;

/** True if a newer request has replaced this one, in line or while it had the lease, so that the event counts as done. */
export const isSkipped = ({ onSuperseded }: Pick<TakeOptions, 'onSuperseded'>, error: unknown): boolean =>
  onSuperseded !== 'throw' &&
  (isHoldfastError(error, 'Superseded') || (isHoldfastError(error, 'LeaseLost') && error.reason === 'superseded'));

/** The longest wait in an invocation, in milliseconds. @param leftMs the remaining time of the invocation */
export const maxWaitMs = (
  { rates, replace, waitMs = rates || replace ? Infinity : 0 }: WaitOptions,
  leftMs: number,
): number => Math.min(waitMs, leftMs / 3);

export const byEvent = (value: ByEvent<never> | undefined, event: unknown): string | undefined =>
  typeof value === 'function' ? value(event as never) : value;

/** A lease that is held for an invocation. */
export interface Held<Taken = Lease> {
  lease: Taken;
  /** Releases the lease within the remaining time. Never rejects. */
  end(): Promise<void>;
  /** Lets the process end without a release. `end` calls it after the release. */
  stop(): void;
}

interface Invocation {
  key: string;
  event: unknown;
  context: LambdaContext;
}

interface WaitOptions extends Pick<RatesOptions, 'rates'>, Pick<LockOptions, 'replace'> {
  waitMs?: number | undefined;
}

/** The options that `take` completes or replaces. */
interface TakeOptions extends WaitOptions {
  holdfast: Holdfast;
  key: unknown;
  timeoutMs?: number | undefined;
  ttlSeconds?: number | undefined;
  releaseTimeoutMs?: number | undefined;
  execution?: ByEvent<never> | undefined;
  onSuperseded?: 'skip' | 'throw' | undefined;
}

/** A lease, or the run of a slot. */
interface Releasable {
  release(timeoutMs: number): Promise<unknown>;
}

/**
 * Acquires a lease within the time of an invocation. If the promise rejects, the request neither waits nor holds the key, unless the service does not answer.
 * @param method `beginRun` begins the run of a slot in place of a lease
 * @throws HoldfastError LeaseHeld if another caller holds the key, or too little time is left; RateExceeded; Unreachable if the service does not answer in
 * time; the errors of `acquire`
 */
export async function take<Taken extends object = Lease>(
  options: TakeOptions,
  { key, event, context }: Invocation,
  method: 'acquire' | 'beginRun' = 'acquire',
): Promise<Held<Taken>> {
  const left = () => context.getRemainingTimeInMillis();
  const leftMs = left();
  if (!(leftMs >= MIN_LEFT_MS)) throw tooLate(key, leftMs);
  const {
    holdfast,
    timeoutMs = 30_000,
    releaseTimeoutMs = RELEASE_MS,
    ttlSeconds = Math.max(10, Math.min(60, Math.floor(leftMs / 1000) - 1)),
    execution,
    onSuperseded: _,
    ...terms
  } = options;
  const { surroundings } = holdfast.core;
  const rest: Promise<unknown>[] = [];
  let asking: Promise<Taken> | undefined;
  const start = (signal: AbortSignal) => {
    asking = holdfast[method](key, {
      ...terms,
      ttlSeconds,
      execution: byEvent(execution, event),
      waitMs: maxWaitMs(options, leftMs),
      timeoutMs: Math.min(timeoutMs, leftMs / 3),
      maxHoldMs: () => left() - ABORT_MS,
      signal,
      waitUntil: (one) => rest.push(one),
    }) as Promise<object> as Promise<Taken>;
    return asking;
  };
  try {
    const lease = await inTime(surroundings, { ms: leftMs - WITHDRAW_MS }, start);
    const stop = stayAlive(surroundings);
    const end = async () => {
      await (lease as Releasable).release(Math.max(ANSWER_MS, Math.min(releaseTimeoutMs, left() - ANSWER_MS)));
      stop();
    };
    return { lease, end, stop };
  } catch (error) {
    // Lambda freezes the process after the response, so the withdrawal must end before.
    const allEnded = () => Promise.allSettled([asking]).then(() => Promise.all(rest));
    await inTime(surroundings, { ms: left() - ANSWER_MS }, allEnded).catch(() => {});
    throw error;
  }
}

const tooLate = (key: string, leftMs: number): HoldfastError =>
  new HoldfastError({
    code: 'LeaseHeld',
    detail: `${leftMs} ms are too little time for ${key}`,
    ...{ key, holder: null, fence: null, expiresAt: null, limit: null, retryAfterMs: 0, used: 0, holders: [] },
  });

/** @throws TypeError in a durable function, because nothing extends the lease while the function is suspended */
export function refuseDurable(context: object): void {
  if ('executionContext' in context) throw new TypeError('a durable function cannot hold a lease');
}
