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

/** A string for all events, or a function of the event. */
export type ByEvent<Event, Text extends string | undefined = string | undefined> = string | ((event: Event) => Text);

/**
 * How the wrappers acquire a lease or a permit: the options of `acquire`, without the options that the wrapper computes from the invocation. With `rates` or
 * `replace`, `waitMs` is a third of the remaining time by default.
 */
export type HandlerLeaseOptions<Event, Key extends string | undefined> = Omit<
  LockOptions,
  'signal' | 'maxHoldMs' | 'waitUntil' | 'execution'
> &
  PermitOptions &
  RatesOptions & {
    holdfast: Holdfast;
    /** The key. If a function returns `undefined` for an event, the handler runs without a lease. */
    key: ByEvent<Event, Key>;
    /** The ARN of the Standard execution that called the function. Its end frees the lease. */
    execution?: ByEvent<Event> | undefined;
    /**
     * With `replace`, what a wrapper does if a newer request replaces this one, in line or while the handler works: `skip` (the default) answers `undefined`, so
     * that the event counts as done, or `throw` the error. A superseded event that is delivered again would replace the newer one.
     */
    onSuperseded?: 'skip' | 'throw' | undefined;
  };

/** The lease that a handler gets. Undefined is possible only if `key` may return undefined. */
export type LeaseOf<Key> = undefined extends Key ? Lease | undefined : Lease;

export type { HeldError } from './errors.ts';

/** The least remaining time with which a wrapper acquires, in milliseconds. */
const LEAST_MS = 3000;

/** How long before the end of the invocation the signal aborts, in milliseconds. */
const CUT_MS = 1000;

/** How long before the end of the invocation an acquire without a response is aborted, in milliseconds. The withdrawal needs time too. */
const GIVE_UP_MS = 1500;

/** The time that is reserved for the response of the handler, in milliseconds. */
export const ANSWER_MS = 200;

/** How long a release may take if there is time, in milliseconds. */
const RELEASE_MS = 5000;

/** True if a newer request has replaced this one, in line or while it had the lease, and its event counts as done. */
export const isSkipped = ({ onSuperseded }: Pick<Asking, 'onSuperseded'>, error: unknown): boolean =>
  onSuperseded !== 'throw' &&
  (isHoldfastError(error, 'Superseded') || (isHoldfastError(error, 'LeaseLost') && error.reason === 'superseded'));

/** How long to wait at most, in milliseconds. @param leftMs the remaining time of the invocation */
export const patienceMs = (
  { rates, replace, waitMs = rates || replace ? Infinity : 0 }: Waiting,
  leftMs: number,
): number => Math.min(waitMs, leftMs / 3);

export const byEvent = (value: ByEvent<never> | undefined, event: unknown): string | undefined =>
  typeof value === 'function' ? value(event as never) : value;

/** A lease that is held for an invocation. */
export interface Held<Taken = Lease> {
  lease: Taken;
  /** Releases the lease within the remaining time. Never rejects. */
  end(): Promise<void>;
  /** Stops the timer that keeps the process alive, which `end` does too. */
  stop(): void;
}

interface Wanted {
  key: string;
  event: unknown;
  context: LambdaContext;
}

interface Waiting extends Pick<RatesOptions, 'rates'>, Pick<LockOptions, 'replace'> {
  waitMs?: number | undefined;
}

/** The options that `take` completes or replaces. */
interface Asking extends Waiting {
  holdfast: Holdfast;
  key: unknown;
  timeoutMs?: number | undefined;
  ttlSeconds?: number | undefined;
  releaseTimeoutMs?: number | undefined;
  execution?: ByEvent<never> | undefined;
  onSuperseded?: 'skip' | 'throw' | undefined;
}

/** What can be released. */
interface Releasable {
  release(timeoutMs: number): Promise<unknown>;
}

/**
 * Acquires a lease within the time of an invocation. If the promise rejects, no grant and no waiter of the request is left, unless the service does not answer.
 * @param method `beginRun` begins the run of a slot in place of a lease
 * @throws HoldfastError LeaseHeld if another caller holds the key, or too little time is left; RateExceeded; Unreachable if the service does not answer in time; all errors of `acquire`
 */
export async function take<Taken extends object = Lease>(
  options: Asking,
  { key, event, context }: Wanted,
  method: 'acquire' | 'beginRun' = 'acquire',
): Promise<Held<Taken>> {
  const left = () => context.getRemainingTimeInMillis();
  const leftMs = left();
  if (!(leftMs >= LEAST_MS)) throw tooLate(key, leftMs);
  const {
    holdfast,
    timeoutMs = 30_000,
    releaseTimeoutMs = RELEASE_MS,
    ttlSeconds = Math.max(10, Math.min(60, Math.floor(leftMs / 1000) - 1)),
    execution,
    onSuperseded: _,
    ...asked
  } = options;
  const by = holdfast.surroundings;
  const rest: Promise<unknown>[] = [];
  let asking: Promise<Taken> | undefined;
  const start = (signal: AbortSignal) => {
    asking = holdfast[method](key, {
      ...asked,
      ttlSeconds,
      execution: byEvent(execution, event),
      waitMs: patienceMs(options, leftMs),
      timeoutMs: Math.min(timeoutMs, leftMs / 3),
      maxHoldMs: () => left() - CUT_MS,
      signal,
      waitUntil: (one) => rest.push(one),
    }) as Promise<object> as Promise<Taken>;
    return asking;
  };
  try {
    const lease = await inTime(by, { ms: leftMs - GIVE_UP_MS }, start);
    const stop = stayAlive(by);
    const end = async () => {
      await (lease as Releasable).release(Math.max(ANSWER_MS, Math.min(releaseTimeoutMs, left() - ANSWER_MS)));
      stop();
    };
    return { lease, end, stop };
  } catch (error) {
    // The process is frozen after the response, so pending work must end before.
    const over = () => Promise.allSettled([asking]).then(() => Promise.all(rest));
    await inTime(by, { ms: left() - ANSWER_MS }, over).catch(() => {});
    throw error;
  }
}

const tooLate = (key: string, leftMs: number): HoldfastError =>
  new HoldfastError({
    code: 'LeaseHeld',
    detail: `${leftMs} ms are too little time for ${key}`,
    ...{ key, holder: null, fence: null, expiresAt: null, limit: null, retryAfterMs: 0, used: 0, holders: [] },
  });

/** @throws TypeError for the context of a durable function, because no heartbeats are sent while the function is suspended */
export function refuseDurable(context: object): void {
  if ('executionContext' in context) throw new TypeError('a durable function cannot hold a lease');
}
