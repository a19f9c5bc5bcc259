import { GetItemCommand, QueryCommand, ScanCommand, UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { integer, text } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import { all, type Condition, conditionFields } from '../../aws/condition.ts';
import { conditionalWrite, type Item } from '../../aws/dynamodb.ts';
import { reading, send, writing } from '../../aws/send.ts';
import { HoldfastError } from '../../errors.ts';
import { namespaceOfName } from '../../namespace.ts';
import { DEFAULT_QUOTAS, type LeaseDependencies } from '../dependencies.ts';
import { IS_WAITER_OF, waiterOf } from './waiters.ts';

/** A hint may be wrong. So at most this many arrivals pass the quota before one of them counts the line, whatever the record says. */
const MAX_UNCOUNTED = 32;

const countedEvery = (waitersPerKey: number): number =>
  Math.min(MAX_UNCOUNTED, Math.max(1, Math.ceil(waitersPerKey / MAX_UNCOUNTED)));

/** A call or a task that has just joined a line, and the record after that. */
export interface Arrived {
  /** The key of the line. */
  key: string;
  /** The mark: how many have joined so far, with this one. */
  arrivals: number;
  /** A hint: how many of those have left the line. */
  lineOut: number | undefined;
  /** Sets the hint after a count that contradicts it. */
  correct(inLine: number): Promise<unknown>;
}

/**
 * Whether more are in line than the quota allows (docs/protocols/queue.md#limits). Counts the line only if, by the record, more may be in it: a
 * crowd that comes back raises the mark quickly, and that alone is no reason to count.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function isLineFull(
  dependencies: LeaseDependencies,
  { key, arrivals, lineOut = 0, correct }: Arrived,
  call: Call,
): Promise<boolean> {
  const { waitersPerKey } = dependencies.quotas ?? DEFAULT_QUOTAS;
  const seemsFull = arrivals - lineOut > waitersPerKey;
  const isSample = arrivals > waitersPerKey && arrivals % countedEvery(waitersPerKey) === 0;
  if (!seemsFull && !isSample) return false;
  const inLine = await countInLine(dependencies, key, call);
  const isFull = inLine > waitersPerKey;
  if (isFull !== seemsFull) await correct(inLine);
  return isFull;
}

/**
 * Counts the tasks and callers in line, up to one more than the quota, by an eventually consistent count: half a read unit for each 4 KiB of rows.
 * The row of a caller that left stays until the repair deletes it, and does not count.
 * @throws HoldfastError Throttled, Unavailable
 */
async function countInLine(
  { dynamodb, clock, waitersTable, quotas: { waitersPerKey } = DEFAULT_QUOTAS }: LeaseDependencies,
  key: string,
  call: Call,
): Promise<number> {
  let count = 0;
  let from: Item | undefined;
  do {
    const command: QueryCommand = new QueryCommand({
      TableName: waitersTable,
      Select: 'COUNT',
      Limit: waitersPerKey + 1 - count,
      KeyConditionExpression: IS_WAITER_OF,
      FilterExpression: 'attribute_not_exists(keep_until) OR keep_until > :now',
      ExpressionAttributeNames: { '#key': 'key' },
      ExpressionAttributeValues: { ...waiterOf(key), ':now': integer(clock.now()) },
      ...(from && { ExclusiveStartKey: from }),
    });
    const page = await send(dynamodb, { command, operation: reading(`table ${waitersTable}`) }, call);
    count += page.Count ?? 0;
    from = page.LastEvaluatedKey;
  } while (from && count <= waitersPerKey);
  return count;
}

// The quota of tickets in a namespace (docs/protocols/queue.md#limits). The repair counts, and writes down which namespaces are full. Calls that
// join a line read that. So a deployment without lines counts nothing, and a count may be a few minutes old.

/** A record of the leases table. No caller can name such a key. */
const KEY = 'holdfast:full-namespaces';

/** How long a function uses what it has read before it reads again which namespaces are full. */
const READ_FULL_EVERY_MS = 10_000;

/** A namespace is no longer full if no run of the repair has called it full for so long. Runs come each minute, and may last nearly as long. */
const VALID_MS = 150_000;

/** Counting stops there: some 100 MiB of tickets. */
const MAX_PAGES = 100;
const MAX_FULL_NAMESPACES = 1000;

/** A line may pass the quota of its key: calls that are under way at one moment join together. A namespace is counted as if each line had this many times its quota. */
const BEYOND_QUOTA = 2;

/** After this time TTL removes the record of a deployment in which no namespace is full any more. */
const FULL_TTL_SECONDS = 86_400;

interface KnownFull {
  askedAt: number;
  countedAt: number;
  full: ReadonlySet<string>;
}

const known = new WeakMap<LeaseDependencies, KnownFull>();

/**
 * Lets a call or a task into the line of a key, unless its namespace has too many in line already.
 * @throws HoldfastError QueueFull, Throttled, Unavailable
 */
export async function refuseWhereFull(dependencies: LeaseDependencies, key: string, call: Call): Promise<void> {
  const { namespace } = call;
  if (namespace === undefined) return;
  const now = dependencies.clock.now();
  let record = known.get(dependencies);
  if (record === undefined || now - record.askedAt >= READ_FULL_EVERY_MS || now < record.askedAt) {
    record = { askedAt: now, ...(await ask(dependencies, call)) };
    known.set(dependencies, record);
  }
  // A count from the future, by a clock that was wrong, is no count either.
  if (!record.full.has(namespace) || Math.abs(now - record.countedAt) >= VALID_MS) return;
  const { waitersPerNamespace: limit } = dependencies.quotas ?? DEFAULT_QUOTAS;
  throw new HoldfastError(
    'QueueFull',
    `at least ${limit} tasks and callers of the namespace wait: send the call again later`,
    {
      ...{ key: key, quota: 'maxWaitersPerNamespace', limit },
      retryAfterMs: READ_FULL_EVERY_MS,
    },
  );
}

async function ask({ dynamodb, table }: LeaseDependencies, call: Call): Promise<Omit<KnownFull, 'askedAt'>> {
  const command = new GetItemCommand({ TableName: table, Key: { key: text(KEY) } });
  const { Item: item } = await send(dynamodb, { command, operation: reading(`table ${table}`) }, call);
  return { countedAt: Number(item?.counted_at?.N ?? 0), full: new Set(item?.full?.SS) };
}

/** Sees each key that has a line, and says when a namespace may be full. */
export class Fullness {
  readonly #dependencies: LeaseDependencies;
  readonly #keys = new Map<string, number>();
  #counted = false;

  constructor(dependencies: LeaseDependencies) {
    this.#dependencies = dependencies;
  }

  /**
   * Counts the tickets of all namespaces, once, as soon as one of them has enough keys with a line to be full. A deployment with few such
   * keys pays nothing.
   * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
   */
  async saw(key: string, call: Call): Promise<void> {
    const namespace = namespaceOfName(key);
    if (namespace === undefined || this.#counted) return;
    const keys = (this.#keys.get(namespace) ?? 0) + 1;
    this.#keys.set(namespace, keys);
    const { waitersPerKey, waitersPerNamespace } = this.#dependencies.quotas ?? DEFAULT_QUOTAS;
    if (keys * waitersPerKey * BEYOND_QUOTA < waitersPerNamespace) return;
    this.#counted = true;
    const counts = await countWaiters(this.#dependencies, call);
    const full = [...counts].filter(([, count]) => count >= waitersPerNamespace).map(([name]) => name);
    await writeFull(this.#dependencies, full.slice(0, MAX_FULL_NAMESPACES), call);
  }
}

/** A lower bound, because a count that must end early misses some. */
async function countWaiters({ dynamodb, waitersTable }: LeaseDependencies, call: Call): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  let from: Item | undefined;
  const until = call.timeLeftMs() / 2;
  for (let pages = 0; pages < MAX_PAGES && call.timeLeftMs() > until; pages++) {
    const command: ScanCommand = new ScanCommand({
      TableName: waitersTable,
      ProjectionExpression: '#key',
      FilterExpression: 'attribute_exists(deadline)', // the row of an execution has none
      ExpressionAttributeNames: { '#key': 'key' },
      ...(from && { ExclusiveStartKey: from }),
    });
    const page = await send(dynamodb, { command, operation: reading(`table ${waitersTable}`) }, call);
    for (const { key } of page.Items ?? []) {
      const namespace = namespaceOfName(key?.S ?? '');
      if (namespace !== undefined) counts.set(namespace, (counts.get(namespace) ?? 0) + 1);
    }
    from = page.LastEvaluatedKey;
    if (!from) break;
  }
  return counts;
}

const isCounted: Condition = { expression: 'attribute_exists(counted_at)' };

/** A run that was frozen must not overwrite a younger count. */
async function writeFull({ dynamodb, clock, table }: LeaseDependencies, full: string[], call: Call): Promise<void> {
  const now = clock.now();
  const isNewer: Condition = {
    expression: 'attribute_not_exists(counted_at) OR counted_at < :now OR counted_at > :ahead',
    values: { ':now': integer(now), ':ahead': integer(now + VALID_MS) },
  };
  const isAnyFull = full.length > 0;
  const command = new UpdateItemCommand({
    TableName: table,
    Key: { key: text(KEY) },
    UpdateExpression: `SET counted_at = :now, lease_expiry = :ttl${isAnyFull ? ', #full = :full' : ' REMOVE #full'}`,
    ...conditionFields(isAnyFull ? isNewer : all(isCounted, isNewer), {
      names: { '#full': 'full' },
      values: {
        ':now': integer(now),
        ':ttl': integer(Math.ceil(now / 1000) + FULL_TTL_SECONDS),
        ...(isAnyFull && { ':full': { SS: full } }),
      },
    }),
  });
  await conditionalWrite(dynamodb, { command, operation: writing(`table ${table}`) }, call);
}
