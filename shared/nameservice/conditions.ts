import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { all, either } from '../aws/conditions.ts';
import type { Item } from '../aws/dynamodb.ts';
import { INITIAL_STATUS } from './items.ts';
import { type Pointer, type PointerNames, UNBORN } from './pointers.ts';
import { integer, text } from './values.ts';

/**
 * The conditions that make a write a rule. `name`, `schema` and `status` are DynamoDB reserved words and appear as
 * `#name`, `#schema` and `#status` only.
 */
export const isThere = 'attribute_exists(pk)';
export const isAbsent = 'attribute_not_exists(pk)';

/** On `meta`. One without a kind is a stub that a careless client left; to all readers there is no such alias. */
export const isNoRecord = 'attribute_not_exists(kind)';
export const isOfKind = 'kind = :kind';
export const isNotRetracted = 'NOT retracted = :true';

/** Only a graph source's config has it, so that a ledger's config never lands there. */
export const isLedgerConfig = 'attribute_not_exists(config_json)';

const pointsTo = ({ written, alsoRead }: PointerNames, address: string) =>
  either(`${written} = ${address}`, `NOT attribute_type(${written}, :string) AND ${alsoRead} = ${address}`);

export const isBelow = ({ t }: PointerNames) => either(`attribute_not_exists(${t})`, `${t} < :t`);

/** The same address at the same t would change nothing, so a repeat can be told from a first call. */
export const isBelowOrElsewhere = (names: PointerNames) =>
  either(isBelow(names), all(`${names.t} = :t`, `NOT (${pointsTo(names, ':address')})`));

/** A condition and the values that it names, no more: DynamoDB refuses what is not used. */
interface Guard {
  condition: string;
  values: Item;
}

/**
 * What is not there, or is of another type, reads as a default. It must compare as that default as well, or a caller
 * could never win with what a conflict told him.
 */
function readsAs(attribute: string, name: string, value: AttributeValue, isDefault: boolean): Guard {
  const equals = `${attribute} = ${name}`;
  if (!isDefault) return { condition: equals, values: { [name]: value } };
  const type = `${name}Type`;
  const condition = either(equals, `NOT attribute_type(${attribute}, ${type})`);
  return { condition, values: { [name]: value, [type]: text(Object.keys(value).join()) } };
}

/** The ref is the pointer; unborn where that has no address. */
export function isAt(names: PointerNames, { address, t }: Pointer): Guard {
  const atT = readsAs(names.t, ':expectedT', integer(t), t === UNBORN.t);
  const values = { ...atT.values, ':string': text('S') };
  if (address === null) return { condition: all(hasNoAddress(names), atT.condition), values };
  const pointed = all(pointsTo(names, ':expectedAddress'), atT.condition);
  return { condition: pointed, values: { ...values, ':expectedAddress': text(address) } };
}

const hasNoAddress = ({ written, alsoRead }: PointerNames) =>
  all(`NOT attribute_type(${written}, :string)`, `NOT attribute_type(${alsoRead}, :string)`);

export function hasStatus({ state, v }: { state: string; v: number }): Guard {
  const hasState = readsAs('#status', ':expectedState', text(state), state === INITIAL_STATUS.state);
  const hasV = readsAs('status_v', ':expectedV', integer(v), v === INITIAL_STATUS.v);
  return { condition: all(hasV.condition, hasState.condition), values: { ...hasV.values, ...hasState.values } };
}

export const hasConfigVersion = (v: number) => readsAs('config_v', ':expectedV', integer(v), v === 0);
