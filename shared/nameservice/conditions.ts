import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { integer, text } from '../aws/attributes.ts';
import { aliased, all, any, type Condition, not } from '../aws/condition.ts';
import type { Item } from '../aws/dynamodb.ts';
import { INITIAL_STATUS, type RecordKind, SCHEMA } from './items.ts';
import { INDEX_REVISION, type Pointer, type PointerNames, UNBORN } from './pointers.ts';
import { booleanAttribute } from './values.ts';

/**
 * The conditions that make a write a rule. `name`, `schema` and `status` are DynamoDB reserved words and appear as
 * `#name`, `#schema` and `#status` only.
 */
export const isThere: Condition = { expression: 'attribute_exists(pk)' };
export const isAbsent: Condition = { expression: 'attribute_not_exists(pk)' };

/** A later layout may give these attributes another meaning, so no write may touch its items. Without a `schema`, an item has ours. */
export const isKnownLayout: Condition = not(aliased('#schema > :known', { ':known': SCHEMA }));

/** Always true. It makes a transaction differ from all others, also from one of the same request in the same millisecond. */
export const differsPerCall = (id: string): Condition => ({
  expression: 'NOT pk = :call',
  values: { ':call': text(id) },
});

/** On `meta`. Other clients leave one without a kind when they retract an unknown alias. No reader takes it for a record. */
export const isNoRecord: Condition = { expression: 'attribute_not_exists(kind)' };
export const isOfKind = (kind: RecordKind): Condition => ({
  expression: 'kind = :kind',
  values: { ':kind': text(kind) },
});
export const isRetracted: Condition = { expression: 'retracted = :true', values: { ':true': booleanAttribute(true) } };

/** On `meta`. Public Fluree counts there the branches that began at this alias, and they read its commits. */
export const hasNoBranches: Condition = not({ expression: 'branches > :none', values: { ':none': integer(0) } });

/** Only a graph source's config has it, so that a ledger's config never lands there. */
export const isLedgerConfig: Condition = { expression: 'attribute_not_exists(config_json)' };

const hasType = (attribute: string, type: string): Condition => ({
  expression: `attribute_type(${attribute}, :type${type})`,
  values: { [`:type${type}`]: text(type) },
});

const isRaisedBy = ({ t }: PointerNames, target: number): Condition => ({
  expression: `${t} < :t`,
  values: { ':t': integer(target) },
});

/** Publishing only raises t. Because t never goes down, a request that arrives late finds this false for good. */
export const isBelow = (names: PointerNames, target: number): Condition =>
  any({ expression: `attribute_not_exists(${names.t})` }, isRaisedBy(names, target));

/**
 * An address can come back at the same t (A, B, A), so the address and t do not name one state of an index. Without a
 * revision they do: it is still the first address at this t.
 */
export const isFirstAtItsT: Condition = { expression: `attribute_not_exists(${INDEX_REVISION})` };

/** No write of any client has come since the item was read, as far as these attributes tell. */
export function isUnchanged(item: Item, attributes: string[]): Condition {
  const conditions = attributes.map((attribute, index): Condition => {
    const value = item[attribute];
    if (!value) return { expression: `attribute_not_exists(${attribute})` };
    return { expression: `${attribute} = :seen${index}`, values: { [`:seen${index}`]: value } };
  });
  return all(isThere, ...conditions);
}

/**
 * What is not there, or is of another type, reads as a default. It must compare as that default as well, or a caller
 * could never win with what a conflict answered.
 */
function readsAs(attribute: string, value: AttributeValue, isDefault: boolean): Condition {
  const placeholder = `:expected_${attribute.replace('#', '')}`;
  const equals: Condition = { expression: `${attribute} = ${placeholder}`, values: { [placeholder]: value } };
  return isDefault ? any(equals, not(hasType(attribute, Object.keys(value).join()))) : equals;
}

/** The ref is the pointer, and unborn if the pointer has no address. */
export function isAt(names: PointerNames, { address, t }: Pointer): Condition {
  const { written, alsoRead } = names;
  const atT = readsAs(names.t, integer(t), t === UNBORN.t);
  const isUnset = not(hasType(written, 'S'));
  if (address === null) return all(isUnset, not(hasType(alsoRead, 'S')), atT);
  const holds = (attribute: string): Condition => ({
    expression: `${attribute} = :expectedAddress`,
    values: { ':expectedAddress': text(address) },
  });
  return all(any(holds(written), all(isUnset, holds(alsoRead))), atT);
}

export function hasStatus({ state, v }: { state: string; v: number }): Condition {
  const hasState = readsAs('#status', text(state), state === INITIAL_STATUS.state);
  const hasV = readsAs('status_v', integer(v), v === INITIAL_STATUS.v);
  return { ...all(hasV, hasState), names: { '#status': 'status' } };
}

export const hasConfigVersion = (v: number): Condition => readsAs('config_v', integer(v), v === 0);

/** Set by an administrator's repair, in epoch milliseconds. */
export const REPAIRED_AT = 'repaired_at_ms';

/**
 * A repair takes t or a flag back, so a write that is still on its way from before it must not land after it.
 * @param sentAt epoch milliseconds
 */
export const isRepairedBefore = (sentAt: number): Condition =>
  not({ expression: `${REPAIRED_AT} >= :now`, values: { ':now': integer(sentAt) } });
