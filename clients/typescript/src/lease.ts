import { attempt, backoff, type Core } from './attempt.ts';
import {
  type HoldfastError,
  invalidRequest,
  isHoldfastError,
  type LossReason,
  leaseLost,
  unreachable,
} from './errors.ts';
import { RELEASE_MS, tryRelease } from './release.ts';
import { interruptible, type Moment, moment, type Surroundings, since, watch } from './surroundings.ts';
import type { AnswerOf } from './transport.ts';

export interface LeaseOptions {
  /**
   * How long the lease lasts without a heartbeat, in seconds from 2 to 86,400. The default is 60. After a crash, others wait this long; with a shorter ttl, a
   * shorter network failure loses the lease.
   */
  ttlSeconds?: number | undefined;
  /**
   * The longest time that the work may take, in milliseconds from the grant: after that, the lease counts as lost, even if heartbeats succeed. You want it if
   * work that hangs must not keep the key. There is no limit by default. A function is called when the grant arrives, and returns the time from that
   * moment, for example `() => context.getRemainingTimeInMillis() - 1000`.
   */
  maxHoldMs?: number | (() => number) | undefined;
  /** How long a release with its retries may take, in milliseconds. The default is 5,000. */
  releaseTimeoutMs?: number | undefined;
}

/** How a lease that is the run of a slot ends. `once.ts` passes it. */
interface RunOfSlot {
  /** Called in place of a release. */
  end(grant: { key: string; leaseId: string }, timeoutMs: number): Promise<boolean>;
  /** Ends a grant whose answer was lost. Never rejects. */
  withdraw(request: { key: string; holder: string; requestId: string }): Promise<void>;
}

/** The options of a lease inside the client. */
export interface LinkedOptions extends LeaseOptions {
  /** Aborts the signal of the lease too. `withLease` passes the caller's signal. */
  linked?: AbortSignal | undefined;
  once?: RunOfSlot | undefined;
}

/**
 * A lease or a permit, which the client extends by heartbeats until you release it or it is lost. A loss is final. `held`, `signal` and `assertHeld` read the
 * clocks each time, because no timer fires while the event loop is blocked.
 * @example
 * await using lease = await holdfast.acquire('nightly');
 * for (const part of parts) {
 *   lease.assertHeld();
 *   await write(part, { fence: lease.fence, signal: lease.signal });
 * }
 */
export interface Lease extends AsyncDisposable {
  readonly key: string;
  readonly holder: string;
  /** The fencing token, which is higher in each grant of the key. Pass it to the store that you write to, so that the store can refuse a former holder. */
  readonly fence: number;
  /** The secret proof of the grant. Pass it only to a process that is to extend or release the lease in your place. */
  readonly leaseId: string;
  /** Who held the key before, and how that grant ended. After `expired` or `broken`, the work may be half done: clean up, or continue it. */
  readonly previous: Acquired['previous'];
  /** The mode of a permit. Undefined for a lease. */
  readonly mode: Acquired['mode'];
  /** The limit that a permit was acquired with. Undefined for a lease. */
  readonly limit: Acquired['limit'];
  /** How much of the limit a permit takes. Undefined for a lease. */
  readonly weight: Acquired['weight'];
  /** The total weight of all permits of the key when this one was granted, itself included. Undefined for a lease. */
  readonly used: Acquired['used'];
  /** Both limits, if the grant before named another limit: you are changing the limit, or callers disagree by mistake. Otherwise undefined. */
  readonly limitChanged: Acquired['limitChanged'];
  /** When the lease expires by the clock of the service, unless a heartbeat extends it. ISO 8601. For people; use `remainingMs` to plan work. */
  readonly expiresAt: string;
  /**
   * How long the lease is certainly held even if no further heartbeat succeeds, in milliseconds by the clocks of this process. 0 or less after that time. Use
   * it as the timeout of a request that must end under the lease.
   */
  readonly remainingMs: number;
  /** True while the lease is certainly held: its time has not run out by any clock, and the service has not reported a loss. */
  readonly held: boolean;
  /** Why the lease was lost. Undefined while the lease is held, and after a release in time. */
  readonly lost: HoldfastError | undefined;
  /**
   * Aborts shortly before the lease ends, even if the service does not answer. Pass it to everything that must stop with the lease, such as `fetch`. Its
   * reason is the error that `assertHeld` throws.
   */
  readonly signal: AbortSignal;
  /** Call it before each effect of the work. @throws HoldfastError LeaseLost, with the `reason` */
  assertHeld(): void;
  /**
   * Corrects the estimates of the reservation: reports the units that the work really took, by the name of the rate. Needs the options `rates` and `settle`.
   * @returns false if the estimates stand, as in `RateStart`
   * @throws HoldfastError InvalidRequest
   */
  settle(units: Readonly<Record<string, number>>): Promise<boolean>;
  /**
   * Releases the lease, so that the next waiter has it at once. Never throws: a lease that cannot be released expires. Call it when the work has stopped, even
   * after a loss, because a lease that was broken or superseded may stay until its release.
   * @param timeoutMs how long the release with its retries may take, in milliseconds. The default is `releaseTimeoutMs`
   * @returns true if the service confirmed the release; otherwise the lease was lost, or expires
   */
  release(timeoutMs?: number): Promise<boolean>;
}

