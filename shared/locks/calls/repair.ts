import { ScanCommand } from '@aws-sdk/client-dynamodb';
import { text } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import { reading, send } from '../../aws/send.ts';
import { type LeaseDependencies, TRANSFER_MS } from '../dependencies.ts';
import { lookAtKey } from '../executions/look.ts';
import { askWithin, newQuestions, type Questions, questionsOfMessage } from '../executions/questions.ts';
import { Fullness } from '../line/limits.ts';
import type { LastPut } from '../line/long-waits.ts';
import { LAST_KEY_MS } from '../line/overdue.ts';
import { type RepairCounts, repairAgain, repairKey } from '../line/repair-key.ts';
import { AFTER_ALL_ROWS, EXECUTION_ROW, parkedAtOf } from '../line/waiters.ts';
import type { RepairInput } from './inputs.ts';

export interface Repaired extends RepairCounts {
  /** Keys that have a line. */
  keys: number;
  /** Whether the run saw all keys, and asked all questions that were due. If not, the next run goes on. */
  complete: boolean;
}

/**
 * A third-party client does not hand its lease off, so the next caller takes it. While such a client holds a key with young tickets, the run goes on and
 * looks at that key this often. Older tickets wait for the next run: if such clients keep a key busy, a parked task may never get it, and must not
 * keep the function running.
 */
const REPAIR_AGAIN_MS = 5000;

/** A run mostly waits for DynamoDB, so it works on this many keys at once. */
const KEYS_AT_ONCE = 8;

/**
 * Goes through the keys that have a line, or looks at one key. Finishes what a call that was interrupted left undone, and serves the waiters behind
 * expired holders (docs/protocols/tasks.md#repair). A run starts from the tickets and not from the leases, because other clients and TTL remove the
 * mark. A run starts at a random key, so that runs that are cut short do not always miss the same keys.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown: the first failure of a key, after all the others were tried
 */
