import { HoldfastError } from '../errors.ts';
import { type Acquisition, isOwnOf } from '../line/acquisition.ts';
import type { LostReason } from '../line/calls.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { isInstant } from '../surroundings/clock.ts';
import type { Bound, Leased, LeaseRecord } from './record.ts';

export const LEASE_STATES = ['held', 'expired', 'released', 'free'] as const;
export type LeaseState = (typeof LEASE_STATES)[number];

/** Only the presence of `lease_version` tells the Rust crate whether a record is leased. So it does here. */
export function isLeased(record: LeaseRecord): record is Leased {
  return record.version !== undefined;
}

/** Whether the lease lasts as long as its execution (docs/protocols/bound.md). A free record may still have the attribute. */
export const isBound = (record: LeaseRecord): record is Bound =>
  isLeased(record) && record.execution !== undefined && record.bound === true;

/** Perhaps no task was notified of the grant, and no ttl ends it. A repeat, a heartbeat or a new target shows that the grant is known, by its new version. */
export const isUnnotified = (record: LeaseRecord): record is Bound =>
  isBound(record) && record.unnotifiedVersion === record.version;

/** The ticket of a holder that received the lease in line. Lists of waiters leave it out. */
export const grantedIn = (record: LeaseRecord): ReadonlySet<string | undefined> =>
  new Set(isLeased(record) ? [record.ticket] : []);

/** An operator broke the lease and left its holder the time to end its work (docs/protocols/leases.md#break). */
export const isEnding = (record: LeaseRecord): boolean => isLeased(record) && record.hasEndMark === true;

/** The holder has lost the grant, or is to stop its work: no heartbeat and no repeat of its request gets the grant again. */
export const isOver = (record: LeaseRecord): boolean => !isLeased(record) || isEnding(record);

/**
 * The first millisecond after the lease. A record of the Rust crate runs to the end of the second that it names, as the
 * crate itself compares. Infinite for a record without an expiry, or with one that is no instant.
 */
export function endsAt(record: LeaseRecord): number {
  const { expiresAt, leaseExpirySeconds = Number.POSITIVE_INFINITY } = record;
  const end = expiresAt ?? (leaseExpirySeconds + 1) * 1000;
  return isInstant(end) ? end : Number.POSITIVE_INFINITY;
}

/** The first millisecond at which `isExpired` (conditions.ts) lets another caller take the lease over. */
export function takeoverAt(record: LeaseRecord, clockSkewMs: number): number {
  const strictlyAfter = record.expiresAt === undefined ? 0 : 1;
  return endsAt(record) + clockSkewMs + strictlyAfter;
}

/** Whether another caller may take the lease, or the line may grant it. */
export const canBeHad = (
  record: LeaseRecord,
  { clock, clockSkewMs }: Pick<LeaseDependencies, 'clock' | 'clockSkewMs'>,
): boolean => !isLeased(record) || takeoverAt(record, clockSkewMs) <= clock.now();

/** Whether the current grant answers this request, so that a retry after a lost answer never locks its own caller out. */
export function isRepeatable(record: LeaseRecord, asker: Acquisition, now: number): record is Leased {
  return isOwnOf(record, asker) && isLeased(record) && endsAt(record) > now;
}

export function stateOf(record: LeaseRecord | undefined, now: number): LeaseState {
  if (!record) return 'free';
  if (isLeased(record)) return endsAt(record) > now ? 'held' : 'expired';
  return record.releasedAt === undefined ? 'free' : 'released';
}

/** Why the caller with this lease id does not hold the lease any more. */
export function lostReason(record: LeaseRecord | undefined, leaseId: string): LostReason {
  if (!record) return 'unknown';
  if (record.leaseId === leaseId) return endReason(record);
  if (record.brokenLease === leaseId) return 'broken';
  return record.leaseId !== undefined || isLeased(record) ? 'taken' : 'unknown';
}

/** How the grant ended that a record still remembers, or why it is ending. */
export function endReason(record: LeaseRecord): 'released' | 'broken' {
  return record.brokenAt === undefined && !isEnding(record) ? 'released' : 'broken';
}

/**
 * Whether a record shows the end that a call meant to write. Ask only if a try of the write got no answer: otherwise another call has ended the grant, and
 * two calls would both answer that they did.
 */
export const isEndOf = (
  grant: LeaseRecord,
  { record, isBroken }: { record: LeaseRecord; isBroken: boolean },
): boolean => !isLeased(record) && record.leaseId === grant.leaseId && (endReason(record) === 'broken') === isBroken;

/**
 * Rises strictly while the record stays, because it exceeds the previous fence. If something has removed the record or our attributes, the
 * fence starts from the clock, and rises as far as the clocks agree and the write is not late (`isLate`).
 */
function nextFence(previous: number | undefined, now: number): number {
  return previous === undefined ? now : Math.max(previous + 1, now);
}

/** Another grant, its release, and a third-party client's take and delete are four requests, and hardly fit into this time. */
const PROMPT_MS = 50;

/**
 * True if other grants may have come and gone since the fence of a grant was taken. If its write met no fence, the fence is raised before the grant
 * is answered (docs/protocols/leases.md#late-grants).
 */
export const isLate = ({ acquiredAt }: Pick<LeaseRecord, 'acquiredAt'>, now: number): boolean =>
  now - Number(acquiredAt) > PROMPT_MS;

/** The fence of the next grant. @throws HoldfastError Unavailable if another client left one that no fence can exceed */
export function risingFence({ key, fence }: LeaseRecord, now: number): number {
  const next = nextFence(fence, now);
  if (Number.isSafeInteger(next)) return next;
  throw new HoldfastError(
    'Unavailable',
    `no fence can be higher than ${fence}, the fence on record: an operator must correct the record`,
    { key },
  );
}
