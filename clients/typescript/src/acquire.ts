import { assertTimes, attempt, backoff, type Core, call, isTransient, isUnknown } from './attempt.ts';
import { type ErrorFields, type HoldfastError, isHoldfastError, unreachable } from './errors.ts';
import { type Lease, type LeaseOptions, type LinkedOptions, startLease } from './lease.ts';
import type { RatesOptions } from './rate.ts';
import { RELEASE_MS } from './release.ts';
import { interruptible, type Moment, moment, since, sleep } from './surroundings.ts';
import type { AnswerOf, RequestOf } from './transport.ts';

/** The options of every acquisition, of a lease or of a permit. */
export interface LockOptions extends LeaseOptions {
  /**
   * How long to wait while other callers hold the key, in milliseconds. The default is 0: the call fails at once with LeaseHeld. `Infinity` waits without a
   * limit.
   */
  waitMs?: number | undefined;
  /** How long to retry after transient failures, in milliseconds on top of `waitMs`. The default is 30,000. */
  timeoutMs?: number | undefined;
  /** Ends the wait when it aborts. If the request is granted after that, the client releases the grant. */
  signal?: AbortSignal | undefined;
  /** The name that other callers see while they wait, such as the id of the job. The default is the holder of the client. */
  holder?: string | undefined;
  /** Any JSON up to 4 KiB that other callers may read, such as a link to the log of the job. */
  data?: unknown;
  /** True to be served in the order of arrival (the default). With false the caller races for the lease, outside the line. */
  fair?: boolean | undefined;
  /**
   * Latest wins, for work that only the newest request needs, such as a rebuild of a page. Older requests of the key that also said `replace` and still wait
   * fail with Superseded. With `running`, a holder that said `running` is asked to stop too, and the lease is granted when that holder has stopped.
   * Needs `waitMs`. Not for permits, and not with `fair: false`.
   * @example
   * await holdfast.withLease('site', { replace: 'running', waitMs: 600_000 }, (lease) => rebuild(lease.signal));
   */
  replace?: 'waiting' | 'running' | undefined;
  /** The ARN of the Standard execution that will hold the lease. When that execution ends, the lease is freed, even if nothing releases it. */
  execution?: string | undefined;
  /** The ARN of an execution that works under the lease. The lease stays while that execution runs. Needs `execution`. */
  target?: string | undefined;
  /**
   * How long the lease lasts after the execution has ended with any status but SUCCEEDED, in seconds up to 900. Set it to the timeout of the functions that
   * the execution calls, because they may still be at work. Needs `execution`.
   */
  graceSeconds?: number | undefined;
  /**
   * For a platform that freezes the process between two calls, such as Lambda. After a failed call, the client may still have to withdraw a request
   * that could be granted. `waitUntil` is called with the promise of that withdrawal, which never rejects, so that the platform can wait for it.
   */
  waitUntil?: ((rest: Promise<unknown>) => void) | undefined;
}

/** The options of a permit. A permit of the mode `exclusive` has the key alone, so it takes neither `limit` nor `weight`. */
export type PermitOptions =
  | {
      /** `shared` asks for a permit, which is held together with other permits up to the `limit`. The default limit is 200. */
      mode?: 'shared' | undefined;
      /** Asks for a permit, which is granted if all permits, the new one included, weigh at most `limit`. 1 to 200. */
      limit?: number | undefined;
      /** How much of the limit the permit takes, for work that costs more than other work. At most `limit`; the default is 1. */
      weight?: number | undefined;
    }
  | {
      /** `exclusive` asks for the key alone, for example for maintenance while no permit is held. */
      mode: 'exclusive';
      limit?: undefined;
      weight?: undefined;
    };

export type AcquireOptions = LockOptions & PermitOptions & RatesOptions;

/** The longest wait inside one call of the service, in seconds. */
const MAX_WAIT_SECONDS = 20;

/** The longest sleep between two calls, in milliseconds. */
const MAX_SLEEP_MS = 300_000;

/** How long the service may take to answer on top of the wait inside the call, in milliseconds. */
const MAX_ANSWER_MS = 10_000;

