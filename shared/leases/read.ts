import { GetItemCommand, ScanCommand } from '@aws-sdk/client-dynamodb';
import { text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { all, type Condition, conditionFields } from '../aws/condition.ts';
import { reading, send } from '../aws/send.ts';
import { DEFAULT_LIMIT } from '../fields.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import type { WaiterView } from '../line/listed-waiters.ts';
import { decodeCursor, encodeCursor } from '../listings/cursor.ts';
import { Page } from '../listings/pages.ts';
import { isInState } from './conditions.ts';
import { type LeaseRecord, parseRecord } from './record.ts';
import { grantedIn, type LeaseState } from './rules.ts';
import { type LeaseView, leaseView } from './views.ts';

/** With a key, one lease. Otherwise a page of the table. */
export interface ReadInput {
  key?: string | undefined;
  prefix?: string | undefined;
  holder?: string | undefined;
  state?: LeaseState | undefined;
  limit?: number | undefined;
  cursor?: string | undefined;
  /** With `key`: whether to list who is in line. */
  waiters?: boolean | undefined;
  /** With `key`: whether to read the pool of that name. */
  pool?: boolean | undefined;
}

export interface WaitedForView extends LeaseView {
  /** How many tasks and callers are in line for it, counted up to 100, or up to the limit of `waiters` where that is more. */
  waiting: number;
  /** The oldest of those, if the caller asked for them. */
  waiters?: WaiterView[];
}

export interface ListedLease extends LeaseView {
  /** Whether a caller or a task may be in line for it. The mark on the record says so, and outlives the last of them by moments. */
  waiting: boolean;
}

export interface LeasePage {
  leases: ListedLease[];
  /** Null on the last page. An empty page may have a cursor too. */
  nextCursor: string | null;
}

/** Bounds the cost of one page when few of its rows match. */
const ROWS_READ_PER_PAGE = 1000;

/**
 * Reads one key with a consistent read, or a page of the table with a scan.
 * @throws HoldfastError InvalidRequest (cursor), Throttled, Unavailable
 */
export function lookUpLeases(dependencies: LeaseDependencies) {
  return ({ key, ...query }: ReadInput, call: Call): Promise<WaitedForView | LeasePage> =>
    key === undefined ? readPage(dependencies, query, call) : readOne(dependencies, { ...query, key }, call);
}

async function readOne(
  dependencies: LeaseDependencies,
  { key, waiters, limit = DEFAULT_LIMIT }: Pick<ReadInput, 'waiters' | 'limit'> & { key: string },
  call: Call,
): Promise<WaitedForView> {
  const { dynamodb, clock, table } = dependencies;
  const command = new GetItemCommand({ TableName: table, Key: { key: text(key) }, ConsistentRead: true });
  const { Item: item } = await send(dynamodb, { command, operation: reading(`table ${table}`) }, call);
  const record = item && parseRecord(item);
  const view = leaseView(key, record, clock.now());
  // Without the mark the line is empty, unless another client dropped the mark. Then the schedule puts it back.
  if (record?.waiters === undefined && !waiters) return { ...view, waiting: 0 };
  const { readWaiting } = await import('../line/listed-waiters.ts');
  const asked = { key, granted: grantedIn(record ?? { key }), limit: waiters ? limit : 0 };
  const parked = await readWaiting(dependencies, asked, call);
  return { ...view, waiting: parked.waiting, ...(waiters && { waiters: parked.waiters }) };
}

async function readPage(
  { dynamodb, clock, table }: LeaseDependencies,
  query: Omit<ReadInput, 'key'>,
  call: Call,
): Promise<LeasePage> {
  const limit = query.limit ?? DEFAULT_LIMIT;
  const command = new ScanCommand({
    TableName: table,
    Limit: isFiltered(query) ? ROWS_READ_PER_PAGE : limit,
    ...(query.cursor !== undefined && { ExclusiveStartKey: { key: text(decodeCursor(query.cursor)) } }),
    ...filter(query, clock.now()),
  });
  const output = await send(dynamodb, { command, operation: reading(`table ${table}`) }, call);
  const records = (output.Items ?? []).map(parseRecord);
  const now = clock.now();
  const page = new Page<ListedLease>((view) => ({ ...view, data: null }));
  const listed = (record: LeaseRecord) => ({
    ...leaseView(record.key, record, now),
    waiting: record.waiters !== undefined,
  });
  for (const record of records) if (page.rows.length === limit || !page.add(listed(record))) break;
  // A scan can continue after any key of the table, not only after the one where DynamoDB stopped.
  const last = records.length > page.rows.length ? page.rows.at(-1)?.key : output.LastEvaluatedKey?.key?.S;
  return { leases: page.rows, nextCursor: last === undefined ? null : encodeCursor(last) };
}

function isFiltered({ prefix, holder, state }: Omit<ReadInput, 'key'>): boolean {
  return [prefix, holder, state].some((value) => value !== undefined);
}

function filter({ prefix, holder, state }: Omit<ReadInput, 'key'>, now: number) {
  const conditions: Condition[] = [];
  if (prefix !== undefined) conditions.push(startsWith(prefix));
  if (holder !== undefined) conditions.push(isOfHolder(holder));
  if (state !== undefined) conditions.push(isInState(state, now));
  const [first, ...others] = conditions;
  if (!first) return {};
  const { ConditionExpression: FilterExpression, ...fields } = conditionFields(all(first, ...others));
  return { FilterExpression, ...fields };
}

const startsWith = (prefix: string): Condition => ({
  expression: 'begins_with(#key, :prefix)',
  names: { '#key': 'key' },
  values: { ':prefix': text(prefix) },
});

const isOfHolder = (holder: string): Condition => ({
  expression: 'holder = :holder',
  values: { ':holder': text(holder) },
});
