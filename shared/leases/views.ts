import type { Json } from '../aws/attributes.ts';
import { HoldfastError } from '../errors.ts';
import type { LeaseGrant, LostReason } from '../line/calls.ts';
import { NAMELESS } from '../line/calls.ts';
import { ASK_EVERY_MS } from '../line/times.ts';
import { isInstant } from '../surroundings/clock.ts';
import type { LeaseRecord } from './record.ts';
import { endsAt, isBound, isEnding, isLeased, type LeaseState, stateOf, takeoverAt } from './rules.ts';

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
  /** Whether the lease lasts as long as that execution. */
  bound: boolean;
  /** Whether that execution has ended, and the lease goes on as an ordinary lease (grace.ts). */
  inGrace: boolean;
  /** Whether an operator broke it, and it stays until its holder releases it or its ttl ends. */
  ending: boolean;
  /** When an operator broke the lease, or the last lease of a key without a holder. Null if no operator did, or if the record does not say. */
  brokenAt: string | null;
  /** The authenticated operator that broke the lease: an IAM ARN, or the subject of a JWT. Null as for `brokenAt`. */
  brokenBy: string | null;
  data: Json;
}

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
    ...(isBound(record) && { bound: true }),
    ...(record.data !== undefined && { data: record.data }),
  };
}

/** The end of an execution removes the holder with its request, and keeps the name for `previous` of the next grant. */
const holderOfEnded = ({ previous, fence }: Pick<LeaseRecord, 'previous' | 'fence'> = {}): string | null =>
  previous?.fence === fence ? (previous?.holder ?? null) : null;

export function leaseView(key: string, record: LeaseRecord | undefined, now: number): LeaseView {
  const state = stateOf(record, now);
  const ends = record && isLeased(record) ? endsAt(record) : Number.NaN;
  return {
    key,
    state,
    holder: record?.holder ?? holderOfEnded(record),
    fence: record?.fence ?? null,
    acquiredAt: record?.acquiredAt !== undefined && isInstant(record.acquiredAt) ? instant(record.acquiredAt) : null,
    expiresAt: Number.isFinite(ends) ? instant(ends) : null,
    remainingMs: Number.isFinite(ends) ? Math.max(0, ends - now) : null,
    ttlSeconds: record && isLeased(record) && record.ttlMs !== undefined ? record.ttlMs / 1000 : null,
    execution: (record && isLeased(record) && (record.execution ?? record.endedExecution)) || null,
    bound: record !== undefined && isBound(record),
    inGrace: record !== undefined && isInGrace(record),
    ending: record !== undefined && isEnding(record),
    brokenAt: brokenAtOf(record),
    brokenBy: record?.brokenBy ?? null,
    data: record?.data ?? null,
  };
}

/** The first break, if the mark was followed by a break at once. */
function brokenAtOf({ endingAt, brokenAt }: Partial<LeaseRecord> = {}): string | null {
  const at = endingAt ?? brokenAt;
  return at !== undefined && isInstant(at) ? instant(at) : null;
}

const isInGrace = (record: LeaseRecord): boolean =>
  isLeased(record) && record.execution === undefined && record.endedExecution !== undefined;

/** `retryAfterMs` ends when the lease can be had, unless its holder extends it, or when a call asks again about the execution that it is bound to. */
export function leaseHeld(record: LeaseRecord, now: number, clockSkewMs: number): HoldfastError {
  const { key, holder, fence, expiresAt } = leaseView(record.key, record, now);
  const takeover = takeoverAt(record, clockSkewMs);
  // A record without an expiry does not say when it comes free. A free one was taken in between, and may be free again.
  const expiresInMs = isLeased(record) && Number.isFinite(takeover) ? Math.max(1, takeover - now) : 1000;
  const retryAfterMs = isBound(record) ? Math.min(expiresInMs, ASK_EVERY_MS) : expiresInMs;
  const by = `the lease is held by ${holder ?? NAMELESS}${isBound(record) ? ' until its execution ends' : ''}`;
  const detail = isLeased(record) ? by : 'the lease was held a moment ago, and may be free now: send the call again';
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
  const detail =
    reason === 'cancelled'
      ? 'an operator cancelled the waiter, or the caller withdrew it'
      : `the lease is no longer yours (${reason}): stop the work under the lease`;
  return new HoldfastError('LeaseLost', detail, { key, reason, holder });
}
