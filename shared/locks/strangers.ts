import { GetItemCommand } from '@aws-sdk/client-dynamodb';
import { text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import type { Item } from '../aws/dynamodb.ts';
import { reading, send } from '../aws/send.ts';
import { HoldfastError } from '../errors.ts';
import { repairLease } from '../leases/repair.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { isPool, type Kind, kindOf, OtherKind } from '../line/kind.ts';
import { failTask } from '../line/notify.ts';
import type { Looking } from '../line/repair/looking.ts';
import { isTask, type Waiter } from '../line/waiters.ts';
import { deleteOver } from '../line/waiting-calls.ts';
import { repairPoolLine } from '../permits/repair.ts';
import { changeKind } from './change-kind.ts';

type Repairing = Looking & { fence: number | undefined };

/**
 * Serves strangers: the waiters of a key that wait for the other kind of lock (docs/protocols/kinds.md#waiters-of-the-other-kind). A third-party client or TTL has
 * deleted the record under the line, and the next caller has made the key the other kind. If no caller has the key, the key changes its kind. Otherwise
 * tasks fail with WrongKind. Calls look at the record, and leave the line without this function.
 * @returns whether to look at the key again in this run
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function settleStrangers(dependencies: LeaseDependencies, found: Repairing, call: Call): Promise<boolean> {
  const { key, strangers } = found;
  const item = await readItem(dependencies, key, call);
  const kind: Kind = item && isPool(item) ? 'pool' : 'lease';
  const others = strangers.filter((waiter) => kindOf(waiter) !== kind);
  if (others.length === 0) return false; // the kind has changed since, and the next run serves them
  try {
    const to = kind === 'pool' ? 'lease' : 'pool';
    if (item) await changeKind(dependencies, { key, item, to }, call);
    const next = { ...found, strangers: [] };
    if (to === 'lease') return await repairLease(dependencies, next, call);
    await repairPoolLine(dependencies, next, call);
  } catch (error) {
    if (!(error instanceof HoldfastError) || error.code !== 'WrongKind') throw error;
    // Another call has changed the kind, and the next run looks again.
    if (!(error instanceof OtherKind)) await refuseAll(dependencies, { others, error, found }, call);
  }
  return false;
}

async function refuseAll(
  dependencies: LeaseDependencies,
  { others, error, found: { repaired } }: { others: readonly Waiter[]; error: HoldfastError; found: Repairing },
  call: Call,
): Promise<void> {
  for (const waiter of others)
    if (isTask(waiter)) {
      if ((await failTask(dependencies, { waiter, error }, call)) === 'unanswered') repaired.unanswered++;
    } else if (waiter.keepUntil <= dependencies.clock.now()) await deleteOver(dependencies, waiter, call);
}

async function readItem({ dynamodb, table }: LeaseDependencies, key: string, call: Call): Promise<Item | undefined> {
  const command = new GetItemCommand({ TableName: table, Key: { key: text(key) }, ConsistentRead: true });
  return (await send(dynamodb, { command, operation: reading(`table ${table}`) }, call)).Item;
}