/** The message of the error after which the client asks for a new grant. */
const GONE = 'the grant ended before the answer';

type Request = RequestOf<'acquire'>;
type Grant = Extract<AnswerOf<'acquire'>, { leaseId: string }>;
type SlotAnswer = Exclude<AnswerOf<'onceBegin'>, { leaseId: string }>;

/**
 * Acquires a lease, and waits for the lease for up to `waitMs`.
 * @throws HoldfastError LeaseHeld at the end of the wait; Superseded; the errors of every call; the reason of the signal
 */
export const acquire = (
  core: Core,
  key: string,
  defaultHolder: string,
  options: AcquireOptions & LinkedOptions,
): Promise<Lease> => acquireOrReadSlot(core, key, defaultHolder, options) as Promise<Lease>;

/** Acquires a lease, or with `once` the run of a slot. @returns the answer of the service if it is not a grant @throws as `acquire` */
export const acquireOrReadSlot = (
  core: Core,
  key: string,
  defaultHolder: string,
  options: AcquireOptions & LinkedOptions,
): Promise<Lease | SlotAnswer> =>
  // The pending request continues after an abort, so that its grant can be released.
  interruptible(options.signal, (resolve, reject) => {
    const { signal, waitMs, timeoutMs, releaseTimeoutMs, maxHoldMs, linked, once, waitUntil, ...terms } = options;
    assertTimes(options);
    const request = { ...terms, key, holder: terms.holder ?? defaultHolder } as Request;
    // V8 follows a chain of `then`, so that the stack trace of an error ends in the program of the caller.
    const asking = tryUntilGranted(core, request, options)
      .then((got): unknown => (signal?.aborted && 'release' in got ? got.release() : resolve(got)))
      .then(resolve as () => void, reject);
    return () => signal?.aborted && waitUntil?.(asking);
  });

/** What an acquisition remembers from one try to the next. */
interface Acquisition {
  core: Core;
  request: Request;
  options: AcquireOptions & LinkedOptions;
  startedAt: Moment;
  /** All tries have the same id, so that a retry finds the grant of a try whose answer was lost. */
  requestId: string;
  /** The fields that the service wants in the next try, such as the ticket, or the slot of the first try. */
  retryWith?: Record<string, string> | undefined;
  inLine?: boolean;
  /** The last sleep of this caller, and for how long after `from` the service keeps its place. Undefined if the caller has never slept. */
  place?: { sleepMs: number; keptMs: number; from: Moment } | undefined;
  /** How many tries in a row have failed, from which the pause follows. */
  failures: number;
  /** The last try that got no answer, and for how long after `sentAt` the service may still work on it. */
  lostTry?: { sentAt: Moment; lastsMs: number } | undefined;
}

const waitLeftMs = ({ core, options: { waitMs = 0 }, startedAt }: Acquisition) =>
  waitMs - since(core.surroundings, startedAt);

/** Sends tries until one is granted or answered, the wait has ended, or a retry cannot help. @throws as `acquire` */
async function tryUntilGranted(
  core: Core,
  request: Request,
  options: AcquireOptions & LinkedOptions,
): Promise<Lease | SlotAnswer> {
  const { surroundings } = core;
  const { signal, replace, waitMs } = options;
  const acquisition: Acquisition = {
    core,
    request,
    options,
    startedAt: moment(surroundings),
    requestId: surroundings.uuid(),
    failures: 0,
  };
  // The pending request may still bring a grant, so it continues. A process that will be frozen cannot wait for the grant, so it withdraws at once.
  const leave = () => (acquisition.inLine || options.waitUntil) && withdraw(acquisition, 0);
  signal?.addEventListener('abort', leave);
  try {
    // The first try does not wait, so that the caller sees at once who holds the lease. But only a request that waits may replace others.
    const minWaitSeconds = replace && waitMs ? 1 : 0;
    for (let waitSeconds = minWaitSeconds; ; ) {
      signal?.throwIfAborted();
      const triedAt = moment(surroundings);
      let pause: number;
      try {
        return await tryToAcquire(acquisition, waitSeconds);
      } catch (error) {
        pause = pauseAfter(acquisition, error, { tookMs: since(surroundings, triedAt), waitSeconds });
      }
      await sleep(surroundings, pause, signal);
      waitSeconds = Math.max(minWaitSeconds, Math.min(MAX_WAIT_SECONDS, Math.floor(waitLeftMs(acquisition) / 1000)));
    }
  } catch (error) {
    const { lostTry } = acquisition;
    if (lostTry) withdraw(acquisition, lostTry.lastsMs - since(surroundings, lostTry.sentAt));
    // The position outlives the call. If its turn came now, no caller would use the grant. After an abort, `leave` has withdrawn the position already.
    else if (acquisition.retryWith?.ticket && !signal?.aborted) withdraw(acquisition, 0);
    throw error;
  } finally {
    signal?.removeEventListener('abort', leave);
  }
}