type Grant = AnswerOf<'heartbeat'>;
type Acquired = Extract<AnswerOf<'acquire'>, { leaseId: string }> & { slot?: string };

/** How often the clocks are checked, in milliseconds. A wall clock that jumps, for example when the machine wakes from sleep, triggers no timer. */
const CHECK_MS = 1000;

/** How long a heartbeat may take, in milliseconds. */
const MAX_HEARTBEAT_MS = 5000;

/** The longest time between two heartbeats, in milliseconds. By a heartbeat, a holder finds out that its lease was broken or superseded. */
const MAX_INTERVAL_MS = 20_000;

/** The reserve: how long before the lease deadline `signal` aborts, because no timer is exact. In milliseconds, and at most a tenth of the ttl. */
const RESERVE_MS = 1000;

/** What the heartbeats, the checks and the release of a lease share. */
interface LeaseState {
  core: Core;
  granted: Acquired;
  acquiredAt: Moment;
  ttlMs: number;
  /** How long after `acquiredAt` the lease counts as lost even if heartbeats succeed, in milliseconds. */
  holdMs: number;
  options: LinkedOptions;
  controller: AbortController;
  /** Aborts the signal with the reason of the linked signal. */
  abort(): void;
  term: Term;
  failures: number;
  /** Set when the lease is over: it was lost, or released. */
  over?: HoldfastError;
  lost?: HoldfastError;
  /** True if the service has answered that this caller does not hold the lease, so there is nothing to release. */
  gone?: boolean;
  beating?: Promise<void> | undefined;
  cancelTimer?(): void;
}

/** A grant, and how long it lasts by the clocks of this process. */
interface Term {
  grant: Grant;
  /** When the request of the grant was sent, which is before the service granted it. Both durations count from this moment. */
  sentAt: Moment;
  lastsMs: number;
  beatAtMs: number;
}

/** @param waitedMs how long the request waited before the grant */
function termOf(surroundings: Surroundings, ttlMs: number, { grant, sentAt, waitedMs = 0 }: Granted): Term {
  const endMs = waitedMs + grant.remainingMs;
  // When the lease was last extended. The answer to a retry may repeat a grant from before the request, so this may be negative.
  const extendedMs = endMs - ttlMs;
  return {
    grant,
    sentAt,
    lastsMs: endMs - Math.min(RESERVE_MS, ttlMs / 10),
    beatAtMs: extendedMs + Math.min(ttlMs / 3, MAX_INTERVAL_MS) * (0.8 + 0.2 * surroundings.random()),
  };
}

interface Granted {
  grant: Grant;
  sentAt: Moment;
  waitedMs?: number;
}

/**
 * Extends a granted lease by heartbeats, until its release or loss.
 * @param acquiredAt when the acquisition was sent
 */
export function startLease(core: Core, granted: Acquired, acquiredAt: Moment, options: LinkedOptions): Lease {
  const { maxHoldMs = Number.POSITIVE_INFINITY, linked } = options;
  const { waitedMs } = granted;
  const ttlMs = (options.ttlSeconds ?? 60) * 1000;
  const controller = new AbortController();
  const state: LeaseState = {
    ...{ core, granted, acquiredAt, ttlMs, options, controller },
    holdMs: typeof maxHoldMs === 'function' ? since(core.surroundings, acquiredAt) + maxHoldMs() : waitedMs + maxHoldMs,
    abort: () => controller.abort(linked?.reason),
    term: termOf(core.surroundings, ttlMs, { grant: granted, sentAt: acquiredAt, waitedMs }),
    failures: 0,
  };
  watch(controller.signal, () => check(state));
  linked?.addEventListener('abort', state.abort);
  if (linked?.aborted) state.abort();
  arm(state);
  return leaseOf(state);
}

/** The object that the caller gets. */
function leaseOf(state: LeaseState): Lease {
  const { key, holder, fence, leaseId, previous, mode, limit, weight, used, limitChanged, slot } = state.granted;
  let released: Promise<boolean> | undefined;
  return {
    key,
    holder,
    fence,
    leaseId,
    previous,
    ...{ mode, limit, weight, used, limitChanged },
    ...(slot !== undefined && { slot }),
    get expiresAt() {
      return state.term.grant.expiresAt;
    },
    get remainingMs() {
      return leftMs(state);
    },
    get held() {
      return !check(state);
    },
    get lost() {
      check(state);
      return state.lost;
    },
    get signal() {
      check(state);
      return state.controller.signal;
    },
    assertHeld() {
      const error = check(state);
      if (error) throw error;
    },
    async settle() {
      throw invalidRequest('rates', 'the lease has no rates');
    },
    release(timeoutMs = state.options.releaseTimeoutMs ?? RELEASE_MS) {
      released ??= release(state, timeoutMs);
      return released;
    },
    async [Symbol.asyncDispose]() {
      await this.release();
    },
  };
}

