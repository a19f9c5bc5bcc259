import type { Ended, Ending } from '../line/ended.ts';
import { isInstant } from '../surroundings/clock.ts';
import type { LeaseRecord } from './record.ts';
import { endsAt, isEnding, isLeased } from './rules.ts';

/** Reasons that `previous` does not have. */
type Unnamed = 'free' | 'undelivered';

/**
 * What a grant says about the holder before it (`previous`). A grant that its caller did not claim, or of which no task was notified, passes on what
 * it had received. Otherwise a caller that has exited in line would hide a holder that left its work half done. A task that received LeaseHeld in
 * place of a grant was notified of none. A holder whose execution has ended may have worked, so it is named.
 * @param how the end of a grant that is still on record. `undelivered`: its holder never received it
 * @param ended when, in epoch milliseconds, and for `broken` by which operator, if the record does not name one
 * @returns undefined if the record does not say
 */
export function endedBefore(
  record: LeaseRecord,
  how: Ending | Unnamed,
  { now, by }: { now: number; by?: string | undefined },
): Ended | undefined {
  const { holder, fence, claimTtlMs, previous, brokenBy } = record;
  const wasUnnotified = how === 'undelivered' || claimTtlMs !== undefined || holder === undefined;
  if (wasUnnotified) return previous;
  if (fence === undefined) return undefined; // a record of another client
  if (!isLeased(record) || how === 'free') return endOnRecord(record, { holder, fence });
  if (how === 'broken') return { holder, fence, ended: how, at: now, by: brokenBy ?? by };
  // The holder gave it back because an operator broke it, and may have left its work half done.
  if (how === 'released' && isEnding(record)) return { holder, fence, ended: 'broken', at: now, by: brokenBy };
  if (how !== 'expired') return { holder, fence, ended: how, at: now };
  const at = endsAt(record);
  return isInstant(at) ? { holder, fence, ended: how, at } : undefined;
}

function endOnRecord(
  { brokenAt, hasEndMark, brokenBy, releasedAt }: LeaseRecord,
  who: Pick<Ended, 'holder' | 'fence'>,
): Ended | undefined {
  if (releasedAt === undefined || !isInstant(releasedAt)) return undefined;
  if (brokenAt === undefined && !hasEndMark) return { ...who, ended: 'released', at: releasedAt };
  return { ...who, ended: 'broken', at: releasedAt, by: brokenBy };
}
