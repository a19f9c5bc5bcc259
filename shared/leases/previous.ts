import { isInstant } from '../clock.ts';
import type { Ended, Ending } from './ended.ts';
import type { LeaseRecord } from './record.ts';
import { endsAt, isLeased } from './rules.ts';

/** Ends that no holder is told of by these names. */
type Unnamed = 'free' | 'undelivered' | 'perhapsUnheard';

/**
 * What the next holder learns of the one before. A grant that its caller did not claim, or that no task heard of, passes on what it was
 * given: else a dead caller in line would hide a holder that left its work half done. A task that took LeaseHeld in its place heard of none.
 * Where nobody knows whether the task heard of it, the task may have worked, and is named.
 * @param how the end of a grant that is still on record; `undelivered` where nobody heard of it
 * @returns undefined if the record does not tell
 */
export function endedBefore(record: LeaseRecord, how: Ending | Unnamed, now: number): Ended | undefined {
  const { holder, fence, claimTtlMs, previous } = record;
  const wasUnheard = how === 'undelivered' || claimTtlMs !== undefined || holder === undefined;
  if (wasUnheard) return previous;
  if (fence === undefined) return undefined; // a record of another client
  if (!isLeased(record) || how === 'free') return endOnRecord(record, { holder, fence });
  if (how !== 'expired') return { holder, fence, ended: how === 'perhapsUnheard' ? 'executionEnded' : how, at: now };
  const at = endsAt(record);
  return isInstant(at) ? { holder, fence, ended: how, at } : undefined;
}

function endOnRecord(
  { brokenAt, endedByExecution, releasedAt }: LeaseRecord,
  who: Pick<Ended, 'holder' | 'fence'>,
): Ended | undefined {
  if (releasedAt === undefined || !isInstant(releasedAt)) return undefined;
  const ended = endedByExecution ? 'executionEnded' : 'released';
  return { ...who, ended: brokenAt === undefined ? ended : 'broken', at: releasedAt };
}
