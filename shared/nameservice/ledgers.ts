import { all, not } from '../aws/condition.ts';
import { isOfKind, isRetracted } from './conditions.ts';
import { putNew, transactIdempotently } from './create.ts';
import { type AliasWrite, writingTable } from './dependencies.ts';
import { ledgerItems, type RecordKind } from './items.ts';
import { itemsByConcern, kindOf, type NameserviceRecord, shownRecord } from './record.ts';
import { alreadyExists, conflictOrUnknown, notFoundOrUnknown, type Published, published } from './results.ts';
import { updateConcern } from './update.ts';
import { booleanAttribute } from './values.ts';

/**
 * Creates a ledger with one transaction of its five items.
 * @throws HoldfastError AlreadyExists, Throttled, Unavailable, OutcomeUnknown
 */
export async function initLedger(write: AliasWrite): Promise<Published<NameserviceRecord>> {
  const { dependencies, alias } = write;
  const { table, pointerStyle } = dependencies;
  const itemsAt = (now: number) => ledgerItems(alias, { now, style: pointerStyle });
  const outcome = await transactIdempotently(write, 'create', (stamp) => putNew(table, itemsAt(stamp.now), stamp));
  const rows = outcome.won ? itemsByConcern(itemsAt(outcome.writtenAt)) : outcome.rows;
  const record = shownRecord(rows, pointerStyle);
  if (record?.kind !== 'ledger' || !(outcome.won || outcome.repeated)) throw alreadyExists(alias, record?.kind);
  return published(alias, record, outcome.won ? { created: true } : { repeated: true });
}

/**
 * Marks a record as retracted with one conditional UpdateItem. The record stays readable and writable.
 * @throws HoldfastError NotFound (there is no record of that kind, and the call does not create one), Throttled,
 *   Unavailable, OutcomeUnknown
 */
export async function retract(write: AliasWrite, kind: RecordKind): Promise<Published<{ retracted: true }>> {
  const { dependencies, alias, request } = write;
  const operation = writingTable(dependencies.table, request);
  const update = {
    concern: 'meta' as const,
    condition: all(isOfKind(kind), not(isRetracted)),
    set: 'retracted = :true',
    values: { ':true': booleanAttribute(true) },
    kinds: [],
  };
  const outcome = await updateConcern(write, update);
  if (outcome.won) return published(alias, { retracted: true });
  const found = outcome.old && kindOf(outcome.old);
  if (found !== kind) throw notFoundOrUnknown(alias, kind, { found, unanswered: outcome.unanswered, operation });
  const retracted = outcome.old?.retracted?.BOOL ?? false;
  // A try got no answer, and an operator has taken a retraction back since. It may have been the retraction of this
  // call.
  if (!retracted) throw conflictOrUnknown({ alias, what: 'flag', actual: { retracted }, unanswered: true }, operation);
  return published(alias, { retracted: true }, { repeated: true });
}
