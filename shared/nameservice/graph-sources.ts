import type { TransactWriteItem } from '@aws-sdk/client-dynamodb';
import { integer, text } from '../aws/attributes.ts';
import { all, conditionFields } from '../aws/condition.ts';
import type { Item } from '../aws/dynamodb.ts';
import type { Alias } from './alias.ts';
import { readRows } from './alias-rows.ts';
import { isKnownLayout, isOfKind } from './conditions.ts';
import { putNew, type Stamp, transactIdempotently } from './create.ts';
import { type AliasWrite, writingTable } from './dependencies.ts';
import { type GraphSource, graphSourceItems, itemKey, SCHEMA, textList } from './items.ts';
import { type GraphSourceRecord, type ItemsByConcern, itemsByConcern, kindOf, shownRecord } from './record.ts';
import { aliasNotFound, alreadyExists, type Published, published, refuseLaterLayout } from './results.ts';
import { booleanAttribute } from './values.ts';

/**
 * Creates a graph source with one transaction of all four items. If it exists, the call replaces its definition:
 * `config_v` rises by one, and index, status and the retracted flag stay. A replacement costs a second transaction and
 * a read, because the first transaction finds the alias taken.
 * @throws HoldfastError AlreadyExists (a ledger has the alias), NotFound (an operator has removed the alias since),
 *   Throttled, Unavailable, OutcomeUnknown
 */
export async function publishGraphSource(
  write: AliasWrite,
  source: GraphSource,
): Promise<Published<GraphSourceRecord>> {
  const { dependencies, alias, call } = write;
  const { table, pointerStyle } = dependencies;
  const answer = (rows: ItemsByConcern, how: { created?: true; repeated?: true }) => {
    const record = shownRecord(rows, pointerStyle);
    if (!record) throw aliasNotFound(alias, 'graph_source'); // an operator has removed the alias since
    if (record.kind !== 'graph_source') throw alreadyExists(alias, record.kind);
    return published(alias, record, how);
  };
  const itemsAt = (now: number) => graphSourceItems(alias, source, { now, style: pointerStyle });
  const creation = await transactIdempotently(write, 'create', (stamp) => putNew(table, itemsAt(stamp.now), stamp));
  if (creation.won) return answer(itemsByConcern(itemsAt(creation.writtenAt)), { created: true });
  if (creation.repeated) return answer(creation.rows, { repeated: true });
  if (kindOf(creation.rows.meta) !== 'graph_source') throw alreadyExists(alias, kindOf(creation.rows.meta));

  const replaced = await transactIdempotently(write, 'replace', (stamp) =>
    replacement(table, alias, { ...stamp, source }),
  );
  if (replaced.won) return answer(await readRows(dependencies, alias, call), {});
  if (replaced.repeated) return answer(replaced.rows, { repeated: true });
  refuseLaterLayout(Object.values(replaced.rows), writingTable(table, write.request));
  throw alreadyExists(alias, kindOf(replaced.rows.meta));
}

/** The writes that replace the definition of a graph source. They also restore missing items. */
function replacement(
  table: string,
  alias: Alias,
  { now, differsPerCall, source }: Stamp & { source: GraphSource },
): TransactWriteItem[] {
  const update = (concern: 'meta' | 'config' | 'index' | 'status', set: string, more: object) => ({
    Update: { TableName: table, Key: itemKey(alias, concern), UpdateExpression: `SET ${set}`, ...more },
  });
  const written = { ':schema': SCHEMA, ':now': integer(now) };
  const names = { '#schema': 'schema' };
  const stamped = '#schema = :schema, updated_at_ms = :now';
  const inKnownLayout = (values: Item, more: Record<string, string> = {}) => ({
    ...conditionFields(isKnownLayout, { names: more, values: { ...written, ...values } }),
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  });
  const restored = '#schema = if_not_exists(#schema, :schema), updated_at_ms = if_not_exists(updated_at_ms, :now)';
  return [
    update(
      'meta',
      `${stamped}, #name = :name, branch = :branch, source_type = :type, dependencies = :dependencies, retracted = if_not_exists(retracted, :false)`,
      {
        ...conditionFields(all(isOfKind('graph_source'), isKnownLayout, differsPerCall), {
          names: { ...names, '#name': 'name' },
          values: {
            ...written,
            ':name': text(alias.name),
            ':branch': text(alias.branch),
            ':type': text(source.sourceType),
            ':dependencies': textList(source.dependencies),
            ':false': booleanAttribute(false),
          },
        }),
        ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
      },
    ),
    update(
      'config',
      `${stamped}, config_json = :config, config_v = if_not_exists(config_v, :zero) + :one`,
      inKnownLayout({ ':config': text(source.config), ':zero': integer(0), ':one': integer(1) }),
    ),
    update('index', `${restored}, index_t = if_not_exists(index_t, :zero)`, inKnownLayout({ ':zero': integer(0) })),
    update(
      'status',
      `${restored}, #status = if_not_exists(#status, :ready), status_v = if_not_exists(status_v, :one)`,
      inKnownLayout({ ':ready': text('ready'), ':one': integer(1) }, { '#status': 'status' }),
    ),
  ];
}
