import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { integer, text } from '../aws/attributes.ts';
import { aliased, all, any, type Condition, not } from '../aws/condition.ts';
import type { Item } from '../aws/dynamodb.ts';
import { INITIAL_STATUS, type RecordKind, SCHEMA } from './items.ts';
import { INDEX_REVISION, type Pointer, type PointerNames, UNBORN } from './pointers.ts';
import { booleanAttribute } from './values.ts';

// `name`, `schema` and `status` are reserved words of DynamoDB. Expressions must write them as `#name`, `#schema` and
// `#status`.

export const isThere: Condition = { expression: 'attribute_exists(pk)' };
export const isAbsent: Condition = { expression: 'attribute_not_exists(pk)' };

/**
 * The item has the layout that this version knows, or does not have a `schema`. Every write needs this condition,
 * because a later layout may give the attributes another meaning.
 */
export const isKnownLayout: Condition = not(aliased('#schema > :known', { ':known': SCHEMA }));

/**
 * Always true. It makes a transaction differ from other calls' transactions, even of the same request in the same
 * millisecond.
 */
export const differsPerCall = (id: string): Condition => ({
  expression: 'NOT pk = :call',
  values: { ':call': text(id) },
});

/**
 * For `meta`: the item is not a record, because it does not have a kind. Other clients leave such an item when they
 * retract an unknown alias.
 */
export const isNoRecord: Condition = { expression: 'attribute_not_exists(kind)' };
export const isOfKind = (kind: RecordKind): Condition => ({
  expression: 'kind = :kind',
  values: { ':kind': text(kind) },
});
export const isRetracted: Condition = { expression: 'retracted = :true', values: { ':true': booleanAttribute(true) } };

/**
 * For `meta`: no branch began at this alias. Public Fluree counts them there, and those branches read the commits of
 * this alias.
 */
export const hasNoBranches: Condition = not({ expression: 'branches > :none', values: { ':none': integer(0) } });

/** The config is not a graph source's. Keeps the config of a ledger from landing there. */
export const isLedgerConfig: Condition = { expression: 'attribute_not_exists(config_json)' };

const hasType = (attribute: string, type: string): Condition => ({
  expression: `attribute_type(${attribute}, :type${type})`,
  values: { [`:type${type}`]: text(type) },
});

const isRaisedBy = ({ t }: PointerNames, target: number): Condition => ({
  expression: `${t} < :t`,
  values: { ':t': integer(target) },
});

/**
 * The ref's t is lower than the target. Publishing never lowers t, so this stays false for a request that arrives late.
 */
export const isBelow = (names: PointerNames, target: number): Condition =>
  any({ expression: `attribute_not_exists(${names.t})` }, isRaisedBy(names, target));

/**
 * The index still has its first address at this t. Then address and t identify its state. After a replacement they do
 * not, because an address can return at the same t (A, B, A).
 */
export const isFirstAtItsT: Condition = { expression: `attribute_not_exists(${INDEX_REVISION})` };

/** The item still has these attributes as they were read. */
export function isUnchanged(item: Item, attributes: string[]): Condition {
  const conditions = attributes.map((attribute, index): Condition => {
    const value = item[attribute];
    if (!value) return { expression: `attribute_not_exists(${attribute})` };
    return { expression: `${attribute} = :seen${index}`, values: { [`:seen${index}`]: value } };
  });
  return all(isThere, ...conditions);
}

/**
 * The attribute reads as the value. Readers see a default if the attribute is absent or has another type, so the
 * condition must accept this too: otherwise a caller could never win with the `actual` of a Conflict.
 */
function readsAs(attribute: string, value: AttributeValue, isDefault: boolean): Condition {
  const placeholder = `:expected_${attribute.replace('#', '')}`;
  const equals: Condition = { expression: `${attribute} = ${placeholder}`, values: { [placeholder]: value } };
  return isDefault ? any(equals, not(hasType(attribute, Object.keys(value).join()))) : equals;
}

/** The ref is as the pointer says: unborn if the pointer does not have an address. */
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

/** The attribute with the time of an operator's repair, in epoch milliseconds. */
export const REPAIRED_AT = 'repaired_at_ms';

/**
 * The write was sent after the last repair. A repair lowers t or takes a flag back, so a write that was sent before the
 * repair must not land after it.
 * @param sentAt epoch milliseconds
 */
export const isRepairedBefore = (sentAt: number): Condition =>
  not({ expression: `${REPAIRED_AT} >= :now`, values: { ':now': integer(sentAt) } });
