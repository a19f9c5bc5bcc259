import { ScanCommand } from '@aws-sdk/client-dynamodb';
import { text } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import { reading, send } from '../../aws/send.ts';
import { type LeaseDependencies, MIN_HAND_OFF_TIME_MS } from '../dependencies.ts';
import { lookAtKey } from '../executions/look.ts';
import { askWithin, newQuestions, type Questions, questionsOfDelayedRepair } from '../executions/questions.ts';
import { NamespaceCounts } from '../line/limits.ts';
import type { LastPut } from '../line/long-waits.ts';
import { MIN_KEY_TIME_MS } from '../line/overdue.ts';
import { type RepairCounts, repairAgain, repairKey } from '../line/repair-key.ts';
import { AFTER_ALL_ROWS, EXECUTION_ROW, parkedAtOf } from '../line/waiters.ts';
import type { RepairInput } from './inputs.ts';

export interface Repaired extends RepairCounts {
  /** How many keys have a line. */
  keys: number;
  /** Whether the run read all keys and looked at all holders that were due. If not, the next run goes on. */
  complete: boolean;
}

/**
 * A third-party client does not hand off when its lease ends. So while such a client holds a key with young tickets,
 * the run goes on and reads that key this often. Older tickets wait for the next run: third-party clients may never
 * leave a key alone, and the task in line must not keep the function running.
 */
const REPAIR_AGAIN_MS = 5000;

/** How many keys a run works on at the same time. It mostly waits for DynamoDB. */
const KEYS_AT_ONCE = 8;

/**
 * Repairs all keys that have a line, or one key: finishes what interrupted calls left undone, and serves the waiters
 * behind expired holders (docs/protocols/tasks.md#repair). A run finds the keys by their waiters and not by their
 * marks, because third-party clients and TTL remove marks. It begins at a random key, so that runs that are cut short
 * do not always miss the same keys.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown: the first failure of a key, after the other keys
 */
export function repairLines(dependencies: LeaseDependencies) {
  const lastPut: LastPut = new Map();
  return async ({ key: only }: RepairInput, call: Call): Promise<Repaired> => {
    const repaired: Repaired = { keys: 0, granted: 0, notified: 0, unanswered: 0, complete: true };
    const [failures, watched]: [unknown[], string[]] = [[], []];
    const endsAt = dependencies.clock.now() + call.timeLeftMs();
    const namespaceCounts = new NamespaceCounts(dependencies);
    const longWaits = only === undefined ? await longWaitsOf(dependencies, lastPut) : undefined;
    // A delayed repair serves one key, and must not keep the messages behind it waiting.
    const spareMs = only === undefined ? call.timeLeftMs() / 2 : Number.POSITIVE_INFINITY;
    // A key may have many delayed repairs, but only one run of the schedule a minute.
    const questions = only === undefined ? newQuestions() : questionsOfDelayedRepair();
    let oldest = Number.POSITIVE_INFINITY;
    const lines = only === undefined ? keysWithWaiters(dependencies, call) : [{ key: only }];
    await workInParallel<{ key: string; parkedAt?: number }>(lines, async ({ key, parkedAt }) => {
      if (call.timeLeftMs() < MIN_KEY_TIME_MS) repaired.complete = false;
      if (!repaired.complete) return false;
      repaired.keys++;
      if (parkedAt !== undefined && parkedAt < oldest) oldest = parkedAt;
      if (only === undefined) await namespaceCounts.note(key, call).catch((error) => failures.push(error));
      // Each key has counters of its own, because `a += await b` would undo what another key has added in the meantime.
      const counts = { ...repaired, granted: 0, notified: 0, unanswered: 0 };
      const repairing = { key, counts, spareMs, questions, isDelayed: only !== undefined };
      await repairKey(dependencies, repairing, call).then(
        (again) => again && only === undefined && watched.push(key),
        (error) => failures.push(error),
      );
      await longWaits?.check(key, call).catch((error) => failures.push(error));
      for (const count of ['granted', 'notified', 'unanswered'] as const) repaired[count] += counts[count];
      return true;
    });
    repaired.granted += await askAboutHolders(dependencies, { questions, failures }, call);
    if (only === undefined && questions.isCutShort) repaired.complete = false;
    if (only === undefined) measureRun(call, repaired, dependencies.clock.now() - oldest);
    await longWaits?.put(call);
    await watch(dependencies, { keys: watched, endsAt, repaired, failures }, call);
    if (failures.length > 0) throw failures[0];
    return repaired;
  };
}

async function longWaitsOf(dependencies: LeaseDependencies, lastPut: LastPut) {
  const { waitEvents } = dependencies;
  return waitEvents && new (await import('../line/long-waits.ts')).LongWaits(dependencies, waitEvents, lastPut);
}

/**
 * Works on several items at the same time, in their order.
 * @param work returns whether to go on
 * @throws the first failure of an item, after the work that has begun is done
 */
