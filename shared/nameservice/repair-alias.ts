import { integer, text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { all } from '../aws/condition.ts';
import { aliasText } from './alias.ts';
import { isAt, isOfKind, isRetracted } from './conditions.ts';
import { configChange } from './config.ts';
import { type AliasWrite, type NameserviceDependencies, writingTable } from './dependencies.ts';
import type { RecordKind } from './items.ts';
import { checkAddress, checkContext, INDEX_REVISION, type Pointer, pointerNames, pointerOf } from './pointers.ts';
import { purge } from './purge.ts';
import { kindOf, type LedgerConfig, type Status } from './record.ts';
import { REF_CONCERNS } from './refs.ts';
import type { RepairAliasInput } from './repair-inputs.ts';
import { aliasNotFound, conflictOrUnknown, notFoundOrUnknown } from './results.ts';
import { statusChange } from './status.ts';
import { type ItemUpdate, updateConcern } from './update.ts';
import { booleanAttribute } from './values.ts';
import { setValue, type VersionedChange } from './versioned.ts';

export interface RepairedAlias {
  alias: string;
  op: RepairAliasInput['op'];
  /** True if an earlier try of this call had landed. */
  repeated: boolean;
  /** The state after the repair. Null after a purge. */
  current: Pointer | Status | LedgerConfig | { retracted: false } | null;
}

/**
 * Sets a record back for an operator, which publishing cannot do. Each operation lowers a counter, takes a flag back or
 * removes an alias, if it is as the operator saw it. See docs/protocols/nameservice.md#repair.
 * @throws HoldfastError Conflict (`actual`), NotFound, InvalidRequest, Throttled, Unavailable, OutcomeUnknown
 */
export function repairAlias(dependencies: NameserviceDependencies) {
  return async (input: RepairAliasInput, call: Call): Promise<RepairedAlias> => {
    const { requestId = dependencies.ids.uuid(), ...content } = input;
    const request = { requestId, principal: call.principal, content: JSON.stringify(content) };
    const write = { dependencies, alias: input.alias, request, call };
    const { current, repeated } = await repairOutcomeOf(write, input);
    return { alias: aliasText(input.alias), op: input.op, repeated, current };
  };
}

type RepairOutcome = Pick<RepairedAlias, 'current' | 'repeated'>;

function repairOutcomeOf(write: AliasWrite, input: RepairAliasInput): Promise<RepairOutcome> {
  switch (input.op) {
    case 'resetRef':
      return resetRef(write, input);
    case 'resetStatus':
      return reset<Status>(write, statusChange(input));
    case 'resetConfig':
      checkContext(input.next.payload, write.dependencies.pointerStyle);
      return reset<LedgerConfig>(write, configChange(input));
    case 'unretract':
      return unretract(write, input.expected.kind);
    case 'purge':
      return purge(write, input.expected);
  }
}

function resetRef(
  write: AliasWrite,
  { ref, expected, next }: Extract<RepairAliasInput, { op: 'resetRef' }>,
): Promise<RepairOutcome> {
  const { pointerStyle, ids } = write.dependencies;
  if (next.address !== null) checkAddress(next.address, 'next.address', pointerStyle);
  const names = pointerNames(ref, pointerStyle);
  const set = [`${names.t} = :t`];
  const values: ItemUpdate['values'] = { ':t': integer(next.t) };
  const remove = [names.alsoRead];
  if (next.address === null) remove.push(names.written);
  else {
    set.push(`${names.written} = :address`);
    values[':address'] = text(next.address);
  }
  if (ref === 'index') {
    set.push(`${INDEX_REVISION} = :revision`);
    values[':revision'] = text(ids.uuid());
  }
  const condition = isAt(names, expected);
  return reset<Pointer>(write, {
    update: { concern: REF_CONCERNS[ref], condition, set: set.join(', '), remove, values, kinds: [] },
    what: `${ref} ref`,
    wanted: next,
    read: (item) => pointerOf(item, ref, pointerStyle),
  });
}

async function reset<Value extends RepairOutcome['current']>(
  write: AliasWrite,
  change: VersionedChange<Value>,
): Promise<RepairOutcome> {
  const outcome = await setValue(write, { ...change, update: asRepair(change.update) });
  if (!outcome) throw aliasNotFound(write.alias, 'record');
  return { current: change.wanted, ...outcome };
}

async function unretract(write: AliasWrite, kind: RecordKind): Promise<RepairOutcome> {
  const { dependencies, alias, request } = write;
  const update: ItemUpdate = {
    concern: 'meta',
    condition: all(isOfKind(kind), isRetracted),
    set: 'retracted = :false',
    values: { ':false': booleanAttribute(false) },
    kinds: [],
  };
  const outcome = await updateConcern(write, asRepair(update));
  if (outcome.won) return { current: { retracted: false }, repeated: false };
  const operation = writingTable(dependencies.table, request);
  const found = outcome.old && kindOf(outcome.old);
  if (found !== kind) throw notFoundOrUnknown(alias, kind, { found, unanswered: outcome.unanswered, operation });
  const retracted = outcome.old?.retracted?.BOOL === true;
  if (retracted) throw conflictOrUnknown({ alias, what: 'flag', actual: { retracted }, unanswered: true }, operation);
  return { current: { retracted: false }, repeated: true };
}

/**
 * The same update as a repair: it does not restore missing items, and a write that was sent before it cannot land after
 * it.
 */
const asRepair = (update: ItemUpdate): ItemUpdate => ({ ...update, repairs: true, kinds: [] });
