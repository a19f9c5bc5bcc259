import type { Margins } from './dependencies.ts';
import type { CleanInput } from './inputs.ts';
import { COMMIT_ROWS } from './nameservice.ts';
import type { ExpiredRow } from './rows.ts';

/** Why a reported record was left alone. */
export type SpareReason =
  /** It expired less long ago than was asked for, or than fences are kept. */
  | 'tooYoung'
  /** The record does not say when it expired. */
  | 'ageUnknown'
  /** DynamoDB never deletes it either, by a fault of its TTL, and `neverDeletable` did not ask for it. */
  | 'neverDeletable'
  /** Parked callers are woken or failed by the queue's own repair; a ticket that vanished would leave one hanging. */
  | 'leftToQueue'
  /** A part of a ledger's record: without it the rest is broken. */
  | 'partOfRecord'
  /** The next grant's fence might not rise above this one's. */
  | 'fenceAhead'
  /** Its attributes cannot be compared, so it could not be told from another record. */
  | 'unrecognisable'
  /** It is no longer the very record reported, or somebody is parked behind it. */
  | 'changed'
  /** It was deleted meanwhile. */
  | 'gone';

/** Ages are judged anew, for a report may be old. @returns why not to try, or undefined */
export function reasonToSpare(
  row: ExpiredRow,
  { olderThanSeconds, neverDeletable }: Pick<CleanInput, 'olderThanSeconds' | 'neverDeletable'>,
  margins: Margins,
  now: number,
): SpareReason | undefined {
  const { kind, key, expiredAt, ttlFault, identity } = row;
  if (kind === 'waiter') return 'leftToQueue';
  if (kind === 'nameserviceRow' && !key.sk?.startsWith(COMMIT_ROWS)) return 'partOfRecord';
  if (expiredAt === null) return 'ageUnknown';
  // What is merely too old has expired like any other; DynamoDB is only too careful to delete it.
  if (ttlFault !== null && ttlFault !== 'olderThanFiveYears' && !neverDeletable) return 'neverDeletable';
  if (identity === null) return 'unrecognisable';
  const ageMs = now - Date.parse(expiredAt);
  if (ageMs < leastAgeSeconds(olderThanSeconds, margins) * 1000 || ageMs <= stillAwaitedMs(row, margins))
    return 'tooYoung';
  if (!fenceIsBelow(row, now - margins.clockSkewMs)) return 'fenceAhead';
  return undefined;
}

/** Whatever is asked for, nothing younger than released leases are kept for their fences. */
export const leastAgeSeconds = (asked: number, { fenceRetentionSeconds }: Margins) =>
  Math.max(asked, fenceRetentionSeconds);

/** How long others may count the timeout of a commit's record. */
function stillAwaitedMs({ kind, identity }: ExpiredRow, { maxClockSkewRate }: Margins): number {
  const { timeout } = identity ?? {};
  return kind === 'commit' && timeout && 'N' in timeout ? Number(timeout.N) * maxClockSkewRate : 0;
}

/** After the deletion the next grant's fence is the time of the grant. */
function fenceIsBelow({ kind, identity }: ExpiredRow, now: number): boolean {
  if (kind !== 'abandonedLease' && kind !== 'releasedLease') return true;
  const { fence } = identity ?? {};
  if (!fence) return true;
  return 'N' in fence && Number(fence.N) < now;
}
