import { ScanCommand } from '@aws-sdk/client-dynamodb';
import { integer, text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { aliased, all, any, type Condition, conditionFields, not } from '../aws/condition.ts';
import type { Item } from '../aws/dynamodb.ts';
import { reading, send } from '../aws/send.ts';
import { HoldfastError, invalidRequest } from '../errors.ts';
import { DEFAULT_LIMIT } from '../fields.ts';
import { isHeld, isInState, isUnmarked } from '../leases/conditions.ts';
import { hasMemory } from '../leases/memory.ts';
import { type LeaseRecord, parseRecord } from '../leases/record.ts';
import { type LeaseView, leaseView } from '../leases/views.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { isPool, type Kind } from '../line/kind.ts';
import { decodeCursor, encodeCursor } from '../listings/cursor.ts';
import { Page } from '../listings/pages.ts';
import { parsePool } from '../permits/record.ts';
import { type Chosen, chosenPermit } from '../permits/views.ts';
import type { ListedState, Sort } from './inputs.ts';

export interface ListInput {
  kind?: Kind | undefined;
  prefix?: string | undefined;
  holder?: string | undefined;
  state?: ListedState | undefined;
  sort?: Sort | undefined;
  limit?: number | undefined;
  cursor?: string | undefined;
}

/** One key of a list. Of a pool, the fields of `LeaseView` are those of the permit that ends first, or with the sort `held` of the oldest permit. */
export interface ListedKey extends LeaseView {
  kind: Kind;
  /** Up to how many tasks and callers are in line: the hints of the record count some that have left too. A count of the line would cost a query for each row. */
  waiting: number;
  /** Of a pool: the weight of all holders. */
  used?: number;
  /** Of a pool: the limit that the last grant named. */
  limit?: number | null;
  /** Of a pool: how many callers hold permits. */
  holders?: number;
}

export interface KeyPage {
  leases: ListedKey[];
  /** Null on the last page. An empty page may have a cursor too. */
  nextCursor: string | null;
}

/** Bounds the cost of one page if few of its rows match. */
const ROWS_READ_PER_PAGE = 1000;

/**
 * Lists the keys of the table. Without `sort`, a page costs the rows that it reads. With `sort`, each page costs a read of the whole table.
 * @throws HoldfastError InvalidRequest (cursor), Throttled, Unavailable (also if the table is too large to be sorted in one call)
 */
export const listKeys = (dependencies: LeaseDependencies) => (query: ListInput, call: Call) =>
  query.sort === undefined
    ? readPage(dependencies, query, call)
    : readSorted(dependencies, { ...query, sort: query.sort }, call);

async function readPage(dependencies: LeaseDependencies, query: ListInput, call: Call): Promise<KeyPage> {
  const limit = query.limit ?? DEFAULT_LIMIT;
  const from = query.cursor === undefined ? undefined : keyIn(query.cursor);
  const { items, last: end } = await scan(dependencies, { query, from, limit }, call);
  const page = newPage();
  const now = dependencies.clock.now();
  let read = 0;
  for (; read < items.length && page.rows.length < limit; read++) {
    const row = listed(items[read] as Item, now, { holder: query.holder });
    if (matches(row, query) && !page.add(row)) break;
  }
  // A scan can continue after any key of the table, not only after the one at which DynamoDB stopped.
  const last = read < items.length ? items[read - 1]?.key?.S : end;
  return { leases: page.rows, nextCursor: last === undefined ? null : encodeCursor(last) };
}

/** The place of a row in a sorted list: the value that the list is sorted by beside the key, without spaces, and the key. */
type Place = [value: string, key: string];

async function readSorted(
  dependencies: LeaseDependencies,
  query: ListInput & { sort: Sort },
  call: Call,
): Promise<KeyPage> {
  const limit = query.limit ?? DEFAULT_LIMIT;
  const after = query.cursor === undefined ? undefined : placeIn(query.cursor, query.sort);
  const placeOf = (row: ListedKey): Place => [VALUES[query.sort](row), row.key];
  const now = dependencies.clock.now();
  let first: ListedKey[] = [];
  let from: string | undefined;
  do {
    if (call.timeLeftMs() < LAST_PAGE_MS) throw tooLarge();
    const { items, last } = await scan(dependencies, { query, from, limit: ROWS_READ_PER_PAGE }, call);
    const chosen: Chosen = { holder: query.holder, by: query.sort === 'held' ? 'age' : 'end' };
    const rows = items.map((item) => listed(item, now, chosen)).filter((row) => matches(row, query));
    const later = rows.filter((row) => after === undefined || compare(placeOf(row), after) > 0);
    first = [...first, ...later].toSorted((one, other) => compare(placeOf(one), placeOf(other))).slice(0, limit + 1);
    from = last;
  } while (from !== undefined);
  const page = newPage();
  for (const row of first) if (page.rows.length === limit || !page.add(row)) break;
  const last = page.rows.at(-1);
  const hasMore = last !== undefined && page.rows.length < first.length;
  return { leases: page.rows, nextCursor: hasMore ? cursorAt(query.sort, placeOf(last)) : null };
}

/** Sorts after every instant. */
const NEVER = '\uffff';

/** No line is longer. */
const MOST_WAITING = 10 ** 9;

/** What a list is sorted by, before the key. */
const VALUES: Record<Sort, (row: ListedKey) => string> = {
  key: () => '',
  expiry: ({ expiresAt }) => expiresAt ?? NEVER,
  held: (row) => (hasHolder(row) && row.acquiredAt) || NEVER,
  waiting: ({ waiting }) => String(Math.max(0, MOST_WAITING - waiting)).padStart(10, '0'),
};

const hasHolder = ({ state }: Pick<ListedKey, 'state'>): boolean => state === 'held' || state === 'expired';

/** One page of a scan is answered in this time, usually. */
const LAST_PAGE_MS = 1000;

const tooLarge = () =>
  new HoldfastError('Unavailable', 'the table is too large to be sorted in one call: list without sort', {
    retryAfterMs: 1000,
  });

const compareTexts = (one: string, other: string): number => (one < other ? -1 : Number(one > other));
const compare = (one: Place, other: Place): number => compareTexts(one[0], other[0]) || compareTexts(one[1], other[1]);

/** Begins the cursor of a sorted list. No key begins so. */
const SORTED = 'holdfast:sorted-by-';

/** The longest key that DynamoDB takes, and what stands before it. */
const MOST_CURSOR_BYTES = 2048 + 64;

/** The text has the key once and as it is, so that the longest key has a cursor too. */
const cursorAt = (sort: Sort, [value, key]: Place): string => encodeCursor(`${SORTED}${sort} ${value} ${key}`);

/** @throws HoldfastError InvalidRequest */
function placeIn(cursor: string, sort: Sort): Place {
  const decoded = decodeCursor(cursor, MOST_CURSOR_BYTES);
  const start = `${SORTED}${sort} `;
  const end = decoded.indexOf(' ', start.length);
  if (!decoded.startsWith(start) || end < 0) throw otherSort();
  return [decoded.slice(start.length, end), decoded.slice(end + 1)];
}

/** @throws HoldfastError InvalidRequest */
function keyIn(cursor: string): string {
  const key = decodeCursor(cursor);
  if (key.startsWith(SORTED)) throw otherSort();
  return key;
}

const otherSort = () =>
  invalidRequest([{ path: 'cursor', message: 'belongs to a list with another sort: send that sort, or no cursor' }]);

const newPage = () => new Page<ListedKey>((row) => ({ ...row, data: null }));

async function scan(
  { dynamodb, clock, table }: LeaseDependencies,
  { query, from, limit }: { query: ListInput; from: string | undefined; limit: number },
  call: Call,
): Promise<{ items: Item[]; last: string | undefined }> {
  const command = new ScanCommand({
    TableName: table,
    Limit: isFiltered(query) ? ROWS_READ_PER_PAGE : limit,
    ...(from !== undefined && { ExclusiveStartKey: { key: text(from) } }),
    ...filter(query, clock.now()),
  });
  const output = await send(dynamodb, { command, operation: reading(`table ${table}`) }, call);
  return { items: output.Items ?? [], last: output.LastEvaluatedKey?.key?.S };
}

const isFiltered = ({ kind, prefix, holder, state }: ListInput): boolean =>
  [kind, prefix, holder, state].some((value) => value !== undefined);

const hasPool: Condition = { expression: 'attribute_exists(used) OR attribute_exists(mark)' };

const mayComeBack = (now: number): Condition => ({
  expression: 'line_until > :now',
  values: { ':now': integer(now) },
});

/** Leaves out most of what does not match. `matches` has the rest: no filter compares the entries of a pool. */
function filter({ kind, prefix, holder, state }: ListInput, now: number) {
  const conditions: Condition[] = [];
  if (kind === 'pool') conditions.push(hasPool);
  if (kind === 'lease') conditions.push(not(hasPool));
  if (prefix !== undefined) conditions.push(aliased('begins_with(#key, :prefix)', { ':prefix': text(prefix) }));
  if (holder !== undefined) conditions.push(any(hasPool, aliased('#holder = :holder', { ':holder': text(holder) })));
  if (state === 'active') conditions.push(any(isHeld, not(isUnmarked), hasPool, mayComeBack(now)));
  else if (state !== undefined) conditions.push(any(hasPool, isInState(state, now)));
  const [first, ...others] = conditions;
  if (!first) return {};
  const { ConditionExpression: FilterExpression, ...fields } = conditionFields(all(first, ...others));
  return { FilterExpression, ...fields };
}

/** The records of `once` have a list of their own (once/read.ts). */
const matches = (row: ListedKey, { holder, state }: ListInput): boolean =>
  !hasMemory(row.key) && (state === undefined || isIn(state, row)) && (holder === undefined || row.holder === holder);

const isIn = (state: ListedState, row: ListedKey): boolean =>
  state === 'active' ? hasHolder(row) || row.waiting > 0 : row.state === state;

/** One key as a list shows it. @param chosen which permit of a pool stands for all */
function listed(item: Item, now: number, chosen: Chosen): ListedKey {
  const key = item.key?.S ?? '';
  if (isPool(item)) {
    const record = parsePool(key, item);
    const { used, lastLimit, entries, mark, arrivals } = record;
    const waiting = waitingBy({ ...record, arrivals: mark && (arrivals ?? 0) }, now);
    const permit = chosenPermit(record, now, chosen);
    return { ...permit, kind: 'pool', used, limit: lastLimit ?? null, holders: entries.length, waiting };
  }
  const record = parseRecord(item);
  const arrivals = record.waiters && (Number(record.waiters.N) || 0);
  return { ...leaseView(key, record, now), kind: 'lease', waiting: waitingBy({ ...record, arrivals }, now) };
}

interface Counted extends Partial<Pick<LeaseRecord, 'lineOut' | 'lineUntil'>> {
  /** Undefined without the mark. */
  arrivals: number | undefined;
}

/**
 * The number of waiters that a list shows. With the mark, it is at least 1. Without the mark, the callers that were in line when it was removed may come back.
 */
function waitingBy({ arrivals, lineOut = 0, lineUntil = 0 }: Counted, now: number): number {
  if (arrivals !== undefined) return Math.max(1, arrivals - lineOut);
  return lineUntil > now ? Math.max(0, -lineOut) : 0;
}