export function repairLines(dependencies: LeaseDependencies) {
  const lastPut: LastPut = new Map();
  return async ({ key: only }: RepairInput, call: Call): Promise<Repaired> => {
    const repaired: Repaired = { keys: 0, granted: 0, notified: 0, unanswered: 0, complete: true };
    const [failures, watched]: [unknown[], string[]] = [[], []];
    const endsAt = dependencies.clock.now() + call.timeLeftMs();
    const fullness = new Fullness(dependencies);
    const longWaits = only === undefined ? await longWaitsOf(dependencies, lastPut) : undefined;
    // A message looks at one key, and others wait behind it for their turn.
    const spareMs = only === undefined ? call.timeLeftMs() / 2 : Number.POSITIVE_INFINITY;
    // A key has many messages, and one run of the schedule a minute.
    const questions = only === undefined ? newQuestions() : questionsOfMessage();
    let oldest = Number.POSITIVE_INFINITY;
    const lines = only === undefined ? keysWithWaiters(dependencies, call) : [{ key: only }];
    await atOnce<{ key: string; parkedAt?: number }>(lines, async ({ key, parkedAt }) => {
      if (call.timeLeftMs() < LAST_KEY_MS) repaired.complete = false;
      if (!repaired.complete) return false;
      repaired.keys++;
      if (parkedAt !== undefined && parkedAt < oldest) oldest = parkedAt;
      if (only === undefined) await fullness.saw(key, call).catch((error) => failures.push(error));
      // Counters of its own: `a += await b` would undo what another key has added in the meantime.
      const own = { ...repaired, granted: 0, notified: 0, unanswered: 0 };
      const looking = { key, repaired: own, spareMs, questions, isMessage: only !== undefined };
      await repairKey(dependencies, looking, call).then(
        (again) => again && only === undefined && watched.push(key),
        (error) => failures.push(error),
      );
      await longWaits?.check(key, call).catch((error) => failures.push(error));
      for (const count of ['granted', 'notified', 'unanswered'] as const) repaired[count] += own[count];
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
 * Works on several items at once, in their order.
 * @param work returns whether to go on
 * @throws what the items throw, once the work that has begun is done
 */
async function atOnce<Item>(
  items: AsyncIterable<Item> | Iterable<Item>,
  work: (item: Item) => Promise<boolean>,
): Promise<void> {
  const each = (async function* () {
    yield* items;
  })();
  const worker = async () => {
    for (let next = await each.next(); !next.done && (await work(next.value)); ) next = await each.next();
  };
  const ended = await Promise.allSettled(Array.from({ length: KEYS_AT_ONCE }, worker));
  for (const end of ended) if (end.status === 'rejected') throw end.reason;
}

/**
 * Asks about the holders of the keys that are due, and begins with the keys about which no call has asked for the longest time. Call it once the run has seen
 * all keys, because otherwise the first keys would use up all questions.
 * @returns how many waiters were served
 */
async function askAboutHolders(
  dependencies: LeaseDependencies,
  { questions, failures }: { questions: Questions; failures: unknown[] },
  call: Call,
): Promise<number> {
  let granted = 0;
  const oldestFirst = [...questions.due.values()].toSorted((one, other) => one.lookedAt - other.lookedAt);
  await atOnce(oldestFirst, async (due) => {
    if (call.timeLeftMs() < TRANSFER_MS) questions.holders = 0;
    const { withTtl } = questions;
    const asking = askWithin(questions, due, (most) => lookAtKey(dependencies, { ...due, most, withTtl }, call));
    await asking.then(
      (given) => {
        granted += given;
      },
      (error) => failures.push(error),
    );
    return !questions.isCutShort;
  });
  return granted;
}

/** Measures nothing if no key has a line, because CloudWatch charges for each metric that has a value, even 0. */
function measureRun(call: Call, { keys, complete }: Repaired, ageMs: number) {
  if (keys > 0) call.measure?.('KeysInLine', keys);
  if (!complete) call.measure?.('RepairsCutShort', 1);
  if (Number.isFinite(ageMs)) call.measure?.('OldestTicketAgeSeconds', Math.max(0, ageMs) / 1000);
}

/** Looks at the keys again until their leases come free or the run must end. */
async function watch(
  dependencies: LeaseDependencies,
  { keys, endsAt, repaired, failures }: { keys: string[]; endsAt: number; repaired: Repaired; failures: unknown[] },
  call: Call,
): Promise<void> {
  const { clock } = dependencies;
  let watched = keys;
  while (watched.length > 0 && clock.now() + REPAIR_AGAIN_MS + LAST_KEY_MS <= endsAt) {
    await clock.sleep(REPAIR_AGAIN_MS);
    const still: string[] = [];
    await atOnce(watched, async (key) => {
      if (call.timeLeftMs() < LAST_KEY_MS) return false;
      const own = { ...repaired, granted: 0 };
      try {
        if (await repairAgain(dependencies, { key, repaired: own }, call)) still.push(key);
      } catch (error) {
        failures.push(error);
        still.push(key);
      }
      repaired.granted += own.granted;
      return true;
    });
    watched = still;
  }
}

/** The most rows of one page. */
const MAX_PAGE = 32;

/**
 * Reads the oldest row of each key and jumps over the others, so that a long line costs no more than a short one. While the pages show one row of
 * each key, they grow, so that many short lines do not cost a request each.
 */
async function* keysWithWaiters(
  { dynamodb, ids, waitersTable }: LeaseDependencies,
  call: Call,
): AsyncGenerator<{ key: string; parkedAt: number }> {
  const seen = new Set<string>();
  let from: string | undefined = ids.uuid(); // any place in the table will do
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
      // Such a key has no waiters, only the rows of executions.
      if (ticket.startsWith(EXECUTION_ROW)) continue;
      yield { key, parkedAt: parkedAtOf(ticket) };
    }
  }
}
