import type { ExpiredRow } from '../expired/rows.ts';
import type { Margins, SpareReason } from '../expired/source.ts';
import type { CleanInput } from './inputs.ts';
import type { Kind } from './kinds.ts';
import { sourceOf } from './sources.ts';

/** Ages are judged anew, for a report may be old. @returns why not to try, or undefined */
export function reasonToSpare(
  row: ExpiredRow<Kind>,
  { olderThanSeconds, neverDeletable }: Pick<CleanInput, 'olderThanSeconds' | 'neverDeletable'>,
  { margins, now }: { margins: Margins; now: number },
): SpareReason | undefined {
  const { kind, expiredAt, ttlFault, identity } = row;
  const source = sourceOf(kind);
  const untouchable = source.untouchable?.(row);
  if (untouchable) return untouchable;
  if (expiredAt === null) return 'ageUnknown';
  // What is merely too old has expired like any other; DynamoDB is only too careful to delete it.
  if (ttlFault !== null && ttlFault !== 'olderThanFiveYears' && !neverDeletable) return 'neverDeletable';
  if (identity === null) return 'unrecognisable';
  const ageMs = now - Date.parse(expiredAt);
  if (ageMs <= 0 || ageMs < leastAgeSeconds(olderThanSeconds, margins) * 1000) return 'tooYoung';
  return source.reasonToSpare?.(row, margins, now);
}

/** Whatever is asked for, nothing younger than released leases are kept for their fences. */
export const leastAgeSeconds = (asked: number, { fenceRetentionSeconds }: Margins) =>
  Math.max(asked, fenceRetentionSeconds);
