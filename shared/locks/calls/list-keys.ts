import { ScanCommand } from '@aws-sdk/client-dynamodb';
import { integer, text } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import { aliased, all, any, type Condition, conditionFields, not } from '../../aws/condition.ts';
import type { Item } from '../../aws/dynamodb.ts';
import { reading, send } from '../../aws/send.ts';
import { HoldfastError, invalidRequest } from '../../errors.ts';
import { DEFAULT_LIMIT } from '../../fields.ts';
import { decodeCursor, encodeCursor } from '../../listings/cursor.ts';
import { Page, ROWS_READ_PER_PAGE } from '../../listings/pages.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import { EXCLUSIVE_PATH, isOnceOrRateRecord } from '../record/identity.ts';
import { type KeyRecord, parseKey } from '../record/record.ts';
import { type Chosen, type ListedKey, listedKey } from '../record/views.ts';
import type { ReadInput } from './inputs.ts';

type ListInput = Omit<ReadInput, 'key' | 'waiters'>;
type Sort = NonNullable<ReadInput['sort']>;
type ListedState = NonNullable<ReadInput['state']>;

export interface KeyPage {
  leases: ListedKey[];
  /** Null on the last page. Even an empty page may have a cursor. */
  nextCursor: string | null;
}

/**
 * Lists the keys of the table. Without `sort`, a page costs the rows that it reads. With `sort`, each page costs a read
 * of the whole table.
 * @throws HoldfastError InvalidRequest (cursor), Throttled, Unavailable (the table may be too large to be sorted in one
 * call)
 */
export const listKeys = (dependencies: LeaseDependencies) => (query: ListInput, call: Call) =>
  query.sort === undefined
    ? readPage(dependencies, query, call)
    : readSorted(dependencies, { ...query, sort: query.sort }, call);

async function readPage(dependencies: LeaseDependencies, query: ListInput, call: Call): Promise<KeyPage> {
  const limit = query.limit ?? DEFAULT_LIMIT;
  const from = query.cursor === undefined ? undefined : keyIn(query.cursor);
  const { items, last: end } = await scanKeys(dependencies, { query, from, limit }, call);
  const page = newPage();
  const now = dependencies.clock.now();
  let read = 0;
  for (; read < items.length && page.rows.length < limit; read++) {
    const row = listedKeyOf(items[read] as Item, now, chosenFor(query));
    if (row && matches(row, query) && !page.add(row)) break;
  }
  // A scan can continue after any key of the table, not only after the one at which DynamoDB stopped.
  const last = read < items.length ? items[read - 1]?.key?.S : end;
  return { leases: page.rows, nextCursor: last === undefined ? null : encodeCursor(last) };
}

/**
 * A list shows the oldest holder of each key, because heartbeats change which grant ends first. Sorted by expiry, it
 * shows the holder whose grant ends first.
 */
const chosenFor = ({ holder, sort }: ListInput): Chosen => ({ holder, by: sort === 'expiry' ? 'end' : 'age' });

/** Where a row stands in a sorted list: the value that the list is sorted by, which has no spaces, and the key. */
type SortKey = [value: string, key: string];

async function readSorted(
  dependencies: LeaseDependencies,
  query: ListInput & { sort: Sort },
  call: Call,
): Promise<KeyPage> {
  const limit = query.limit ?? DEFAULT_LIMIT;
  const after = query.cursor === undefined ? undefined : sortKeyIn(query.cursor, query.sort);
  const sortKeyOf = (row: ListedKey): SortKey => [VALUES[query.sort](row), row.key];
  const now = dependencies.clock.now();
  let first: ListedKey[] = [];
  let from: string | undefined;
  do {
    if (call.timeLeftMs() < MIN_PAGE_TIME_MS) throw tooLarge();
    const { items, last } = await scanKeys(dependencies, { query, from, limit: ROWS_READ_PER_PAGE }, call);
    const rows = items
      .flatMap((item) => listedKeyOf(item, now, chosenFor(query)) ?? [])
      .filter((row) => matches(row, query));
    const later = rows.filter((row) => after === undefined || compare(sortKeyOf(row), after) > 0);
    first = [...first, ...later]
      .toSorted((one, other) => compare(sortKeyOf(one), sortKeyOf(other)))
      .slice(0, limit + 1);
    from = last;
  } while (from !== undefined);
  const page = newPage();
  for (const row of first) if (page.rows.length === limit || !page.add(row)) break;
  const last = page.rows.at(-1);
  const hasMore = last !== undefined && page.rows.length < first.length;
  return { leases: page.rows, nextCursor: hasMore ? cursorAt(query.sort, sortKeyOf(last)) : null };
}

/** A value that sorts after every instant. */
const NEVER = '\uffff';

/** A number that no line reaches. */
const MAX_WAITING = 10 ** 9;

/** The value that each order sorts by. Rows with equal values are sorted by their keys. */
const VALUES: Record<Sort, (row: ListedKey) => string> = {
  key: () => '',
  expiry: ({ expiresAt }) => expiresAt ?? NEVER,
  held: (row) => (hasHolder(row) && row.acquiredAt) || NEVER,
  waiting: ({ waiting }) => String(Math.max(0, MAX_WAITING - waiting)).padStart(10, '0'),
};