async function workInParallel<Item>(
  items: AsyncIterable<Item> | Iterable<Item>,
  work: (item: Item) => Promise<boolean>,
): Promise<void> {
  const remaining = (async function* () {
    yield* items;
  })();
  const worker = async () => {
    for (let next = await remaining.next(); !next.done && (await work(next.value)); ) next = await remaining.next();
  };
  const results = await Promise.allSettled(Array.from({ length: KEYS_AT_ONCE }, worker));
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}

/**
 * Looks at the holders of the keys that are due, first at those whose last look was the longest time ago. Call this
 * function after the run has read all keys. Otherwise the first keys would use up all questions.
 * @returns how many waiters were served
 */
async function askAboutHolders(
  dependencies: LeaseDependencies,
  { questions, failures }: { questions: Questions; failures: unknown[] },
  call: Call,
): Promise<number> {
  let granted = 0;
  const oldestFirst = [...questions.due.values()].toSorted((one, other) => one.lookedAt - other.lookedAt);
  await workInParallel(oldestFirst, async (due) => {
    if (call.timeLeftMs() < MIN_HAND_OFF_TIME_MS) questions.holders = 0;
    const { withTtl } = questions;
    const look = askWithin(questions, due, (maxQuestions) =>
      lookAtKey(dependencies, { ...due, maxQuestions, withTtl }, call),
    );
    await look.then(
      (served) => {
        granted += served;
      },
      (error) => failures.push(error),
    );
    return !questions.isCutShort;
  });
  return granted;
}

/**
 * Sends the metrics of a run, but only if a key has a line: CloudWatch charges for each metric that has a value, even
 * 0.
 */
function measureRun(call: Call, { keys, complete }: Repaired, ageMs: number) {
  if (keys > 0) call.measure?.('KeysInLine', keys);
  if (!complete) call.measure?.('RepairsCutShort', 1);
  if (Number.isFinite(ageMs)) call.measure?.('OldestTicketAgeSeconds', Math.max(0, ageMs) / 1000);
}

/** Repairs keys again and again, until third-party clients have left them or the run must end. */
async function watch(
  dependencies: LeaseDependencies,
  { keys, endsAt, repaired, failures }: { keys: string[]; endsAt: number; repaired: Repaired; failures: unknown[] },
  call: Call,
): Promise<void> {
  const { clock } = dependencies;
  let watched = keys;
  while (watched.length > 0 && clock.now() + REPAIR_AGAIN_MS + MIN_KEY_TIME_MS <= endsAt) {
    await clock.sleep(REPAIR_AGAIN_MS);
    const still: string[] = [];
    await workInParallel(watched, async (key) => {
      if (call.timeLeftMs() < MIN_KEY_TIME_MS) return false;
      const counts = { ...repaired, granted: 0 };
      try {
        if (await repairAgain(dependencies, { key, counts }, call)) still.push(key);
      } catch (error) {
        failures.push(error);
        still.push(key);
      }
      repaired.granted += counts.granted;
      return true;
    });
    watched = still;
  }
}

const MAX_PAGE = 32;

/**
 * Lists the keys of the waiters table. The scan reads the oldest row of each key and jumps over the others, so that a
 * long line costs no more than a short one. While each key has only one row on a page, the pages grow, so that many
 * short lines do not cost a request each.
 */
async function* keysWithWaiters(
  { dynamodb, ids, waitersTable }: LeaseDependencies,
  call: Call,
): AsyncGenerator<{ key: string; parkedAt: number }> {
  const seen = new Set<string>();
  let from: string | undefined = ids.uuid(); // a random place in the table
  let limit = 1;
  for (let rounds = 0; rounds < 2; ) {
    const command: ScanCommand = new ScanCommand({
      TableName: waitersTable,
      Limit: limit,
      ProjectionExpression: '#key, ticket',
      ExpressionAttributeNames: { '#key': 'key' },
      ...(from !== undefined && { ExclusiveStartKey: { key: text(from), ticket: text(AFTER_ALL_ROWS) } }),
    });
    const { Items: rows = [] } = await send(dynamodb, { command, operation: reading(`table ${waitersTable}`) }, call);
    const oldest = new Map(rows.map(({ key, ticket }) => [key?.S ?? '', ticket?.S ?? ''] as const).toReversed());
    limit = oldest.size === rows.length ? Math.min(2 * limit, MAX_PAGE) : Math.ceil(limit / 2);
    if (rows.length === 0) rounds++;
    from = rows.at(-1)?.key?.S;
    for (const [key, ticket] of [...oldest].toReversed()) {
      if (seen.has(key)) return;
      seen.add(key);
      // The key has no waiters, only the rows of executions, which sort after waiters.
      if (ticket.startsWith(EXECUTION_ROW)) continue;
      yield { key, parkedAt: parkedAtOf(ticket) };
    }
  }
}
