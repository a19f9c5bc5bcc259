import type { CleanInput } from './inputs.ts';
import type { Kind } from './kinds.ts';
import type { ExpiredRow } from './sources/rows.ts';
import type { ExpirySource, Margins, SpareReason } from './sources/source.ts';

/** Judges ages again, because a report may be old. @returns why the record is spared, or undefined */
export function reasonToSpare(
  row: ExpiredRow<Kind>,
  { olderThanSeconds, neverDeletable }: Pick<CleanInput, 'olderThanSeconds' | 'neverDeletable'>,
  { source, margins, now }: { source: ExpirySource<Kind>; margins: Margins; now: number },
): SpareReason | undefined {
  const { expiredAt, ttlFault, identity } = row;
  const untouchable = source.untouchable?.(row);
  if (untouchable) return untouchable;
  if (expiredAt === null) return 'ageUnknown';
  // A record whose TTL is too old has expired like any other. DynamoDB is only too careful to delete it.
  if (ttlFault !== null && ttlFault !== 'olderThanFiveYears' && !neverDeletable) return 'neverDeletable';
  if (identity === null) return 'unrecognisable';
  const ageMs = now - Date.parse(expiredAt);
  if (ageMs <= 0 || ageMs < leastAgeSeconds(olderThanSeconds, margins) * 1000) return 'tooYoung';
  return source.reasonToSpare?.(row, margins, now);
}

/** The age that the caller asked for, but never less than the retention of fences. */
export const leastAgeSeconds = (asked: number, { fenceRetentionSeconds }: Margins) =>
  Math.max(asked, fenceRetentionSeconds);