/** One try. @throws HoldfastError, which is transient if the grant ended before the caller could use it */
async function tryToAcquire(acquisition: Acquisition, waitSeconds: number): Promise<Lease | SlotAnswer> {
  const { core, options, startedAt } = acquisition;
  const sentAt = moment(core.surroundings);
  const grant = await sendRequest(acquisition, waitSeconds, sentAt);
  if (options.once && !grant.leaseId) return grant as unknown as SlotAnswer;
  const lease = startLease(core, grant, sentAt, options);
  if (lease.held && !options.signal?.aborted) {
    const { key, fence, expiresAt } = grant;
    core.emit({ type: 'acquired', key, fence, expiresAt, waitedMs: Math.round(since(core.surroundings, startedAt)) });
    return lease;
  }
  await lease.release();
  useNewRequest(acquisition, (grant as { slot?: string }).slot);
  options.signal?.throwIfAborted();
  const lost = lease.lost as HoldfastError & ErrorFields['LeaseLost'];
  throw options.replace || (lost.reason === 'maxHold' && waitLeftMs(acquisition) <= 0) ? lost : unreachable(GONE);
}

async function sendRequest(acquisition: Acquisition, waitSeconds: number, sentAt: Moment): Promise<Grant> {
  const { core, request, options, requestId, retryWith } = acquisition;
  const ms = waitSeconds * 1000 + MAX_ANSWER_MS;
  const operation = options.once ? 'onceBegin' : 'acquire';
  const maySleep = waitSeconds > 0 && !options.once && options.fair !== false;
  const sleepMs = maySleep ? Math.max(0, Math.floor(Math.min(MAX_SLEEP_MS, waitLeftMs(acquisition)))) : undefined;
  try {
    const grant = await attempt(core, operation, { ...request, requestId, ...retryWith, waitSeconds, sleepMs }, { ms });
    acquisition.lostTry = undefined;
    return grant as Grant;
  } catch (error) {
    if (isUnknown(error)) acquisition.lostTry = { sentAt, lastsMs: ms };
    if (!isHoldfastError(error, 'LeaseLost') || error.reason === 'cancelled') throw error;
    // An earlier try was granted, and an operator broke the grant before this client read the answer. If the operator broke it with `wait`, the key stays
    // held until this caller withdraws.
    withdraw(acquisition, 0);
    // With a new id, this request would count as the newest, and replace the one that superseded it.
    if (options.replace) throw error;
    useNewRequest(acquisition, retryWith?.slot);
    throw unreachable(GONE, error);
  }
}

/** Takes a new request id, because the service remembers the former id as released. @param slot stays the same, even if its period has ended by now */
function useNewRequest(acquisition: Acquisition, slot?: string): void {
  acquisition.requestId = acquisition.core.surroundings.uuid();
  acquisition.retryWith = slot === undefined ? undefined : { slot };
  acquisition.inLine = false;
  acquisition.place = undefined;
}

/**
 * How long to pause before the next try, in milliseconds.
 * @param tookMs how long the failed try took
 * @param waitSeconds how long that try had asked the service to wait
 * @throws the error, if another try cannot help or would come too late
 */