const hasHolder = ({ state }: Pick<ListedKey, 'state'>): boolean => state === 'held' || state === 'expired';

/** How long one page of a scan usually takes. */
const MIN_PAGE_TIME_MS = 1000;

const tooLarge = () =>
  new HoldfastError('Unavailable', 'the table is too large to be sorted in one call: list without sort', {
    retryAfterMs: 1000,
  });

const compareTexts = (one: string, other: string): number => (one < other ? -1 : Number(one > other));
const compare = (one: SortKey, other: SortKey): number =>
  compareTexts(one[0], other[0]) || compareTexts(one[1], other[1]);

/** The prefix of the cursor of a sorted list. No key begins with it. */
const SORTED = 'holdfast:sorted-by-';

/** The longest key that DynamoDB accepts, and room for the text before it. */
const MAX_CURSOR_BYTES = 2048 + 64;

/** The text contains the key only one time, and unencoded, so that even the longest key has a cursor. */
const cursorAt = (sort: Sort, [value, key]: SortKey): string => encodeCursor(`${SORTED}${sort} ${value} ${key}`);

/** @throws HoldfastError InvalidRequest */
function sortKeyIn(cursor: string, sort: Sort): SortKey {
  const decoded = decodeCursor(cursor, MAX_CURSOR_BYTES);
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

async function scanKeys(
  { dynamodb, clock, table }: LeaseDependencies,
  { query, from, limit }: { query: ListInput; from: string | undefined; limit: number },
  call: Call,
): Promise<{ items: Item[]; last: string | undefined }> {
  const filtering = filter(query, clock.now());
  const command = new ScanCommand({
    TableName: table,
    Limit: filtering ? ROWS_READ_PER_PAGE : limit,
    ...(from !== undefined && { ExclusiveStartKey: { key: text(from) } }),
    ...filtering,
  });
  const output = await send(dynamodb, { command, operation: reading(`table ${table}`) }, call);
  return { items: output.Items ?? [], last: output.LastEvaluatedKey?.key?.S };
}

/** The key has a holder, expired or not. The record of a third-party client does not have `used`. */
const isHeldOrExpired: Condition = any(
  { expression: 'used > :zero', values: { ':zero': integer(0) } },
  { expression: 'attribute_not_exists(used) AND attribute_exists(lease_version)' },
);

/**
 * The key does not have an exclusive holder of another name. The last exclusive holder counts too,
 * because its entry stays after the end of its grant.
 */
const hasNoOtherExclusiveHolder = (holder: string): Condition => ({
  expression: 'attribute_not_exists(#alone) OR #alone.h = :holder',
  names: { '#alone': EXCLUSIVE_PATH },
  values: { ':holder': text(holder) },
});

const hasLine = (now: number): Condition => ({
  expression: 'attribute_exists(mark) OR line_until > :now',
  values: { ':now': integer(now) },
});

/** The key has a cap, which may have ended. `matches` checks that. */
const hasCap: Condition = { expression: 'attribute_exists(cap)' };

/**
 * Lets DynamoDB leave out most rows that do not match. `matches` leaves out the others, because a
 * filter cannot search the entries of shared holders.
 */
function filter({ prefix, holder, state }: ListInput, now: number) {
  const conditions: Condition[] = [];
  if (prefix !== undefined) conditions.push(aliased('begins_with(#key, :prefix)', { ':prefix': text(prefix) }));
  if (holder !== undefined) conditions.push(hasNoOtherExclusiveHolder(holder));
  if (state === 'active') conditions.push(any(isHeldOrExpired, hasLine(now), hasCap));
  else if (state === 'held' || state === 'expired') conditions.push(isHeldOrExpired);
  else if (state !== undefined) conditions.push(not(isHeldOrExpired));
  const [first, ...others] = conditions;
  if (!first) return undefined;
  const { ConditionExpression: FilterExpression, ...fields } = conditionFields(all(first, ...others));
  return { FilterExpression, ...fields };
}

const matches = (row: ListedKey, { holder, state }: ListInput): boolean =>
  (state === undefined || isInState(state, row)) && (holder === undefined || row.holder === holder);

const isInState = (state: ListedState, row: ListedKey): boolean =>
  state === 'active' ? hasHolder(row) || row.waiting > 0 || row.cap !== undefined : row.state === state;

/**
 * One key as a list shows it.
 * @returns undefined for a record of `once` or of a rate: these have lists of their own (once/read.ts, rates/read.ts)
 */
function listedKeyOf(item: Item, now: number, chosen: Chosen): ListedKey | undefined {
  const key = item.key?.S ?? '';
  if (isOnceOrRateRecord(key)) return undefined;
  const record = parseKey(key, item);
  return { ...listedKey(record, now, chosen), waiting: waitingBy(record, now) };
}

/**
 * The number of waiters that a list shows: at least 1 with a mark. Without a mark, the callers that may come back to
 * the line.
 */
export function waitingBy({ mark, arrivals = 0, lineOut = 0, lineUntil = 0 }: KeyRecord, now: number): number {
  if (mark !== undefined) return Math.max(1, arrivals - lineOut);
  return lineUntil > now ? Math.max(0, -lineOut) : 0;
}
