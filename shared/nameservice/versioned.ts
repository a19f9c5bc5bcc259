import type { Item } from '../aws/dynamodb.ts';
import { readRows } from './alias-rows.ts';
import { type AliasWrite, writingTable } from './dependencies.ts';
import type { RecordKind } from './items.ts';
import { type ItemsByConcern, kindOf } from './record.ts';
import { conflict, conflictOrUnknown, type Published, published } from './results.ts';
import { type ItemUpdate, updateConcern } from './update.ts';

/** A change of a value that has a version: the status, or the config of a ledger. */
export interface VersionedChange<Value> {
  /** The name of the value in messages. */
  what: string;
  /** The new value as it reads after it was stored. */
  wanted: Value;
  update: ItemUpdate;
  /** Reads the value from the item. Null if the item belongs to the other kind. */
  read(item: Item | undefined): Value | null;
}

/**
 * Sets a value if its version is as expected, with one conditional UpdateItem. The version must rise. See
 * docs/protocols/nameservice.md#status-and-config.
 * @param rises whether the caller's version is higher than the expected one
 * @throws HoldfastError Conflict (`actual` is the value, null if there is none), Throttled, Unavailable, OutcomeUnknown
 */
export async function pushVersion<Value>(
  write: AliasWrite,
  change: VersionedChange<Value>,
  rises: boolean,
): Promise<Published<Value>> {
  const { dependencies, alias, call } = write;
  if (!rises) throw conflict(alias, change.what, valueIn(await readRows(dependencies, alias, call), change));
  const outcome = await setValue(write, change);
  if (outcome) return published(alias, change.wanted, outcome);
  throw conflict(alias, change.what, null);
}

/**
 * Sets a value, without a check that its version rises.
 * @returns undefined if the item does not exist and must not be restored
 * @throws HoldfastError Conflict, Throttled, Unavailable, OutcomeUnknown
 */
export async function setValue<Value>(
  write: AliasWrite,
  { update, what, wanted, read }: VersionedChange<Value>,
): Promise<{ repeated: boolean } | undefined> {
  const outcome = await updateConcern(write, update);
  if (outcome.won) return { repeated: false };
  const { old, unanswered } = outcome;
  const actual = old ? read(old) : null;
  if (actual !== null && (await isSameValue(actual, wanted))) return { repeated: true };
  if (!old && !unanswered) return undefined;
  const { dependencies, alias, request } = write;
  throw conflictOrUnknown({ alias, what, actual, unanswered }, writingTable(dependencies.table, request));
}

function valueIn<Value>(rows: ItemsByConcern, { update, read }: VersionedChange<Value>): Value | null {
  const kind: RecordKind | undefined = kindOf(rows.meta);
  return kind && update.kinds.includes(kind) ? read(rows[update.concern]) : null;
}

/**
 * Whether two values have the same members, in any order. Loads node:util only when needed, because it takes 3 ms of a
 * cold start.
 */
async function isSameValue(left: unknown, right: unknown): Promise<boolean> {
  const { isDeepStrictEqual } = await import('node:util');
  return isDeepStrictEqual(left, right);
}
