import { attempt, backoff, type Core } from './attempt.ts';
import { type HoldfastError, isHoldfastError, type LossReason, leaseLost } from './errors.ts';
import { giveBack, RELEASE_MS } from './give-back.ts';
import { interruptible, type Moment, moment, since } from './surroundings.ts';
import type { AnswerOf } from './transport.ts';
import { watch } from './watched-signal.ts';

export interface LeaseOptions {
  /** How long the lease lasts without a heartbeat, in seconds: 2 to 86,400; the default is 60. */
  ttlSeconds?: number | undefined;
  /**
   * After how long the lease counts as lost even if heartbeats succeed, in milliseconds from the grant. No limit by default. A function is called when
   * the grant has arrived, and returns the time from that moment, for example `() => context.getRemainingTimeInMillis() - 1000`.
   */
  maxHoldMs?: number | (() => number) | undefined;
  /** How long a release with its retries may take, in milliseconds; the default is 5,000. */
  releaseTimeoutMs?: number | undefined;
}

/** The run of a slot (`once.ts`): a grant of `onceBegin`, which `end` ends in place of a release. */
interface RunOfSlot {
  end(grant: { key: string; leaseId: string }, timeoutMs: number): Promise<boolean>;
  /** Ends a grant whose answer was lost. Never rejects. */
  takeBack(request: { key: string; holder: string; requestId: string }): Promise<void>;
}

/** For `withLease`: `linked` aborts `signal` too. */
export interface LinkedOptions extends LeaseOptions {
  linked?: AbortSignal | undefined;
  once?: RunOfSlot | undefined;
}

/**
 * A lease or a permit, which the client extends by heartbeats until the release or a loss. A loss is final. `held`, `signal`
 * and `assertHeld` read the clocks each time, because no timer fires while the event loop is blocked.
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
  /** The fencing token, which is higher in each grant of the key. Pass the fence to the store that you write to. */
  readonly fence: number;
  /** The secret proof of the grant, which heartbeat and release need. */
  readonly leaseId: string;
  /** The previous holder, and how its lease ended: after `expired` and `broken` the work may be half done. */
  readonly previous: Acquired['previous'];
  /** Both limits, if the grant before named another limit: the callers of the key disagree, or you are changing the limit. Otherwise undefined. */
  readonly limitChanged: Acquired['limitChanged'];
  /** When the service ends the lease unless a heartbeat extends it. ISO 8601. */
  readonly expiresAt: string;
  /**
   * How long the lease is certainly held if no further heartbeat succeeds, by the clocks of this process, in
   * milliseconds. 0 or less after that time.
   */
  readonly remainingMs: number;
  /** True while the lease is certainly held: no clock has reached the end, and the service has reported no loss. */
  readonly held: boolean;
  /** The error of the loss. Undefined while the lease is held, and after a release in time. */
  readonly lost: HoldfastError | undefined;
  /** Aborts before the lease ends, even without a response of the service. The reason is the error that `assertHeld` throws. */
  readonly signal: AbortSignal;
  /** @throws HoldfastError LeaseLost, with the `reason` */
  assertHeld(): void;
  /**
   * Releases the lease, after a pending heartbeat. Best effort: `release` never throws. Call `release` when the work has stopped, also
   * after a loss: the release of a broken lease hands off to the next waiter.
   * @param timeoutMs how long the release with its retries may take, in milliseconds; the default is `releaseTimeoutMs`
   * @returns true if the service confirmed the release; otherwise the lease was lost, or expires
   */
  release(timeoutMs?: number): Promise<boolean>;
}

type Grant = AnswerOf<'heartbeat'>;
type Acquired = Extract<AnswerOf<'acquire'>, { leaseId: string }> & { slot?: string };

/** How often the clocks are read, in milliseconds: a wall clock that jumps, for example after sleep, triggers no timer. */
const LOOK_MS = 1000;

/** How long a heartbeat may take at most, in milliseconds. */
const BEAT_MS = 5000;

/** The longest time between two heartbeats, in milliseconds: a holder whose lease is broken learns of it from the next heartbeat. */
const MAX_INTERVAL_MS = 20_000;

/** The reserve: how long before the lease deadline `signal` aborts, in milliseconds, but at most a tenth of the ttl, because no timer is exact. */
const RESERVE_MS = 1000;

/**
 * Keeps a lease that was granted.
 * @param acquiredAt when the acquisition was sent
 */