/** How long the lease is held without another heartbeat, by the clocks of this process. */
const leftMs = ({ core, term }: LeaseState): number => term.lastsMs - since(core.surroundings, term.sentAt);
const holdLeftMs = ({ core, holdMs, acquiredAt }: LeaseState): number => holdMs - since(core.surroundings, acquiredAt);

/** Ends the lease if it has expired by the clocks of this process. @returns why the lease is over, if it is */
function check(state: LeaseState): HoldfastError | undefined {
  // Not `<= 0`: an answer that is not a grant has no numbers, and NaN must count as lost.
  if (!state.over && !(leftMs(state) > 0)) lose(state, 'deadline');
  else if (!state.over && !(holdLeftMs(state) > 0)) lose(state, 'maxHold');
  return state.over;
}

function lose(state: LeaseState, reason: LossReason, holder?: string | null): void {
  const { key, fence } = state.granted;
  const error = leaseLost(key, reason, holder);
  state.lost = error;
  end(state, error);
  state.core.emit({ type: 'lost', key, fence, reason, error });
}

function end(state: LeaseState, error: HoldfastError): void {
  state.over = error;
  state.cancelTimer?.();
  state.options.linked?.removeEventListener('abort', state.abort);
  state.controller.abort(error);
}

function arm(state: LeaseState): void {
  const { surroundings } = state.core;
  const beatMs = state.beating ? CHECK_MS : state.term.beatAtMs - since(surroundings, state.term.sentAt);
  state.cancelTimer?.();
  const ms = Math.max(1, Math.min(CHECK_MS, beatMs, holdLeftMs(state), leftMs(state)));
  state.cancelTimer = surroundings.after(ms, () => tick(state), true);
}

function tick(state: LeaseState): void {
  if (check(state)) return;
  if (since(state.core.surroundings, state.term.sentAt) >= state.term.beatAtMs) state.beating ??= beat(state);
  arm(state);
}

async function beat(state: LeaseState): Promise<void> {
  const { core, granted, ttlMs } = state;
  const { key, leaseId, fence } = granted;
  const sentAt = moment(core.surroundings);
  // A try gets half of the time that is left, so that another try can follow if no answer comes.
  const ms = Math.max(50, Math.min(MAX_HEARTBEAT_MS, leftMs(state) / 2));
  let error: unknown;
  try {
    const grant = await attempt(core, 'heartbeat', { key, leaseId }, { ms });
    // An answer from a proxy is not a grant: the lease is neither extended nor lost.
    if (!(grant.remainingMs > 0)) throw unreachable('no grant');
    // An answer after the loss comes too late, because the work was already asked to stop. After a release the answer means nothing.
    if (check(state)) return;
    state.term = termOf(core.surroundings, ttlMs, { grant, sentAt });
    state.failures = 0;
  } catch (reason) {
    error = reason;
    if (check(state)) return;
    if (isHoldfastError(error, 'LeaseLost')) {
      // The service may keep a broken or superseded lease until the work has stopped, so this one must still be released.
      state.gone = error.reason !== 'broken' && error.reason !== 'superseded';
      return lose(state, error.reason, error.holder);
    }
    const pause = Math.min(backoff(core.surroundings, state.failures++, error), leftMs(state) / 2);
    state.term.beatAtMs = since(core.surroundings, state.term.sentAt) + pause;
  } finally {
    state.beating = undefined;
    if (!state.over) arm(state);
  }
  core.emit({ type: 'beat', key, fence, expiresAt: state.term.grant.expiresAt, error });
}

async function release(state: LeaseState, timeoutMs: number): Promise<boolean> {
  const { core, granted, beating, options } = state;
  const { once } = options;
  const { key, leaseId } = granted;
  // The work of a slot may have finished in time even if the lease has now expired by these clocks. The service decides.
  if (!(once ? state.over : check(state))) end(state, leaseLost(key, 'released'));
  // If the lease was lost only by the clocks of this process, the service may still hold it, so the release is sent.
  if (state.gone) return false;
  const startedAt = moment(core.surroundings);
  const halfMs = timeoutMs / 2;
  if (beating)
    await interruptible<void>(undefined, (resolve) => {
      beating.then(resolve);
      return core.surroundings.after(halfMs, resolve);
    });
  const restMs = Math.max(halfMs, timeoutMs - since(core.surroundings, startedAt));
  return once ? once.end({ key, leaseId }, restMs) : tryRelease(core, { key, leaseId }, restMs);
}
