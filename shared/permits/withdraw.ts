import type { Call } from '../aws/call.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import type { GrantEnd, WithdrawableLock } from '../line/withdrawal.ts';
import { requestName } from './identity.ts';
import { readPool } from './read.ts';
import { ending, entryOf, type PoolEntry, type PoolRecord } from './record.ts';
import { endPermit, handOffToLine } from './release.ts';

/** The pool of a key, for a call that ends waiters and permits. */
export const withdrawablePool = (
  dependencies: LeaseDependencies,
  key: string,
  call: Call,
): WithdrawableLock<PoolRecord> => ({
  table: dependencies.table,
  read: () => readPool(dependencies, key, call),
  grantOf: ({ entries }, ticket) => entries.find((one) => one.ticket === ticket),
  own: (record, asker) => {
    const entry = entryOf(record, requestName(asker));
    return entry && { ticket: entry.ticket, end: () => endOwn(dependencies, entry, { key, call }) };
  },
  // If it does not, a try without an answer may have ended the permit, and eight others have ended since.
  remembers: (record, asker) => ending(record, requestName(asker)) !== undefined,
  handOffToLine: (record) => handOffToLine(dependencies, { record }, call),
});

async function endOwn(
  dependencies: LeaseDependencies,
  { name, id, ticket }: PoolEntry,
  { key, call }: { key: string; call: Call },
): Promise<GrantEnd> {
  const { won, record, unanswered } = await endPermit(dependencies, { key, proof: { name, id } }, call);
  // A try of the SDK's own may have landed before the one that lost.
  if (!won && !(unanswered && ending(record, name) === 'released')) return unanswered ? 'inDoubt' : 'changed';
  await handOffToLine(dependencies, { record, ticket }, call);
  return 'ended';
}
