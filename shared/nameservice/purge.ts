import type { TransactWriteItem } from '@aws-sdk/client-dynamodb';
import { all, type Condition, conditionFields } from '../aws/condition.ts';
import { transact } from '../aws/transaction.ts';
import { HoldfastError } from '../errors.ts';
import { type Alias, aliasText } from './alias.ts';
import { readRows } from './alias-rows.ts';
import {
  hasConfigVersion,
  hasNoBranches,
  hasStatus,
  isAt,
  isKnownLayout,
  isLedgerConfig,
  isNoRecord,
  isOfKind,
  isRetracted,
  isUnchanged,
} from './conditions.ts';
import { clientToken } from './create.ts';
import { type AliasWrite, writingTable } from './dependencies.ts';
import { CONCERNS, type Concern, itemKey } from './items.ts';
import { type PointerStyle, pointerNames } from './pointers.ts';
import { type ItemsByConcern, type NameserviceRecord, shownRecord } from './record.ts';
import type { SeenRecord } from './repair-inputs.ts';
import { aliasNotFound, conflict, refuseLaterLayout } from './results.ts';

/**
 * Deletes all items of a retracted alias in one transaction, each on the condition that it is as the caller saw it. Rows of other
 * clients stay. See docs/protocols/nameservice.md#repair.
 * @param seen null for an alias without a record, such as one whose purge by another client was cut short
 * @throws HoldfastError Conflict (`actual` as the caller must have seen it, with `retracted`; null if it is no record),
 *   NotFound, Throttled, Unavailable, OutcomeUnknown
 */
export async function purge(write: AliasWrite, seen: SeenRecord | null): Promise<{ current: null; repeated: false }> {
  const { dependencies, alias, request, call } = write;
  const { table, pointerStyle } = dependencies;
  const conditions = seen ? asSeen(seen, pointerStyle) : leftovers(await existing(write));
  const items = Object.entries(conditions).map(
    ([concern, condition]): TransactWriteItem => ({
      Delete: {
        TableName: table,
        Key: itemKey(alias, concern as Concern),
        ...conditionFields(all(condition, isKnownLayout)),
        ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
      },
    }),
  );
  // The deletions of a record are identical in each repeat, so DynamoDB knows the token again.
  const token = seen ? clientToken(table, request, 'purge') : undefined;
  const outcome = await transact(dependencies, { items, token, operation: writingTable(table, request) }, call);
  if (outcome.won) return { current: null, repeated: false };
  const rows = await existing(write);
  refuseLaterLayout(Object.values(rows), writingTable(table, request));
  const record = shownRecord(rows, pointerStyle);
  const actual = record ? seenIn(record) : null;
  const count = branchesOf(rows);
  if (count > 0) throw hasBranches(alias, count, actual);
  throw conflict(alias, 'record', actual);
}

/** @throws HoldfastError NotFound if there is nothing under the alias */
async function existing({ dependencies, alias, call }: AliasWrite): Promise<ItemsByConcern> {
  const rows = await readRows(dependencies, alias, call);
  if (Object.keys(rows).length === 0) throw aliasNotFound(alias, 'record');
  return rows;
}

/** The number that `hasNoBranches` (conditions.ts) compares. */
const branchesOf = ({ meta }: ItemsByConcern): number => Number(meta?.branches?.N ?? 0);

function hasBranches(alias: Alias, count: number, actual: PurgeConflict | null): HoldfastError {
  const detail = `${count} Fluree branches began at the alias: drop the branches with Fluree first`;
  return new HoldfastError('Conflict', detail, { alias: aliasText(alias), actual });
}

type Conditions = Partial<Record<Concern, Condition>>;

function asSeen({ kind, commit, index, status, config }: SeenRecord, style: PointerStyle): Conditions {
  const isVersion = hasConfigVersion(config.v);
  return {
    meta: all(isOfKind(kind), isRetracted, hasNoBranches),
    ...(commit && { head: isAt(pointerNames('commit', style), commit) }),
    index: isAt(pointerNames('index', style), index),
    status: hasStatus(status),
    config: kind === 'ledger' ? all(isLedgerConfig, isVersion) : isVersion,
  };
}

/** The condition on `meta` makes sure that no caller has created the alias since. */
function leftovers(rows: ItemsByConcern): Conditions {
  const others = CONCERNS.filter((concern) => concern !== 'meta').flatMap((concern) => {
    const item = rows[concern];
    return item ? [[concern, isUnchanged(item, ['updated_at_ms'])] as const] : [];
  });
  return { meta: isNoRecord, ...Object.fromEntries(others) };
}

/** The values that a purge expects, as they really are under the alias. */
export interface PurgeConflict extends SeenRecord {
  /** Only a retracted alias can be purged. */
  retracted: boolean;
}

function seenIn(record: NameserviceRecord): PurgeConflict {
  const { kind, retracted, index, status, config } = record;
  return {
    kind,
    retracted,
    ...(record.kind === 'ledger' && { commit: record.commit }),
    index,
    status: { state: status.state, v: status.v },
    config: { v: config.v },
  };
}
