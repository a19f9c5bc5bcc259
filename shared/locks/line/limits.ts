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

/**
 * When more waiters have arrived than the quota, at least one arrival in `MAX_UNCOUNTED` counts the line, even if the
 * record says that the line is not full: the hint of how many have left may be wrong.
 */
const MAX_UNCOUNTED = 32;

const countedEvery = (waitersPerKey: number): number =>
  Math.min(MAX_UNCOUNTED, Math.max(1, Math.ceil(waitersPerKey / MAX_UNCOUNTED)));

/** A call or a task that has just joined a line, and the record after that. */
export interface Arrived {
  key: string;
  /** How many have joined so far, with this call or task. */
  arrivals: number;
  /** A hint: how many of these have left the line. */
  lineOut: number | undefined;
  /** Corrects the hint after a count. */
  correct(inLine: number): Promise<unknown>;
}

/**
 * Whether the line is longer than the quota (docs/protocols/queue.md#limits). Counts the rows only if the record says
 * that it is, or as a sample. A crowd that comes back raises the arrivals quickly, and that alone is not a reason to
 * count. If the count contradicts the record, corrects the hint in the record.
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
 * Counts the tasks and callers in line, up to one more than the quota. Expired rows do not count. The reads are
 * eventually consistent, because a full line has many rows, and half the price matters.
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

// The quota of waiters in a namespace (docs/protocols/queue.md#limits). The repair counts them, and notes which
// namespaces are full. Calls that join a line read the note, which may be a few minutes old. A deployment without lines
// counts nothing.

/** The record with the note, in the table of the keys. Callers cannot name keys that begin with `holdfast:`. */
const FULL_NAMESPACES_KEY = 'holdfast:full-namespaces';

/** How long a function uses the note before it reads the note again. */
const READ_FULL_EVERY_MS = 10_000;

/** How long the note is valid. Runs of the repair begin each minute, and may last nearly as long. */
const VALID_MS = 150_000;

/** The most pages that a count reads: some 100 MiB of rows. */
const MAX_PAGES = 100;
const MAX_FULL_NAMESPACES = 1000;

/**
 * How many times its quota a line is assumed to hold, because calls that join at the same moment do not see each other.
 */
const BEYOND_QUOTA = 2;

/** How long the record stays after the last time that a namespace was full. Then TTL removes it. */
const FULL_TTL_SECONDS = 86_400;

interface KnownFull {
  readAt: number;
  countedAt: number;
  full: ReadonlySet<string>;
}

const known = new WeakMap<LeaseDependencies, KnownFull>();

/**
 * Refuses a call or a task that wants to join a line, if its namespace has too many waiters.
 * @throws HoldfastError QueueFull, Throttled, Unavailable
 */
export async function refuseIfNamespaceFull(dependencies: LeaseDependencies, key: string, call: Call): Promise<void> {
  const { namespace } = call;
  if (namespace === undefined) return;
  const now = dependencies.clock.now();
  let record = known.get(dependencies);
  if (record === undefined || now - record.readAt >= READ_FULL_EVERY_MS || now < record.readAt) {
    record = { readAt: now, ...(await readFull(dependencies, call)) };
    known.set(dependencies, record);
  }
  // A count from the future is void too: it was written by a clock that was wrong.
  if (!record.full.has(namespace) || Math.abs(now - record.countedAt) >= VALID_MS) return;
  const { waitersPerNamespace: limit } = dependencies.quotas ?? DEFAULT_QUOTAS;
  throw new HoldfastError(
    'QueueFull',
    `at least ${limit} tasks and callers of the namespace wait: send the call again later`,
    {
      ...{ key, quota: 'maxWaitersPerNamespace', limit },
      retryAfterMs: READ_FULL_EVERY_MS,
    },
  );
}

async function readFull({ dynamodb, table }: LeaseDependencies, call: Call): Promise<Omit<KnownFull, 'readAt'>> {
  const command = new GetItemCommand({ TableName: table, Key: { key: text(FULL_NAMESPACES_KEY) } });
  const { Item: item } = await send(dynamodb, { command, operation: reading(`table ${table}`) }, call);
  return { countedAt: Number(item?.counted_at?.N ?? 0), full: new Set(item?.full?.SS) };
}

/**
 * Counts the waiters of all namespaces in a run of the repair, if the lines that the run has seen could fill a
 * namespace.
 */
export class NamespaceCounts {
  readonly #dependencies: LeaseDependencies;
  readonly #keys = new Map<string, number>();
  #counted = false;

  constructor(dependencies: LeaseDependencies) {
    this.#dependencies = dependencies;
  }

  /**
   * Notes a key that has a line. Counts as soon as a namespace has enough such keys to be full, at most one time in a
   * run. A deployment with few lines does not pay for a count.
   * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
   */
  async note(key: string, call: Call): Promise<void> {
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

/**
 * @returns the number of waiters by namespace, as a lower bound: a count stops after many pages, or when half of the
 * time left is gone
 */
async function countWaiters({ dynamodb, waitersTable }: LeaseDependencies, call: Call): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  let from: Item | undefined;
  const minTimeLeftMs = call.timeLeftMs() / 2;
  for (let pages = 0; pages < MAX_PAGES && call.timeLeftMs() > minTimeLeftMs; pages++) {
    const command: ScanCommand = new ScanCommand({
      TableName: waitersTable,
      ProjectionExpression: '#key',
      FilterExpression: 'attribute_exists(deadline)', // leaves out the rows of executions
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

/**
 * Writes the note, unless it has a younger count: this run may have been frozen. If no namespace is full, writes only
 * over an older note.
 */
async function writeFull({ dynamodb, clock, table }: LeaseDependencies, full: string[], call: Call): Promise<void> {
  const now = clock.now();
  const isNewer: Condition = {
    expression: 'attribute_not_exists(counted_at) OR counted_at < :now OR counted_at > :ahead',
    values: { ':now': integer(now), ':ahead': integer(now + VALID_MS) },
  };
  const isAnyFull = full.length > 0;
  const command = new UpdateItemCommand({
    TableName: table,
    Key: { key: text(FULL_NAMESPACES_KEY) },
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
