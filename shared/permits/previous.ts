import type { Ended } from '../line/ended.ts';
import type { PoolEntry, PoolRecord } from './record.ts';

/**
 * How a permit ends in the write that grants its room. The task of an `expired` permit may never have been notified. The task of an `undelivered` permit was
 * gone. The record does not remember the requests of the first three, so each may ask again. Only an exclusive grant is released or broken by such a write.
 */
export type HowEnded = 'expired' | 'undelivered' | 'executionEnded' | 'released' | 'broken';

/** A permit that is to end. */
export interface Going {
  entry: PoolEntry;
  how: HowEnded;
  /** The operator that breaks the permit. */
  operator?: string | undefined;
}

/**
 * What grants say about the holders that they replace (docs/protocols/locks.md#previous): the last to end first, and each one once. A permit that its
 * caller did not claim, or of which no task was notified, passes on what it had received. Otherwise a caller that has exited in line would hide a
 * holder that left its work half done.
 */
export const previousOf = (ending: readonly Going[], now: number): Ended[] =>
  ending
    .flatMap((one) => endedBefore(one, now) ?? [])
    .toSorted((one, other) => other.at - one.at || other.fence - one.fence);

function endedBefore({ entry, how, operator }: Going, now: number): Ended | undefined {
  const { holder, fence, expiresAt, claimTtlMs, previous, isEnding, brokenBy = operator } = entry;
  if (claimTtlMs !== undefined || how === 'undelivered') return previous;
  // The holder gave it back because an operator broke it, and may have left its work half done.
  if (how === 'broken' || (how === 'released' && isEnding))
    return { holder, fence, ended: 'broken', at: now, by: brokenBy };
  return { holder, fence, ended: how, at: how === 'expired' ? expiresAt : now };
}

/** What a grant alone says about the last exclusive holder, if the grant ends no other. @param record as it was before the grant */
export const previousAlone = (record: PoolRecord, now: number): Ended | undefined => {
  const [stood] = record.entries;
  return stood ? endedBefore({ entry: stood, how: 'expired' }, now) : (record.last ?? record.previous);
};
