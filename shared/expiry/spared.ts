import type { CleanInput } from './inputs.ts';
import type { Kind } from './kinds.ts';
import type { ExpiredRow } from './sources/rows.ts';
import type { ExpirySource, Margins, SpareReason } from './sources/source.ts';

/**
 * Decides whether the clean-up spares a record. The age is judged again, because the report may be old.
 * @returns why it is spared, or undefined
 */
export function reasonToSpare(
  row: ExpiredRow<Kind>,
  { olderThanSeconds, neverDeletable }: Pick<CleanInput, 'olderThanSeconds' | 'neverDeletable'>,
  { source, margins, now }: { source: ExpirySource<Kind>; margins: Margins; now: number },
): SpareReason | undefined {
  const { expiredAt, ttlFault, identity } = row;
  const untouchable = source.untouchable?.(row);
  if (untouchable) return untouchable;
  if (expiredAt === null) return 'ageUnknown';
  // A record whose TTL is more than five years old has surely expired, although DynamoDB does not delete it.
  if (ttlFault !== null && ttlFault !== 'olderThanFiveYears' && !neverDeletable) return 'neverDeletable';
  if (identity === null) return 'unrecognisable';
  const ageMs = now - Date.parse(expiredAt);
  if (ageMs <= 0 || ageMs < minAgeSeconds(olderThanSeconds, margins) * 1000) return 'tooYoung';
  return source.reasonToSpare?.(row, margins, now);
}

/** The least age of a deletion: what the caller asked for, or the retention of fences if that is longer. */
export const minAgeSeconds = (olderThanSeconds: number, { fenceRetentionSeconds }: Margins) =>
  Math.max(olderThanSeconds, fenceRetentionSeconds);
