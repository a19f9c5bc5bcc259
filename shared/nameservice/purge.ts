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
 * Deletes the items of a retracted alias in one transaction, if each of them is as the caller saw it. Rows that only
 * other clients use stay. See docs/protocols/nameservice.md#repair.
 * @param seen null for an alias without a record, such as one that another client has deleted only in part
 * @throws HoldfastError Conflict (`actual` is what the caller should have seen, null if there is no record), NotFound,
 *   Throttled, Unavailable, OutcomeUnknown
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
  // A repeat for a record sends the same deletions, so DynamoDB recognises it by the token. Without a record, the
  // conditions depend on what was read.
  const token = seen ? clientToken(table, request, 'purge') : undefined;
  const outcome = await transact(dependencies, { items, token, operation: writingTable(table, request) }, call);
  if (outcome.won) return { current: null, repeated: false };
  const rows = await existing(write);
  refuseLaterLayout(Object.values(rows), writingTable(table, request));
  const record = shownRecord(rows, pointerStyle);
  const actual = record ? seenIn(record) : null;
  const count = branchesOf(rows);
  if (count > 0) throw conflictOfBranches(alias, count, actual);
  throw conflict(alias, 'record', actual);
}

/** The items of the alias. @throws HoldfastError NotFound if there are none */
async function existing({ dependencies, alias, call }: AliasWrite): Promise<ItemsByConcern> {
  const rows = await readRows(dependencies, alias, call);
  if (Object.keys(rows).length === 0) throw aliasNotFound(alias, 'record');
  return rows;
}

/** How many branches began at the alias. `hasNoBranches` (conditions.ts) compares this number. */
const branchesOf = ({ meta }: ItemsByConcern): number => Number(meta?.branches?.N ?? 0);

function conflictOfBranches(alias: Alias, count: number, actual: PurgeConflict | null): HoldfastError {
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

/**
 * The conditions for deleting items without a record. The condition on `meta` fails if a caller has created the alias
 * since.
 */
function leftovers(rows: ItemsByConcern): Conditions {
  const others = CONCERNS.filter((concern) => concern !== 'meta').flatMap((concern) => {
    const item = rows[concern];
    return item ? [[concern, isUnchanged(item, ['updated_at_ms'])] as const] : [];
  });
  return { meta: isNoRecord, ...Object.fromEntries(others) };
}

/** The `actual` of a Conflict: what a purge of the alias must expect. */
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
