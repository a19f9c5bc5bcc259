import { attempt, backoff, type Core } from './attempt.ts';
import {
  type HoldfastError,
  invalidRequest,
  isHoldfastError,
  type LossReason,
  leaseLost,
  unreachable,
} from './errors.ts';
import { giveBack, RELEASE_MS } from './give-back.ts';
import { interruptible, type Moment, moment, type Surroundings, since, watch } from './surroundings.ts';
import type { AnswerOf } from './transport.ts';

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
  /** Of a permit: how it shares the key, the limit, its weight, and what all permits weighed with it. Otherwise undefined. */
  readonly mode: Acquired['mode'];
  readonly limit: Acquired['limit'];
  readonly weight: Acquired['weight'];
  readonly used: Acquired['used'];
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
   * Reports the units that the work really took, by the name of the rate. Needs the options `rates` and `settle`.
   * @returns false if the estimates stand, as `RateStart`
   * @throws HoldfastError InvalidRequest
   */
  settle(units: Readonly<Record<string, number>>): Promise<boolean>;
  /**
   * Releases the lease, after a pending heartbeat. Best effort: `release` never throws. Call `release` when the work has stopped, also
   * after a loss: the release of a lease that was broken or superseded hands off to the next waiter.
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

/** The longest time between two heartbeats, in milliseconds: a holder whose lease is broken or superseded learns of it from the next heartbeat. */
const MAX_INTERVAL_MS = 20_000;

/** The reserve: how long before the lease deadline `signal` aborts, in milliseconds, but at most a tenth of the ttl, because no timer is exact. */
const RESERVE_MS = 1000;

/** What the heartbeats, the end and the release of a lease share. */
interface Kept {
  core: Core;
  granted: Acquired;
  acquiredAt: Moment;
  ttlMs: number;
  /** After how long, from `acquiredAt`, the lease counts as lost in any case, in milliseconds. */
  holdMs: number;
  options: LinkedOptions;
  controller: AbortController;
  /** Aborts the signal together with the linked one. */
  abort(): void;
  term: Term;
  failures: number;
  /** Why the lease is over: lost or released. */
  over?: HoldfastError;
  lost?: HoldfastError;
  /** True if the service has said that the lease is no longer this caller's. */
  gone?: boolean;
  beating?: Promise<void> | undefined;
  cancelTimer?(): void;
}

/** A grant, and how long it lasts by the clocks of this process. */
interface Term {
  grant: Grant;
  /** When the request of the grant was sent. Both durations count from then, in milliseconds. */
  sentAt: Moment;
  lastsMs: number;
  beatAtMs: number;
}

/** @param waitedMs how long the request waited before the grant */
function termOf(by: Surroundings, ttlMs: number, { grant, sentAt, waitedMs = 0 }: Granted): Term {
  const endMs = waitedMs + grant.remainingMs;
  // When the lease was last extended. If this grant is a repeated one, that was before the request.
  const extendedMs = endMs - ttlMs;
  return {
    grant,
    sentAt,
    lastsMs: endMs - Math.min(RESERVE_MS, ttlMs / 10),
    beatAtMs: extendedMs + Math.min(ttlMs / 3, MAX_INTERVAL_MS) * (0.8 + 0.2 * by.random()),
  };
}

interface Granted {
  grant: Grant;
  sentAt: Moment;
  waitedMs?: number;
}

/**
 * Keeps a lease that was granted.
 * @param acquiredAt when the acquisition was sent
 */
export function keep(core: Core, granted: Acquired, acquiredAt: Moment, options: LinkedOptions): Lease {
  const { maxHoldMs = Number.POSITIVE_INFINITY, linked } = options;
  const { waitedMs } = granted;
  const ttlMs = (options.ttlSeconds ?? 60) * 1000;
  const controller = new AbortController();
  const kept: Kept = {
    ...{ core, granted, acquiredAt, ttlMs, options, controller },
    holdMs: typeof maxHoldMs === 'function' ? since(core.by, acquiredAt) + maxHoldMs() : waitedMs + maxHoldMs,
    abort: () => controller.abort(linked?.reason),
    term: termOf(core.by, ttlMs, { grant: granted, sentAt: acquiredAt, waitedMs }),
    failures: 0,
  };
  watch(controller.signal, () => check(kept));
  linked?.addEventListener('abort', kept.abort);
  if (linked?.aborted) kept.abort();
  arm(kept);
  return leaseOf(kept);
}

