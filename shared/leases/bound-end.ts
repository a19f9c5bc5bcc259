import type { Call } from '../aws/call.ts';
import { type ExpiredRow, hasNumbers } from '../expired/rows.ts';
import type { SpareReason } from '../expired/source.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { releaseHeldBy } from './execution-ended.ts';
import { readRecord } from './read-record.ts';
import { isBound, isLeased } from './rules.ts';

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
  const { fence, waiters } = record;
  if (!isBound(record) || !hasNumbers(identity, { fence }) || waiters !== undefined) return 'changed';
  const { outcome } = await releaseHeldBy(dependencies, { key, execution: record.execution, seen: record }, call);
  return outcome === 'freed' ? undefined : 'changed';
}