export function keep(core: Core, granted: Acquired, acquiredAt: Moment, options: LinkedOptions): Lease {
  const { by, emit } = core;
  const { key, holder, fence, leaseId, previous, limitChanged, waitedMs, slot } = granted;
  const { maxHoldMs = Number.POSITIVE_INFINITY, releaseTimeoutMs = RELEASE_MS, linked, once } = options;
  const ttlMs = (options.ttlSeconds ?? 60) * 1000;
  const controller = new AbortController();
  const { signal } = controller;
  let grant: Grant;
  /** When the request of the grant was sent, and the duration that counts from then, in milliseconds. */
  let sentAt: Moment;
  let lastsMs: number;
  let beatAtMs: number;
  let failures: number;
  /** Why the lease is over: lost or released. */
  let over: HoldfastError | undefined;
  let lost: HoldfastError | undefined;
  /** Whether the service has said that the lease is no longer this caller's. */
  let gone = false;
  let beating: Promise<void> | undefined;
  let released: Promise<boolean> | undefined;
  let cancelTimer = () => {};

  const extend = (next: Grant, at: Moment, waitedMs: number) => {
    grant = next;
    sentAt = at;
    failures = 0;
    const endMs = waitedMs + next.remainingMs;
    lastsMs = endMs - Math.min(RESERVE_MS, ttlMs / 10);
    // Counts from the last extension, so it is in the past if this grant is a repeated one.
    const extendedMs = endMs - ttlMs;
    beatAtMs = extendedMs + Math.min(ttlMs / 3, MAX_INTERVAL_MS) * (0.8 + 0.2 * by.random());
  };

  /** How much is left by this process's clocks, in milliseconds. */
  const leftMs = () => lastsMs - since(by, sentAt);
  const holdMs = typeof maxHoldMs === 'function' ? since(by, acquiredAt) + maxHoldMs() : waitedMs + maxHoldMs;
  const holdLeftMs = () => holdMs - since(by, acquiredAt);

  const check = (): HoldfastError | undefined => {
    // An answer that is not a grant has no numbers, and extends nothing.
    if (!over && !(leftMs() > 0)) lose('deadline');
    else if (!over && !(holdLeftMs() > 0)) lose('maxHold');
    return over;
  };

  const lose = (reason: LossReason, holder?: string | null) => {
    const error = leaseLost(key, reason, holder);
    lost = error;
    end(error);
    emit({ type: 'lost', key, fence, reason, error });
  };

  const end = (error: HoldfastError) => {
    over = error;
    cancelTimer();
    linked?.removeEventListener('abort', abort);
    controller.abort(error);
  };

  const abort = () => controller.abort(linked?.reason);

  const arm = () => {
    const beatMs = beating ? LOOK_MS : beatAtMs - since(by, sentAt);
    cancelTimer();
    cancelTimer = by.after(Math.max(1, Math.min(LOOK_MS, beatMs, holdLeftMs(), leftMs())), look, true);
  };

  const look = () => {
    if (check()) return;
    if (since(by, sentAt) >= beatAtMs) beating ??= beat();
    arm();
  };

  const beat = async () => {
    const at = moment(by);
    // Half of the time that is left, so that there is time for another try if this one gets no answer.
    const ms = Math.max(50, Math.min(BEAT_MS, leftMs() / 2));
    let error: unknown;
    try {
      const next = await attempt(core, 'heartbeat', { key, leaseId }, { ms });
      // An answer after the end comes too late: others were told that the lease is lost. After a release it means nothing.
      if (check()) return;
      extend(next, at, 0);
    } catch (reason) {
      error = reason;
      if (check()) return;
      if (isHoldfastError(error, 'LeaseLost')) {
        // A broken lease may be kept for this caller until the work has stopped: its release hands the key on.
        gone = error.reason !== 'broken';
        return lose(error.reason, error.holder);
      }
      beatAtMs = since(by, sentAt) + Math.min(backoff(by, failures++, error), leftMs() / 2);
    } finally {
      beating = undefined;
      if (!over) arm();
    }
    emit({ type: 'beat', key, fence, expiresAt: grant.expiresAt, error });
  };

  const release = async (timeoutMs: number): Promise<boolean> => {
    // Work that has run is not lost because the clocks say so now: the service decides.
    if (!(once ? over : check())) end(leaseLost(key, 'released'));
    // If only the clocks of this process said that the lease is lost, there may be something to release.
    if (gone) return false;
    const startedAt = moment(by);
    const halfMs = timeoutMs / 2;
    const underWay = beating;
    if (underWay)
      await interruptible<void>(undefined, (resolve) => {
        underWay.then(resolve);
        return by.after(halfMs, resolve);
      });
    const leftMs = Math.max(halfMs, timeoutMs - since(by, startedAt));
    return once ? once.end({ key, leaseId }, leftMs) : giveBack(core, { key, leaseId }, leftMs);
  };

  extend(granted, acquiredAt, waitedMs);
  watch(signal, check);
  linked?.addEventListener('abort', abort);
  if (linked?.aborted) abort();
  arm();
  return {
    key,
    holder,
    fence,
    leaseId,
    previous,
    limitChanged,
    ...(slot !== undefined && { slot }),
    get expiresAt() {
      return grant.expiresAt;
    },
    get remainingMs() {
      return leftMs();
    },
    get held() {
      return !check();
    },
    get lost() {
      check();
      return lost;
    },
    get signal() {
      check();
      return signal;
    },
    assertHeld() {
      const error = check();
      if (error) throw error;
    },
    release(timeoutMs = releaseTimeoutMs) {
      released ??= release(timeoutMs);
      return released;
    },
    async [Symbol.asyncDispose]() {
      await this.release();
    },
  };
}
