import { GetItemCommand, ScanCommand } from '@aws-sdk/client-dynamodb';
import { type Json, text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { aliased, conditionFields } from '../aws/condition.ts';
import { reading, send } from '../aws/send.ts';
import { DEFAULT_LIMIT } from '../fields.ts';
import { decodeCursor, encodeCursor } from '../listings/cursor.ts';
import { Page } from '../listings/pages.ts';
import type { LeaseDependencies } from '../locks/dependencies.ts';
import { type KeySummary, keySummary } from '../locks/record/views.ts';
import type { ReadOnceInput } from './inputs.ts';
import { rememberedBy } from './judge-slot.ts';
import { type Done, type OnceRecord, parseOnce } from './record.ts';
import { keyOf, rowOf } from './row-key.ts';

/** What every reader may see of a key: who works or worked last, and the last slot that was done. */
export interface OnceView extends Omit<KeySummary, 'bound' | 'inGrace' | 'brokenAt' | 'brokenBy'> {
  kind: 'once';
  /** The slot of the grant. Null if the key has no record. */
  slot: string | null;
  /** Null if no slot is done, or `keepSeconds` are over. */
  done: DoneView | null;
  /** Only in the read of one key. Null if no slot is done. */
  result?: Json;
}

/** The last slot that was done. */
export interface DoneView {
  slot: string;
  by: string | null;
  /** ISO 8601, like `keptUntil`. */
  at: string;
  fence: number | null;
  keptUntil: string;
}

export interface OncePage {
  keys: OnceView[];
  /** Null on the last page. An empty page may have a cursor too. */
  nextCursor: string | null;
}

/** Bounds the cost of one page: the other records of the table are read too. */
const ROWS_READ_PER_PAGE = 1000;

/** Reads one key, or lists the keys of `once`. @throws HoldfastError InvalidRequest (cursor), Throttled, Unavailable */
export const readOnce =
  (dependencies: LeaseDependencies) =>
  ({ key, ...query }: ReadOnceInput, call: Call): Promise<OnceView | OncePage> =>
    key === undefined ? readPage(dependencies, query, call) : readKey(dependencies, key, call);

async function readKey(dependencies: LeaseDependencies, key: string, call: Call): Promise<OnceView> {
  const { dynamodb, table } = dependencies;
  const command = new GetItemCommand({ TableName: table, Key: { key: text(rowOf(key)) }, ConsistentRead: true });
  const { Item: item } = await send(dynamodb, { command, operation: reading(`table ${table}`) }, call);
  const record = parseOnce(rowOf(key), item);
  return { ...viewOf(dependencies, record), result: rememberedBy(record, dependencies)?.result ?? null };
}

async function readPage(
  dependencies: LeaseDependencies,
  { prefix = '', limit = DEFAULT_LIMIT, cursor }: Omit<ReadOnceInput, 'key'>,
  call: Call,
): Promise<OncePage> {
  const { dynamodb, table } = dependencies;
  const from = cursor === undefined ? undefined : decodeCursor(cursor);
  const { ConditionExpression: FilterExpression, ...fields } = conditionFields(
    aliased('begins_with(#key, :prefix)', { ':prefix': text(rowOf(prefix)) }),
  );
  const command = new ScanCommand({
    TableName: table,
    Limit: ROWS_READ_PER_PAGE,
    ...(from !== undefined && { ExclusiveStartKey: { key: text(from) } }),
    FilterExpression,
    ...fields,
  });
  const output = await send(dynamodb, { command, operation: reading(`table ${table}`) }, call);
  const items = output.Items ?? [];
  const page = new Page<OnceView>((row) => ({ ...row, data: null }));
  let read = 0;
  for (; read < items.length && page.rows.length < limit; read++) {
    const item = items[read] ?? {};
    if (!page.add(viewOf(dependencies, parseOnce(item.key?.S ?? '', item)))) break;
  }
  // A scan can continue after any key of the table, not only after the one at which DynamoDB stopped.
  const last = read < items.length ? items[read - 1]?.key?.S : output.LastEvaluatedKey?.key?.S;
  return { keys: page.rows, nextCursor: last === undefined ? null : encodeCursor(last) };
}

function viewOf(dependencies: LeaseDependencies, record: OnceRecord): OnceView {
  const { slot = null } = record;
  const done = rememberedBy(record, dependencies);
  const {
    bound: _,
    inGrace: __,
    brokenAt: ___,
    brokenBy: ____,
    ...shown
  } = keySummary(record, dependencies.clock.now());
  return { ...shown, key: keyOf(record.key), kind: 'once', slot, done: done ? doneView(done) : null };
}

const doneView = ({ slot, holder, at, fence, keepUntil }: Done): DoneView => ({
  slot,
  by: holder ?? null,
  at: new Date(at).toISOString(),
  fence: fence ?? null,
  keptUntil: new Date(keepUntil).toISOString(),
});
