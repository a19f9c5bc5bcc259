import { QueryCommand } from '@aws-sdk/client-dynamodb';
import { text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import type { Item } from '../aws/dynamodb.ts';
import { send } from '../aws/send.ts';
import { unknownCursor } from '../errors.ts';
import { DEFAULT_LIMIT } from '../fields.ts';
import { decodeCursor, encodeCursor } from '../listings/cursor.ts';
import { Page } from '../listings/pages.ts';
import { readMany } from './batch.ts';
import { type NameserviceDependencies, readingTable } from './dependencies.ts';
import { RECORD_KINDS, type RecordKind } from './items.ts';
import { abridged, type ItemsByConcern, type NameserviceRecord, recordOf } from './record.ts';

export interface RecordPage {
  records: NameserviceRecord[];
  /** Null on the last page. An empty page can have a cursor. */
  nextCursor: string | null;
}

interface ListQuery {
  kind?: RecordKind | undefined;
  prefix?: string | undefined;
  limit?: number | undefined;
  cursor?: string | undefined;
}

/** Where a list continues: after an alias, or at the beginning of a kind. */
interface AliasPosition {
  kind: RecordKind;
  after?: string | undefined;
}

/**
 * How many aliases of a page are read at once. Items of other clients can have 400 KB each, so a page of 1,000 aliases
 * would fill the memory.
 */
const ALIASES_AT_ONCE = 80;

/**
 * A page of records, sorted by kind and then by alias. The aliases come from the index, which may be about a second
 * behind the table. The records are read from the table, strongly consistent.
 * @throws HoldfastError InvalidRequest (cursor), Throttled, Unavailable
 */
export async function listRecords(
  dependencies: NameserviceDependencies,
  query: ListQuery,
  call: Call,
): Promise<RecordPage> {
  const { limit = DEFAULT_LIMIT } = query;
  const { found, next } = await findAliases(dependencies, { ...query, limit }, call);
  const page = new Page<NameserviceRecord>(abridged);
  let rows = new Map<string, ItemsByConcern>();
  for (const [index, { kind, after }] of found.entries()) {
    if (index % ALIASES_AT_ONCE === 0) {
      const aliases = found.slice(index, index + ALIASES_AT_ONCE).map((one) => one.after);
      rows = await readMany(dependencies, aliases, call);
    }
    const record = recordOf(rows.get(after) ?? {}, dependencies.pointerStyle);
    if (record?.kind !== kind) continue; // the index was behind the table
    if (!page.add(record)) return { records: page.rows, nextCursor: aliasCursor(found[index - 1]) };
  }
  return { records: page.rows, nextCursor: aliasCursor(next) };
}

interface FoundAlias extends AliasPosition {
  after: string;
}

async function findAliases(
  { dynamodb, table }: NameserviceDependencies,
  { kind, prefix, cursor, limit }: ListQuery & { limit: number },
  call: Call,
): Promise<{ found: FoundAlias[]; next: AliasPosition | undefined }> {
  const kinds: readonly RecordKind[] = kind ? [kind] : RECORD_KINDS;
  const found: FoundAlias[] = [];
  const from: AliasPosition =
    cursor === undefined ? { kind: kinds[0] ?? 'ledger' } : decodeAliasCursor(cursor, kinds, prefix);
  let reading: RecordKind | undefined = from.kind;
  let startKey = keyAfter(from);
  while (reading && found.length < limit) {
    const kind: RecordKind = reading;
    const command: QueryCommand = new QueryCommand({
      TableName: table,
      IndexName: 'gsi1-kind',
      KeyConditionExpression: `kind = :kind${prefix === undefined ? '' : ' AND begins_with(pk, :prefix)'}`,
      ExpressionAttributeValues: { ':kind': text(kind), ...(prefix !== undefined && { ':prefix': text(prefix) }) },
      ProjectionExpression: 'pk, sk',
      Limit: limit - found.length,
      ...(startKey && { ExclusiveStartKey: startKey }),
    });
    const output = await send(dynamodb, { command, operation: readingTable(table) }, call);
    // Rows that only other clients use may have a kind too, and would list their alias twice.
    for (const { pk, sk } of output.Items ?? []) if (pk?.S && sk?.S === 'meta') found.push({ kind, after: pk.S });
    startKey = output.LastEvaluatedKey;
    if (!startKey) reading = kinds[kinds.indexOf(kind) + 1];
  }
  if (!reading) return { found, next: undefined };
  return { found, next: startKey ? found.at(-1) : { kind: reading } };
}

const keyAfter = ({ kind, after }: AliasPosition): Item | undefined =>
  after === undefined ? undefined : { kind: text(kind), pk: text(after), sk: text('meta') };

/**
 * Separates kind and alias in a cursor. The name of a kind does not contain it. Without an alias, the cursor means the
 * beginning of the kind.
 */
const KIND_START = '>';

const aliasCursor = (position: AliasPosition | undefined): string | null =>
  position ? encodeCursor(`${position.kind}${KIND_START}${position.after ?? ''}`) : null;

/**
 * @throws HoldfastError InvalidRequest if the cursor is not of this list: DynamoDB refuses to continue from a key
 *   outside the query
 */
function decodeAliasCursor(cursor: string, kinds: readonly RecordKind[], prefix = ''): AliasPosition {
  const position = decodeCursor(cursor);
  const kind = kinds.find((known) => position.startsWith(known + KIND_START));
  const after = position.slice(position.indexOf(KIND_START) + 1);
  if (kind && after === '') return { kind };
  if (kind && after.startsWith(prefix) && Buffer.byteLength(after) <= 1024) return { kind, after };
  throw unknownCursor();
}