function pauseAfter(acquisition: Acquisition, error: unknown, { tookMs, waitSeconds }: FailedTry): number {
  const { surroundings, emit } = acquisition.core;
  const leftMs = waitLeftMs(acquisition);
  if (isHoldfastError(error)) acquisition.retryWith = { ...acquisition.retryWith, ...error.retryWith };
  if (!isHoldfastError(error, 'LeaseHeld')) {
    const usualPause = backoff(surroundings, acquisition.failures++, error);
    const pause = isHoldfastError(error, 'Throttled')
      ? Math.max(usualPause, Math.min(longerSleep(acquisition), leftMs))
      : usualPause;
    if (!isTransient(error) || pause >= leftMs + (acquisition.options.timeoutMs ?? 30_000)) throw error;
    return pause;
  }
  if (leftMs <= 0) throw error;
  acquisition.inLine = true;
  const { place, comeBackMs: sleepMs = 0, keptMs = 0 } = error;
  const { key, holder, holders, expiresAt, used, limit, cap, waiting } = error;
  const fields = { key, holder, holders, expiresAt, used, limit, cap, place, waiting };
  const [startedAtByWallClock] = acquisition.startedAt;
  emit({ type: 'waiting', since: new Date(startedAtByWallClock).toISOString(), ...fields });
  if (sleepMs > 0 || (acquisition.place && place)) acquisition.place = { sleepMs, keptMs, from: moment(surroundings) };
  if (sleepMs > 0) {
    acquisition.failures = 0;
    return Math.min(sleepMs, leftMs);
  }
  // A deployment may allow shorter waits, or none, so an early answer is followed by a pause. While the caller is away, its position can miss its turn.
  acquisition.failures = tookMs < (place ? 1 : waitSeconds) * 500 ? acquisition.failures + 1 : 0;
  // The service waits whole seconds, so the client waits the rest itself.
  return leftMs < 1000 ? leftMs : acquisition.failures && backoff(surroundings, acquisition.failures);
}

/**
 * How long a caller sleeps after the service throttled its return: twice as long as before, then four and eight times. Otherwise sleepers would throttle
 * each other again and again. The sleep takes at most half of the time for which the place is kept, so that there is time for another try.
 */
function longerSleep({ core: { surroundings }, place, failures }: Acquisition): number {
  if (!place) return 0;
  const { sleepMs, keptMs, from } = place;
  return Math.min(sleepMs * 2 ** Math.min(3, failures), (keptMs - since(surroundings, from)) / 2);
}

interface FailedTry {
  tookMs: number;
  waitSeconds: number;
}

/** Withdraws the request of a caller that has stopped waiting. @param leftMs for how long a lost try may still arrive */
function withdraw({ core, request, options, requestId, retryWith, lostTry }: Acquisition, leftMs: number): void {
  const { once, waitUntil, releaseTimeoutMs: timeoutMs = RELEASE_MS } = options;
  const { key, holder } = request;
  // A try whose answer was lost may have a place of its own, which the service finds only if it reads the whole line.
  const withdrawal = { key, requestId, holder, ticket: lostTry ? undefined : retryWith?.ticket };
  const rest = once
    ? lostTry && once.withdraw({ ...request, requestId, ...retryWith })
    : sendWithdrawal(core, { request: withdrawal, timeoutMs, leftMs });
  if (rest) waitUntil?.(rest);
}

interface Withdrawal {
  request: Omit<RequestOf<'withdraw'>, 'ticket'> & { ticket: string | undefined };
  /** How long the withdrawal with its retries may take. */
  timeoutMs: number;
  /** How long a lost try of the request may still arrive. After that, the withdrawal is sent again. */
  leftMs: number;
}

/** Takes a request out of the line, or ends a grant that did not reach the caller. Never rejects. */
async function sendWithdrawal(core: Core, { request, timeoutMs, leftMs }: Withdrawal): Promise<void> {
  let error: unknown;
  try {
    if ((await call(core, 'withdraw', request as RequestOf<'withdraw'>, { timeoutMs, ms: timeoutMs / 2 })).cancelled)
      return;
  } catch (reason) {
    error = reason;
  }
  if (leftMs > 0) core.surroundings.after(leftMs, () => sendWithdrawal(core, { request, timeoutMs, leftMs: 0 }), true);
  else if (error !== undefined) core.emit({ type: 'released', key: request.key, confirmed: false, error });
}
