import { assertTimes, attempt, backoff, type Core, insist, isTransient, isUnknown } from './attempt.ts';
import { type ErrorFields, type HoldfastError, isHoldfastError, unreachable } from './errors.ts';
import { RELEASE_MS } from './give-back.ts';
import { keep, type Lease, type LeaseOptions, type LinkedOptions } from './lease.ts';
import type { RatesOptions } from './rate.ts';
import { interruptible, type Moment, moment, since, sleep } from './surroundings.ts';
import type { AnswerOf, RequestOf } from './transport.ts';

/** The options of every lock, a lease or a permit. */
export interface LockOptions extends LeaseOptions {
  /**
   * How long to wait for a lease that another caller holds, in milliseconds. The default is 0. `Infinity` waits without a limit.
   */
  waitMs?: number | undefined;
  /** How long to retry after transient failures, beyond `waitMs`, in milliseconds. The default is 30,000. */
  timeoutMs?: number | undefined;
  /** Ends the wait. A grant that arrives later is released. */
  signal?: AbortSignal | undefined;
  /** The name of the holder, which other callers see. */
  holder?: string | undefined;
  /** Any JSON up to 4 KiB, which other callers see. */
  data?: unknown;
  /** True to wait in line (the default), false to race for the lease. */
  fair?: boolean | undefined;
  /**
   * Latest wins: older requests of the key that said `replace` and still wait fail with Superseded. With `running`, a holder that said `running` is asked
   * to stop too, and the lease follows when it has stopped. Needs `waitMs`. Not for permits, and not with `fair: false`.
   */
  replace?: 'waiting' | 'running' | undefined;
  /** The ARN of the Standard execution that will hold the lease. Its end frees the lease. */
  execution?: string | undefined;
  /** The ARN of an execution that works under the lease. While it runs, the lease stays. Needs `execution`. */
  target?: string | undefined;
  /**
   * How long the lease lasts after the execution ends with any status but SUCCEEDED, in seconds up to 900, because a function of the execution may
   * still work. Needs `execution`.
   */
  graceSeconds?: number | undefined;
  /**
   * Called with the promise of the work that continues after a failed call: the withdrawal of a request that may still be granted. The promise never
   * rejects. A platform that freezes the process between two calls must wait for the promise.
   */
  waitUntil?: ((rest: Promise<unknown>) => void) | undefined;
}

/** The options of a permit. The mode `exclusive` takes the key alone, so the options have neither `limit` nor `weight`. */
export type PermitOptions =
  | {
      /** Asks for a permit: `shared`, together with other holders up to the `limit`. The default limit is 200. */
      mode?: 'shared' | undefined;
      /** Asks for a permit, which is granted if all permits, the new permit included, weigh at most `limit`. 1 to 200. */
      limit?: number | undefined;
      /** How much the permit weighs, at most `limit`. The default is 1. */
      weight?: number | undefined;
    }
  | {
      /** Asks for a permit: `exclusive`, alone. */
      mode: 'exclusive';
      limit?: undefined;
      weight?: undefined;
    };

export type AcquireOptions = LockOptions & PermitOptions & RatesOptions;

/** The longest wait inside one call of the service, in seconds. */
const MAX_WAIT_SECONDS = 20;

/** The longest sleep between two calls, in milliseconds. */
const MAX_SLEEP_MS = 300_000;

/** How long the service may take to answer on top of that wait, in milliseconds. */
const ANSWER_MS = 10_000;

/** The error message of a grant that the client requests again. */
const GONE = 'the grant ended before the answer';

type Request = RequestOf<'acquire'>;
type Grant = Extract<AnswerOf<'acquire'>, { leaseId: string }>;
type Answered = Exclude<AnswerOf<'onceBegin'>, { leaseId: string }>;

/**
 * Acquires a lease, and waits for the lease for up to `waitMs`.
 * @throws HoldfastError LeaseHeld at the end of the wait; Superseded; the errors of every call; the reason of the signal
 */
export const acquire = (
  core: Core,
  key: string,
  defaultHolder: string,
  options: AcquireOptions & LinkedOptions,
): Promise<Lease> => obtain(core, key, defaultHolder, options) as Promise<Lease>;

