import type { Call } from '../aws/call.ts';
import { type ExpiredRow, hasNumbers } from '../expired/rows.ts';
import type { SpareReason } from '../expired/source.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { getWaiter } from '../line/waiters.ts';
import { type HeldOutcome, releaseHeldBy } from './execution-ended.ts';
import { readRecord } from './read-record.ts';
import type { Bound } from './record.ts';
import { isBound, isLeased } from './rules.ts';

/**
 * Asks about the execution of a bound lease, and ends the lease if that execution has ended (docs/protocols/bound.md#the-judgement).
 * @param record as it was read or written before this call
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function endBound(dependencies: LeaseDependencies, record: Bound, call: Call): Promise<HeldOutcome> {
  const { key, ticket, execution } = record;
  const row = ticket === undefined ? undefined : await getWaiter(dependencies, { key, ticket }, call);
  const until = dependencies.clock.now();
  const held = { key, execution, settled: false, until, tickets: row ? [row.ticket] : [], seen: record };
  return releaseHeldBy(dependencies, held, call);
}

/**
 * Ends a bound lease for the clean-up, if it is as reported and its execution has ended. If the key has a line, a look ends the lease.
 * @returns why it was spared, or undefined if it has ended
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function endIfOver(
  dependencies: LeaseDependencies,
  { key: { key = '' }, identity }: Pick<ExpiredRow, 'key' | 'identity'>,
  call: Call,
): Promise<SpareReason | undefined> {
  const record = await readRecord(dependencies, key, call);
  if (!isLeased(record)) return 'gone';
  const { fence, boundAt, waiters } = record;
  const isReported = hasNumbers(identity, { fence, bound_at: boundAt });
  if (!isBound(record) || !isReported || waiters !== undefined) return 'changed';
  const { outcome } = await endBound(dependencies, record, call);
  return outcome === 'freed' ? undefined : 'changed';
}
