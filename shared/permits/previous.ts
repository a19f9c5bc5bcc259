import type { Ended } from '../line/ended.ts';
import { RING } from './identity.ts';
import type { PoolEntry } from './record.ts';

/**
 * How a permit ends in the write that grants its place. The task of an `expired` one may never have been notified. The task of an `undelivered` one was gone.
 * The request of an `executionEnded` one is remembered, and that of a `perhapsUnnotified` one is not: its execution has ended too, but its holder may never have been notified of it.
 */
type HowEnded = 'expired' | 'undelivered' | 'executionEnded' | 'perhapsUnnotified';

/** A permit that is to end. */
export interface Going {
  entry: PoolEntry;
  how: HowEnded;
}

/** The requests that the record remembers as released: the last ones, if more end in one write. */
export const rememberedOf = (ending: readonly Going[]): string[] =>
  ending.flatMap(({ entry, how }) => (how === 'executionEnded' ? [entry.name] : [])).slice(-RING);

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
  return how === 'expired'
    ? { holder, fence, ended: how, at: expiresAt }
    : { holder, fence, ended: 'executionEnded', at: now };
}
