import { UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { integer } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { all, type Condition, conditionFields } from '../aws/condition.ts';
import { conditionalWrite, type Item } from '../aws/dynamodb.ts';
import { conflictPauses, transact } from '../aws/transaction.ts';
import { HoldfastError } from '../errors.ts';
import type { Clock } from '../surroundings/clock.ts';
import { readRows } from './alias-rows.ts';
import { isAbsent, isKnownLayout, isOfKind, isRepairedBefore, isThere, REPAIRED_AT } from './conditions.ts';
import { type AliasWrite, writingTable } from './dependencies.ts';
import { type Concern, initialItem, itemKey, type RecordKind } from './items.ts';
import { kindOf } from './record.ts';
import { refuseLaterLayout } from './results.ts';
import { numberOf } from './values.ts';

/** How far a writer's clock may be ahead of the clock that repairs. */
const MARGIN_MS = 1000;

export interface ItemUpdate {
  concern: Concern;
  condition: Condition;
  /** The expression after `SET updated_at_ms = :now, `. */
  set: string;
  remove?: string[];
  values: Item;
  names?: Record<string, string>;
  /** Whether the update is a repair. A write that was sent before a repair cannot land after it. */
  repairs?: true;
  /** The kinds of records for which a missing item is restored before the update. */
  kinds: readonly RecordKind[];
}

/**
 * The outcome of an update.
 * - `old`: the item that is there. Undefined if the concern does not exist; then `kind` is the kind of the alias, if it
 *   has one.
 * - `unanswered`: a try got no answer, so the update may have landed, and another caller may have replaced its value
 *   since.
 * - `mayBeUndone`: if the update landed, a repair may have taken it back since, or the item may have been removed.
 */
type UpdateOutcome =
  | { won: true }
  | { won: false; unanswered: boolean; mayBeUndone: boolean; old: Item }
  | { won: false; unanswered: boolean; old?: undefined; kind: RecordKind | undefined };

/**
 * Updates an item with one conditional UpdateItem. If the item does not exist, the call reads the alias. If the alias
 * has a record of a suitable kind, the call restores the item with its initial values, and then updates it. See
 * docs/protocols/nameservice.md#update.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function updateConcern(write: AliasWrite, update: ItemUpdate): Promise<UpdateOutcome> {
  const { dependencies, alias, call } = write;
  const first = await tryUpdate(write, update);
  if (first.won) return first;
  if (first.old) return { ...first, old: first.old };

  const rows = await readRows(dependencies, alias, call);
  refuseLaterLayout([rows.meta], writingTable(dependencies.table, write.request), first.unanswered);
  const kind = kindOf(rows.meta);
  if (!kind || !update.kinds.includes(kind)) return { won: false, unanswered: first.unanswered, kind };
  await restore(write, update.concern, kind);
  const second = await tryUpdate(write, update);
  if (second.won) return second;
  const unanswered = first.unanswered || second.unanswered;
  if (!second.old) return { won: false, unanswered, kind: undefined };
  return { ...second, unanswered, mayBeUndone: second.mayBeUndone || first.unanswered, old: second.old };
}

async function tryUpdate({ dependencies, alias, request, call }: AliasWrite, update: ItemUpdate) {
  const { dynamodb, clock, ids, table } = dependencies;
  const operation = writingTable(table, request);
  const pauses = conflictPauses(ids);
  for (;;) {
    const now = clock.now();
    try {
      const command = updateCommand(update, { table, key: itemKey(alias, update.concern), now });
      const outcome = await conditionalWrite(dynamodb, { command, operation }, call);
      if (outcome.won) return outcome;
      refuseLaterLayout([outcome.old], operation, outcome.unanswered);
      const repairedAt = numberOf(outcome.old?.[REPAIRED_AT]);
      const mayBeUndone = repairedAt !== undefined && repairedAt >= now;
      // If a try got no answer, this write may itself be the repair, or the repair may have undone it. The caller of
      // this function decides by the item.
      if (!mayBeUndone || outcome.unanswered) return { ...outcome, mayBeUndone };
      await waitUntilAfter(repairedAt - now, clock, call);
    } catch (error) {
      if (!metTransaction(error)) throw error;
      const pause = pauses.next();
      if (pause.done) throw error;
      await clock.sleep(Math.min(pause.value, call.timeLeftMs()));
    }
  }
}

function updateCommand(update: ItemUpdate, { table, key, now }: { table: string; key: Item; now: number }) {
  const { concern: _, kinds: __, condition, set, remove = [], repairs, ...placeholders } = update;
  const repaired = repairs ? `, ${REPAIRED_AT} = :repairedAt` : '';
  const removed = remove.length > 0 ? ` REMOVE ${remove.join(', ')}` : '';
  const repairedAt = repairs && { ':repairedAt': integer(now + MARGIN_MS) };
  return new UpdateItemCommand({
    TableName: table,
    Key: key,
    UpdateExpression: `SET updated_at_ms = :now, ${set}${repaired}${removed}`,
    ...conditionFields(all(isThere, isKnownLayout, condition, isRepairedBefore(now)), {
      ...placeholders,
      values: { ...placeholders.values, ...repairedAt },
    }),
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  });
}

/**
 * Waits until the repair lies in the past by the clock of this call, so that the next try counts as sent after the
 * repair.
 */
async function waitUntilAfter(ms: number, clock: Clock, call: Call): Promise<void> {
  if (ms >= call.timeLeftMs())
    throw new HoldfastError(
      'Unavailable',
      'a caller whose clock is ahead has just repaired the record: send the same call again',
      {
        retryAfterMs: ms + 1,
      },
    );
  await clock.sleep(ms + 1, call.signal);
}

/** Whether the write met a transaction on the item, such as the creation of a ledger. */
function metTransaction(error: unknown): boolean {
  if (!(error instanceof HoldfastError) || error.code !== 'Throttled') return false;
  return error.cause instanceof Error && error.cause.name === 'TransactionConflictException';
}

/**
 * Restores a missing item. The outcome does not matter: if a condition fails, another caller has restored the item, or
 * the alias is gone.
 */
async function restore(
  { dependencies, alias, request, call }: AliasWrite,
  concern: Concern,
  kind: RecordKind,
): Promise<void> {
  if (concern === 'meta') return;
  const { clock, table, pointerStyle } = dependencies;
  const check = {
    TableName: table,
    Key: itemKey(alias, 'meta'),
    ...conditionFields(all(isOfKind(kind), isKnownLayout)),
  };
  const put = {
    TableName: table,
    Item: initialItem(alias, concern, { now: clock.now(), style: pointerStyle }),
    ...conditionFields(isAbsent),
  };
  const items = [{ ConditionCheck: check }, { Put: put }];
  await transact(dependencies, { items, operation: writingTable(table, request) }, call);
}