/** `acquire`, or with `once` the run of a slot. @returns the answer of the service, if it is no grant. @throws as `acquire` */
export const obtain = (
  core: Core,
  key: string,
  defaultHolder: string,
  options: AcquireOptions & LinkedOptions,
): Promise<Lease | Answered> =>
  // The pending request continues after an abort, so that its grant can be released.
  interruptible(options.signal, (resolve, reject) => {
    const { signal, waitMs, timeoutMs, releaseTimeoutMs, maxHoldMs, linked, once, waitUntil, ...asked } = options;
    assertTimes(options);
    const request = { ...asked, key, holder: asked.holder ?? defaultHolder } as Request;
    // V8 follows this chain for a stack trace, which so ends in the program of the caller.
    const asking = ask(core, request, options)
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
  /** One for all tries, so that a retry finds the grant of a try whose answer was lost. */
  requestId: string;
  /** What the service asks the next try to add, such as the ticket, or the slot of the first call. */
  retryWith?: Record<string, string> | undefined;
  inLine?: boolean;
  /** The last sleep of this caller, in milliseconds, and how long after the answer its place is kept. Undefined if the caller has never slept. */
  place?: { sleepMs: number; keptMs: number; from: Moment } | undefined;
  /** How many tries in a row have failed, from which the pause follows. */
  failures: number;
  /** When the last try was sent whose answer was lost, and for how many milliseconds the service may be at it. */
  doubt?: [Moment, number] | undefined;
}

const waitLeftMs = ({ core, options: { waitMs = 0 }, startedAt }: Acquisition) => waitMs - since(core.by, startedAt);

/** Sends requests until the grant or another answer is there, the wait has ended, or a retry cannot help. @throws as `acquire` */
async function ask(core: Core, request: Request, options: AcquireOptions & LinkedOptions): Promise<Lease | Answered> {
  const { by } = core;
  const { signal, replace, waitMs } = options;
  const at: Acquisition = { core, request, options, startedAt: moment(by), requestId: by.uuid(), failures: 0 };
  // The pending request continues, because it may still bring a grant. A process that will be frozen cannot wait for that.
  const leave = () => (at.inLine || options.waitUntil) && takeBack(at, 0);
  signal?.addEventListener('abort', leave);
  try {
    // The first request does not wait, so that the caller learns at once who holds the lease. Only a request that waits may replace others.
    const least = replace && waitMs ? 1 : 0;
    for (let waitSeconds = least; ; ) {
      signal?.throwIfAborted();
      const askedAt = moment(by);
      let pause: number;
      try {
        return await askOnce(at, waitSeconds);
      } catch (error) {
        pause = pauseAfter(at, error, { tookMs: since(by, askedAt), waitSeconds });
      }
      await sleep(by, pause, signal);
      waitSeconds = Math.max(least, Math.min(MAX_WAIT_SECONDS, Math.floor(waitLeftMs(at) / 1000)));
    }
  } catch (error) {
    if (at.doubt) takeBack(at, at.doubt[1] - since(by, at.doubt[0]));
    // A position outlives the call, and a turn that comes then would be lost to all. An abort has withdrawn it already.
    else if (at.retryWith?.ticket && !signal?.aborted) takeBack(at, 0);
    throw error;
  } finally {
    signal?.removeEventListener('abort', leave);
  }
}

/** One try. @throws HoldfastError, a transient one if the grant ended before the caller could use it */
async function askOnce(at: Acquisition, waitSeconds: number): Promise<Lease | Answered> {
  const { core, options, startedAt } = at;
  const sentAt = moment(core.by);
  const grant = await send(at, waitSeconds, sentAt);
  if (options.once && !grant.leaseId) return grant as unknown as Answered;
  const lease = keep(core, grant, sentAt, options);
  if (lease.held && !options.signal?.aborted) {
    const { key, fence, expiresAt } = grant;
    core.emit({ type: 'acquired', key, fence, expiresAt, waitedMs: Math.round(since(core.by, startedAt)) });
    return lease;
  }
  await lease.release();
  askAnew(at, (grant as { slot?: string }).slot);
  options.signal?.throwIfAborted();
  const lost = lease.lost as HoldfastError & ErrorFields['LeaseLost'];
  throw options.replace || (lost.reason === 'maxHold' && waitLeftMs(at) <= 0) ? lost : unreachable(GONE);
}

async function send(at: Acquisition, waitSeconds: number, sentAt: Moment): Promise<Grant> {
  const { core, request, options, requestId, retryWith } = at;
  const ms = waitSeconds * 1000 + ANSWER_MS;
  const operation = options.once ? 'onceBegin' : 'acquire';
  const maySleep = waitSeconds > 0 && !options.once && options.fair !== false;
  const sleepMs = maySleep ? Math.max(0, Math.floor(Math.min(MAX_SLEEP_MS, waitLeftMs(at)))) : undefined;
  try {
    const grant = await attempt(core, operation, { ...request, requestId, ...retryWith, waitSeconds, sleepMs }, { ms });
    at.doubt = undefined;
    return grant as Grant;
  } catch (error) {
    if (isUnknown(error)) at.doubt = [sentAt, ms];
    if (!isHoldfastError(error, 'LeaseLost') || error.reason === 'cancelled') throw error;
    // An earlier try got a grant, and an operator ended it before its answer was read. If that break waits for the holder, the key stays with it.
    takeBack(at, 0);
    // By a new id, this request would be the newest again.
    if (options.replace) throw error;
    askAnew(at, retryWith?.slot);
    throw unreachable(GONE, error);
  }
}

/** Takes a new request id, because the service remembers the former id as released. @param slot kept even if its period is over by now */
function askAnew(at: Acquisition, slot?: string): void {
  at.requestId = at.core.by.uuid();
  at.retryWith = slot === undefined ? undefined : { slot };
  at.inLine = false;
  at.place = undefined;
}

/**
 * How long to pause before the next try, in milliseconds.
 * @param tookMs how long the failed try took
 * @param waitSeconds how long that try had asked the service to wait
 * @throws the error, if another try cannot help or would come too late
 */
function pauseAfter(at: Acquisition, error: unknown, { tookMs, waitSeconds }: Tried): number {
  const { by, emit } = at.core;
  const leftMs = waitLeftMs(at);
  if (isHoldfastError(error)) at.retryWith = { ...at.retryWith, ...error.retryWith };
  if (!isHoldfastError(error, 'LeaseHeld')) {
    const again = backoff(by, at.failures++, error);
    const pause = isHoldfastError(error, 'Throttled') ? Math.max(again, Math.min(longerSleep(at), leftMs)) : again;
    if (!isTransient(error) || pause >= leftMs + (at.options.timeoutMs ?? 30_000)) throw error;
    return pause;
  }
  if (leftMs <= 0) throw error;
  at.inLine = true;
  const { place, comeBackMs: sleepMs = 0, keptMs = 0 } = error;
  const { key, holder, holders, expiresAt, used, limit, cap, waiting } = error;
  const told = { key, holder, holders, expiresAt, used, limit, cap, place, waiting };
  emit({ type: 'waiting', since: new Date(at.startedAt[0]).toISOString(), ...told });
  if (sleepMs > 0 || (at.place && place)) at.place = { sleepMs, keptMs, from: moment(by) };
  if (sleepMs > 0) {
    at.failures = 0;
    return Math.min(sleepMs, leftMs);
  }
  // A deployment may allow shorter waits, or none. While the caller is away, its position loses its turn.
  at.failures = tookMs < (place ? 1 : waitSeconds) * 500 ? at.failures + 1 : 0;
  // The service waits whole seconds only, and the rest is waited here. Between two questions a turn may pass.
  return leftMs < 1000 ? leftMs : at.failures && backoff(by, at.failures);
}

/**
 * How long a caller sleeps after its return was throttled: twice as long as before, then four and eight times. Otherwise sleepers would throttle each
 * other again and again. Half of the time for which the place is kept is left for later tries.
 */
function longerSleep({ core: { by }, place, failures }: Acquisition): number {
  if (!place) return 0;
  const { sleepMs, keptMs, from } = place;
  return Math.min(sleepMs * 2 ** Math.min(3, failures), (keptMs - since(by, from)) / 2);
}

interface Tried {
  tookMs: number;
  waitSeconds: number;
}

function takeBack({ core, request, options, requestId, retryWith, doubt }: Acquisition, leftMs: number): void {
  const { once, waitUntil, releaseTimeoutMs: timeoutMs = RELEASE_MS } = options;
  const { key, holder } = request;
  // A try whose answer was lost may have a place of its own, which only a look at the whole line finds.
  const own = { key, requestId, holder, ticket: doubt ? undefined : retryWith?.ticket };
  const rest = once
    ? doubt && once.takeBack({ ...request, requestId, ...retryWith })
    : withdraw(core, { request: own, timeoutMs, leftMs });
  if (rest) waitUntil?.(rest);
}

interface Withdrawal {
  request: Omit<RequestOf<'withdraw'>, 'ticket'> & { ticket: string | undefined };
  /** Milliseconds for it, its retries included. */
  timeoutMs: number;
  /** For how many milliseconds the request may still arrive that it withdraws: the service is asked again after that. */
  leftMs: number;
}

/** Ends the wait for a lease, or a grant that did not reach the caller. */
async function withdraw(core: Core, { request, timeoutMs, leftMs }: Withdrawal): Promise<void> {
  let error: unknown;
  try {
    if ((await insist(core, 'withdraw', request as RequestOf<'withdraw'>, { timeoutMs, ms: timeoutMs / 2 })).cancelled)
      return;
  } catch (reason) {
    error = reason;
  }
  if (leftMs > 0) core.by.after(leftMs, () => withdraw(core, { request, timeoutMs, leftMs: 0 }), true);
  else if (error !== undefined) core.emit({ type: 'released', key: request.key, confirmed: false, error });
}
