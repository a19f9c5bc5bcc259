import type { Ended } from '../line/ended.ts';
import type { PoolEntry } from './record.ts';

/**
 * How a permit ends in the write that grants its place. The task of an `expired` one may never have been notified. The task of an `undelivered` one was
 * gone. None of their requests is remembered: each may ask again.
 */
type HowEnded = 'expired' | 'undelivered' | 'executionEnded';

/** A permit that is to end. */
export interface Going {
  entry: PoolEntry;
  how: HowEnded;
}

/**
 * What grants say about the holders that they replace (docs/protocols/pools.md#previous): the last to end first, and each one once. A permit that its
 * caller did not claim, or of which no task was notified, passes on what it had received. Otherwise a caller that has exited in line would hide a
 * holder that left its work half done.
 */
export const previousOf = (ending: readonly Going[], now: number): Ended[] =>
  ending
    .flatMap((one) => endedBefore(one, now) ?? [])
    .toSorted((one, other) => other.at - one.at || other.fence - one.fence);

function endedBefore({ entry, how }: Going, now: number): Ended | undefined {
  const { holder, fence, expiresAt, claimTtlMs, previous } = entry;
  if (claimTtlMs !== undefined || how === 'undelivered') return previous;
  return { holder, fence, ended: how, at: how === 'expired' ? expiresAt : now };
}