/** What the caller sees of a lease. */
function leaseOf(kept: Kept): Lease {
  const { key, holder, fence, leaseId, previous, mode, limit, weight, used, limitChanged, slot } = kept.granted;
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
      return kept.term.grant.expiresAt;
    },
    get remainingMs() {
      return leftMs(kept);
    },
    get held() {
      return !check(kept);
    },
    get lost() {
      check(kept);
      return kept.lost;
    },
    get signal() {
      check(kept);
      return kept.controller.signal;
    },
    assertHeld() {
      const error = check(kept);
      if (error) throw error;
    },
    async settle() {
      throw invalidRequest('rates', 'the lease has no rates');
    },
    release(timeoutMs = kept.options.releaseTimeoutMs ?? RELEASE_MS) {
      released ??= release(kept, timeoutMs);
      return released;
    },
    async [Symbol.asyncDispose]() {
      await this.release();
    },
  };
}

/** How much is left by this process's clocks, in milliseconds. */
const leftMs = ({ core, term }: Kept): number => term.lastsMs - since(core.by, term.sentAt);
const holdLeftMs = ({ core, holdMs, acquiredAt }: Kept): number => holdMs - since(core.by, acquiredAt);

/** Ends the lease if its time is up. @returns why the lease is over, if it is */
function check(kept: Kept): HoldfastError | undefined {
  // An answer to acquire that is not a grant has no numbers, and is no lease.
  if (!kept.over && !(leftMs(kept) > 0)) lose(kept, 'deadline');
  else if (!kept.over && !(holdLeftMs(kept) > 0)) lose(kept, 'maxHold');
  return kept.over;
}

function lose(kept: Kept, reason: LossReason, holder?: string | null): void {
  const { key, fence } = kept.granted;
  const error = leaseLost(key, reason, holder);
  kept.lost = error;
  end(kept, error);
  kept.core.emit({ type: 'lost', key, fence, reason, error });
}

function end(kept: Kept, error: HoldfastError): void {
  kept.over = error;
  kept.cancelTimer?.();
  kept.options.linked?.removeEventListener('abort', kept.abort);
  kept.controller.abort(error);
}

function arm(kept: Kept): void {
  const { by } = kept.core;
  const beatMs = kept.beating ? LOOK_MS : kept.term.beatAtMs - since(by, kept.term.sentAt);
  kept.cancelTimer?.();
  const ms = Math.max(1, Math.min(LOOK_MS, beatMs, holdLeftMs(kept), leftMs(kept)));
  kept.cancelTimer = by.after(ms, () => look(kept), true);
}

function look(kept: Kept): void {
  if (check(kept)) return;
  if (since(kept.core.by, kept.term.sentAt) >= kept.term.beatAtMs) kept.beating ??= beat(kept);
  arm(kept);
}

async function beat(kept: Kept): Promise<void> {
  const { core, granted, ttlMs } = kept;
  const { key, leaseId, fence } = granted;
  const sentAt = moment(core.by);
  // Half of the time that is left, so that there is time for another try if this one gets no answer.
  const ms = Math.max(50, Math.min(BEAT_MS, leftMs(kept) / 2));
  let error: unknown;
  try {
    const grant = await attempt(core, 'heartbeat', { key, leaseId }, { ms });
    // The JSON of a proxy extends nothing, and does not end the lease either.
    if (!(grant.remainingMs > 0)) throw unreachable('no grant');
    // An answer after the end comes too late: others were told that the lease is lost. After a release it means nothing.
    if (check(kept)) return;
    kept.term = termOf(core.by, ttlMs, { grant, sentAt });
    kept.failures = 0;
  } catch (reason) {
    error = reason;
    if (check(kept)) return;
    if (isHoldfastError(error, 'LeaseLost')) {
      // A lease that was broken or superseded may be kept for this caller until the work has stopped: its release hands the key on.
      kept.gone = error.reason !== 'broken' && error.reason !== 'superseded';
      return lose(kept, error.reason, error.holder);
    }
    const pause = Math.min(backoff(core.by, kept.failures++, error), leftMs(kept) / 2);
    kept.term.beatAtMs = since(core.by, kept.term.sentAt) + pause;
  } finally {
    kept.beating = undefined;
    if (!kept.over) arm(kept);
  }
  core.emit({ type: 'beat', key, fence, expiresAt: kept.term.grant.expiresAt, error });
}

async function release(kept: Kept, timeoutMs: number): Promise<boolean> {
  const { core, granted, beating, options } = kept;
  const { once } = options;
  const { key, leaseId } = granted;
  // The work of a slot may have finished in time, even if the lease has expired by these clocks now. The service decides.
  if (!(once ? kept.over : check(kept))) end(kept, leaseLost(key, 'released'));
  // If only the clocks of this process said that the lease is lost, there may be something to release.
  if (kept.gone) return false;
  const startedAt = moment(core.by);
  const halfMs = timeoutMs / 2;
  if (beating)
    await interruptible<void>(undefined, (resolve) => {
      beating.then(resolve);
      return core.by.after(halfMs, resolve);
    });
  const restMs = Math.max(halfMs, timeoutMs - since(core.by, startedAt));
  return once ? once.end({ key, leaseId }, restMs) : giveBack(core, { key, leaseId }, restMs);
}
