import type { Ended, Ending } from '../line/ended.ts';
import { isInstant } from '../surroundings/clock.ts';
import type { LeaseRecord } from './record.ts';
import { endsAt, isEnding, isLeased } from './rules.ts';

/** Reasons that `previous` does not have. */
type Unnamed = 'free' | 'undelivered' | 'perhapsUnnotified';

/**
 * What a grant says about the holder before it (`previous`). A grant that its caller did not claim, or of which no task was notified, passes on what
 * it had received. Otherwise a caller that has exited in line would hide a holder that left its work half done. A task that received LeaseHeld in
 * place of a grant was notified of none. A task of which nothing is known may have worked, so it is named.
 * @param how the end of a grant that is still on record. `undelivered`: its holder never received it
 * @returns undefined if the record does not say
 */
export function endedBefore(record: LeaseRecord, how: Ending | Unnamed, now: number): Ended | undefined {
  const { holder, fence, claimTtlMs, previous } = record;
  const wasUnnotified = how === 'undelivered' || claimTtlMs !== undefined || holder === undefined;
  if (wasUnnotified) return previous;
  if (fence === undefined) return undefined; // a record of another client
  if (!isLeased(record) || how === 'free') return endOnRecord(record, { holder, fence });
  // The holder gave it back because an operator broke it, and may have left its work half done.
  if (how === 'released' && isEnding(record)) return { holder, fence, ended: 'broken', at: now };
  if (how !== 'expired') return { holder, fence, ended: how === 'perhapsUnnotified' ? 'executionEnded' : how, at: now };
  const at = endsAt(record);
  return isInstant(at) ? { holder, fence, ended: how, at } : undefined;
}

function endOnRecord(
  { brokenAt, hasEndMark, endedByExecution, releasedAt }: LeaseRecord,
  who: Pick<Ended, 'holder' | 'fence'>,
): Ended | undefined {
  if (releasedAt === undefined || !isInstant(releasedAt)) return undefined;
  if (brokenAt === undefined && endedByExecution) return { ...who, ended: 'executionEnded', at: releasedAt };
  return { ...who, ended: brokenAt !== undefined || hasEndMark ? 'broken' : 'released', at: releasedAt };
}
