import { HoldfastError } from '../errors.ts';
import type { Ended, Ending } from '../line/ended.ts';
import { isInstant } from '../surroundings/clock.ts';
import type { Json, LeaseRecord } from './record.ts';
import { endsAt, isEnding, isLeased, type LeaseState, type LostReason, stateOf, takeoverAt } from './rules.ts';

/** The answer to the holder of a lease. `leaseId` and `version` are the holder's secrets. */
export interface LeaseGrant {
  key: string;
  holder: string;
  /** The proof for heartbeat and release. Heartbeats do not change it. */
  leaseId: string;
  /** Changes with every heartbeat. */
  version: string;
  /** The fencing token: strictly larger with every new grant of the key. */
  fence: number;
  /** ISO 8601, like all instants. */
  acquiredAt: string;
  expiresAt: string;
  /** What was left of the lease at the moment of the answer, for a caller that counts on its own clock. */
  remainingMs: number;
  data?: Json;
}

/** The durations in the answer for a new holder. */
export interface Durations {
  /** From the arrival of the call, or the moment when its task was parked, to the answer. The lease ends at sentAt + waitedMs + remainingMs on the caller's clock. */
  waitedMs: number;
  remainingMs: number;
}

/** The holder before, as far as the record tells. */
export interface Previous {
  holder: string;
  fence: number;
  ended: Ending;
  at: string;
}

/** What every reader may see of a key. Null if a record of another client does not say. */
export interface LeaseView {
  key: string;
  state: LeaseState;
  holder: string | null;
  fence: number | null;
  acquiredAt: string | null;
  expiresAt: string | null;
  remainingMs: number | null;
  /** By how much each heartbeat extends the lease. Null if no caller holds it, like the next field. */
  ttlSeconds: number | null;
  /** The ARN of the execution that holds it, or held it when that execution ended. */
  execution: string | null;
  /** Whether that execution has ended, and the lease goes on as an ordinary lease (in-line/grace.ts). */
  inGrace: boolean;
  /** Whether an operator broke it, and it stays until its holder releases it or its ttl ends. */
  ending: boolean;
  data: Json;
}

/** The answer to the operator that breaks a lease or a permit. */
export interface Broken {
  key: string;
  broken: true;
  fence: number;
  /** The holder that is to end its work. Null if the record does not say. */
  holder: string | null;
  /** Whether the key is free for the next caller. Otherwise it waits for the release of the holder, or for `holderUntil`. */
  ended: boolean;
  /** The expiry on record when the lease was broken: the holder may go on until then, unless a heartbeat tells it earlier. Null if the record does not say. */
  holderUntil: string | null;
  /** Null if no heartbeat came since the grant, or the record does not say. */
  lastHeartbeatAt: string | null;
}

/** The words for a holder of which the record says nothing. */
export const NAMELESS = 'a client that leaves no name';

const instant = (epochMs: number): string => new Date(epochMs).toISOString();

/** @param record a leased record that this service wrote */
export function grantView(record: LeaseRecord, now: number): LeaseGrant {
  return {
    key: record.key,
    holder: record.holder ?? '',
    leaseId: record.leaseId ?? '',
    version: record.version ?? '',
    fence: record.fence ?? 0,
    acquiredAt: instant(record.acquiredAt ?? 0),
    expiresAt: instant(endsAt(record)),
    remainingMs: Math.max(0, endsAt(record) - now),
    ...(record.data !== undefined && { data: record.data }),
  };
}

/** What an operator must know of the holder of a broken grant. All instants are epoch milliseconds. */
export const holderTerms = (times: {
  expiresAt: number | undefined;
  heartbeatAt: number | undefined;
  acquiredAt: number | undefined;
}): Pick<Broken, 'holderUntil' | 'lastHeartbeatAt'> => {
  const { expiresAt = Number.NaN, heartbeatAt = Number.NaN, acquiredAt = Number.NaN } = times;
  return {
    holderUntil: isInstant(expiresAt) ? instant(expiresAt) : null,
    lastHeartbeatAt: isInstant(heartbeatAt) && heartbeatAt > acquiredAt ? instant(heartbeatAt) : null,
  };
};

/**
 * One reading of the clock gives both durations, so their sum is never more than the time from `since` to the expiry. With two readings, a clock
 * that is set back in between counts twice, and the caller works past the take-over of its lease. All three are epoch milliseconds.
 */
export const durations = ({ since, expiresAt, now }: { since: number; expiresAt: number; now: number }): Durations => ({
  waitedMs: Math.max(0, Math.min(now, expiresAt) - since),
  remainingMs: Math.max(0, expiresAt - now),
});

export const previousView = (previous: Ended | undefined): Previous | null =>
  previous ? { ...previous, at: instant(previous.at) } : null;

export function leaseView(key: string, record: LeaseRecord | undefined, now: number): LeaseView {
  const state = stateOf(record, now);
  const ends = record && isLeased(record) ? endsAt(record) : Number.NaN;
  return {
    key,
    state,
    holder: record?.holder ?? null,
    fence: record?.fence ?? null,
    acquiredAt: record?.acquiredAt !== undefined && isInstant(record.acquiredAt) ? instant(record.acquiredAt) : null,
    expiresAt: Number.isFinite(ends) ? instant(ends) : null,
    remainingMs: Number.isFinite(ends) ? Math.max(0, ends - now) : null,
    ttlSeconds: record && isLeased(record) && record.ttlMs !== undefined ? record.ttlMs / 1000 : null,
    execution: (record && isLeased(record) && (record.execution ?? record.endedExecution)) || null,
    inGrace: record !== undefined && isInGrace(record),
    ending: record !== undefined && isEnding(record),
    data: record?.data ?? null,
  };
}

const isInGrace = (record: LeaseRecord): boolean =>
  isLeased(record) && record.execution === undefined && record.endedExecution !== undefined;

/** `retryAfterMs` ends when the lease can be had, unless its holder extends it. */
export function leaseHeld(record: LeaseRecord, now: number, clockSkewMs: number): HoldfastError {
  const { key, holder, fence, expiresAt } = leaseView(record.key, record, now);
  const takeover = takeoverAt(record, clockSkewMs);
  // A record without an expiry does not tell when it comes free. A free one was taken in between, and may be free again.
  const retryAfterMs = isLeased(record) && Number.isFinite(takeover) ? Math.max(1, takeover - now) : 1000;
  const by = `the lease is held by ${holder ?? NAMELESS}`;
  const detail = isLeased(record) ? by : 'the lease was held until a moment ago, and may be free by now';
  return new HoldfastError('LeaseHeld', detail, {
    key,
    holder,
    fence,
    expiresAt,
    retryAfterMs,
  });
}

export function leaseLost(
  key: string,
  reason: LostReason | 'cancelled',
  record: LeaseRecord | undefined,
): HoldfastError {
  // The record of a lease that is ending still names the caller itself.
  const holder = record && isLeased(record) && reason !== 'broken' ? (record.holder ?? null) : null;
  const detail = reason === 'cancelled' ? 'the ticket was cancelled' : `the lease is no longer yours: ${reason}`;
  return new HoldfastError('LeaseLost', detail, { key, reason, holder });
}
