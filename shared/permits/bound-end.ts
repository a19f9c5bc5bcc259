import type { Call } from '../aws/call.ts';
import { type ExpiredRow, hasNumbers } from '../expired/rows.ts';
import type { SpareReason } from '../expired/source.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { endPermitsOf } from './execution-ended.ts';
import { readPool } from './read.ts';
import { entryOf, isBound } from './record.ts';

/**
 * Ends a bound grant for the clean-up, if it is as reported and its execution has ended. If the key has a line, a look ends the grant.
 * @returns why it was spared, or undefined if it has ended
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function endIfOver(
  dependencies: LeaseDependencies,
  { key: { key = '' }, identity }: Pick<ExpiredRow, 'key' | 'identity'>,
  call: Call,
): Promise<SpareReason | undefined> {
  const name = identity?.name;
  if (!name || !('S' in name)) return 'unrecognisable';
  const pool = await readPool(dependencies, key, call);
  const entry = entryOf(pool, name.S);
  if (!entry) return 'gone';
  if (!isBound(entry) || pool.mark !== undefined) return 'changed';
  const { execution, id, fence } = entry;
  if (!hasNumbers(identity, { fence })) return 'changed';
  const { freed } = await endPermitsOf(dependencies, { key, execution, only: id }, call);
  return freed > 0 ? undefined : 'changed';
}
