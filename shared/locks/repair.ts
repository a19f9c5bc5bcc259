import type { Call } from '../aws/call.ts';
import { notifyGranted } from '../leases/deliver.ts';
import { handOff } from '../leases/hand-off.ts';
import { markAgain } from '../leases/marks.ts';
import { failOverdue } from '../leases/next.ts';
import { readRecord } from '../leases/read-record.ts';
import type { LeaseRecord } from '../leases/record.ts';
import { canBeHad, isEnding, isLeased } from '../leases/rules.ts';
import { leaseLost } from '../leases/views.ts';
import { repairAgainAtTheEnd } from '../leases/watch.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { newQuestions, type Questions } from '../line/executions/questions.ts';
import { findEnd } from '../line/executions/state.ts';
import { Fullness } from '../line/limits/full-namespaces.ts';
import { keysWithTickets } from '../line/repair/lines.ts';
import { failAllOverdue, isLate, isSomebodyWaiting, isStillTold, LAST_KEY_MS } from '../line/repair/overdue.ts';
import { endUnnotified } from '../line/unnotified.ts';
import {
  deleteTicket,
  getTicket,
  isTask,
  poolOfLine,
  type TaskTicket,
  type Ticket,
  ticketsOf,
} from '../line/waiters.ts';
import { leaveLine } from '../line/waiting-calls.ts';
import { endDeadHolder } from './dead-holders.ts';
import { releaseHeldByEnded } from './execution-ended.ts';
import type { RepairInput } from './inputs.ts';

export interface Repaired {
  /** Keys that have a line. */
  keys: number;
  /** Tasks and callers that received a lease whose holder had disappeared. */
  granted: number;
  /** Tasks that were notified of a grant on record. */
  told: number;
  /** Tasks about which Step Functions gave no answer. The next run tries again. */
  unanswered: number;
  /** Whether the run saw all keys. The next run sees the rest. */
  complete: boolean;
}

/** One run does no more for one key, because a queue of dead tickets must not cost the other keys their turn. */
const MAX_HAND_OFFS = 10;

/**
 * A client that knows nothing of the queue does not hand its lease on, so the next caller takes it. While such a client holds a key with young
 * tickets, the run goes on and looks at that key this often. Older tickets wait for the next run: if such clients keep a key busy, a parked
 * task may never get it, and must not keep the function running.
 */
const LOOK_AGAIN_MS = 5000;
const YOUNG_MS = 600_000;

/** A run mostly waits for DynamoDB, so it works on this many keys at once. */
const KEYS_AT_ONCE = 8;

/**
 * Goes through the keys that have a line, or looks at one key. Finishes what a call that died half way left behind, and takes the leases of
 * holders that disappeared (docs/protocols/queue.md#repair). It starts from the tickets and not from the leases, because other clients and
 * TTL remove the mark. It starts at a random key, so that runs that are cut short do not always miss the same keys.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown: the first failure of a key, after all the others were tried
 */
export function repairer(dependencies: LeaseDependencies) {
  return async ({ key: only, fence }: RepairInput, call: Call): Promise<Repaired> => {
    const repaired: Repaired = { keys: 0, granted: 0, told: 0, unanswered: 0, complete: true };
    const [failures, watched]: [unknown[], string[]] = [[], []];
    const endsAt = dependencies.clock.now() + call.timeLeftMs();
    const fullness = new Fullness(dependencies);
    // A message looks at one key, and others wait behind it for their turn.
    const spareMs = only === undefined ? call.timeLeftMs() / 2 : Number.POSITIVE_INFINITY;
    // A key has many messages, and one run of the schedule a minute.
    const questions = only === undefined ? newQuestions() : { left: 0 };
    let oldest = Number.POSITIVE_INFINITY;
    const lines = only === undefined ? keysWithTickets(dependencies, call) : [{ key: only, parkedAt: undefined }];
    await atOnce<{ key: string; parkedAt: number | undefined }>(lines, async ({ key, parkedAt }) => {
      if (call.timeLeftMs() < LAST_KEY_MS) repaired.complete = false;
      if (!repaired.complete) return false;
      repaired.keys++;
      if (parkedAt !== undefined && parkedAt < oldest) oldest = parkedAt;
      if (only === undefined) await fullness.saw(key, call).catch((error) => failures.push(error));
      // Counters of its own: `a += await b` would undo what another key has added in the meantime.
      const own = { ...repaired, granted: 0, told: 0, unanswered: 0 };
      await repairKey(dependencies, { key, fence, repaired: own, spareMs, questions }, call).then(
        (again) => again && only === undefined && watched.push(key),
        (error) => failures.push(error),
      );
      for (const count of ['granted', 'told', 'unanswered'] as const) repaired[count] += own[count];
      return true;
    });
    if (only === undefined) measureRun(dependencies, { repaired, oldest }, call);
    await watch(dependencies, { keys: watched, endsAt, repaired, failures }, call);
    if (failures.length > 0) throw failures[0];
    return repaired;
  };
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

/** @param run as far as it got: how many keys have tickets, and when the oldest one was made */
function measureRun(
  { clock }: LeaseDependencies,
  { repaired: { keys, complete }, oldest }: { repaired: Repaired; oldest: number },
  call: Call,
) {
  const ageMs = keys === 0 ? 0 : Math.max(0, clock.now() - oldest);
  call.measure?.('KeysInLine', keys);
  call.measure?.('RepairsCutShort', complete ? 0 : 1);
  if (Number.isFinite(ageMs)) call.measure?.('OldestTicketAgeSeconds', ageMs / 1000);
}

/** Looks at the keys again until their leases come free or the run must end. */
async function watch(
  dependencies: LeaseDependencies,
  { keys, endsAt, repaired, failures }: { keys: string[]; endsAt: number; repaired: Repaired; failures: unknown[] },
  call: Call,
): Promise<void> {
  const { clock } = dependencies;
  let watched = keys;
  while (watched.length > 0 && clock.now() + LOOK_AGAIN_MS + LAST_KEY_MS <= endsAt) {
    await clock.sleep(LOOK_AGAIN_MS);
    const still: string[] = [];
    await atOnce(watched, async (key) => {
      if (call.timeLeftMs() < LAST_KEY_MS) return false;
      const own = { ...repaired, granted: 0 };
      try {
        const record = await readRecord(dependencies, key, call);
        const standing = await handOnOrMark(dependencies, { record, repaired: own }, call);
        if (isForeign(standing)) still.push(key);
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

/** Leased by a client that writes the Rust crate's attributes alone. */
const isForeign = (record: LeaseRecord): boolean => isLeased(record) && record.leaseId === undefined;

/** One key, and what the run has done and may still do. */
interface Looking {
  key: string;
  fence: number | undefined;
  repaired: Repaired;
  spareMs: number;
  questions: Questions;
}

/** @returns whether to look at the key again in this run */
async function repairKey(
  dependencies: LeaseDependencies,
  { key, fence, repaired, spareMs, questions }: Looking,
  call: Call,
): Promise<boolean> {
  const pool = poolOfLine(key);
  if (pool !== undefined) {
    const [{ withPools }, { repairPool }] = [
      await import('../permits/dependencies.ts'),
      await import('../permits/repair.ts'),
    ];
    await repairPool(withPools(dependencies), { key: pool, repaired, spareMs, questions }, call);
    return false;
  }
  const record = await readRecord(dependencies, key, call);
  // The grant that the message is about has ended. Another one that stands has messages of its own.
  if (fence !== undefined && record.fence !== fence && !canBeHad(record, dependencies)) return false;
  const isGranted = ({ ticket }: Ticket) => ticket === record.ticket;
  const fail = (ticket: TaskTicket) => failOverdue(dependencies, { ticket, record }, call);
  repaired.unanswered += await failAllOverdue(dependencies, { key, isGranted, fail, spareMs }, call);
  const standing = await handOnOrMark(dependencies, { record, repaired }, call);
  await notifyLate(dependencies, { record: standing, repaired }, call);
  if (fence !== undefined && standing.fence === fence) await repairAgainAtTheEnd(dependencies, standing, call);
  repaired.granted += await endDeadHolder(dependencies, { record: standing, questions }, call);
  return isForeign(standing) && hasYoungTicket(dependencies, key, call);
}

async function hasYoungTicket(dependencies: LeaseDependencies, key: string, call: Call): Promise<boolean> {
  const newestFirst = ticketsOf(dependencies, { key, firstPage: 1, ScanIndexForward: false }, call);
  const { value: newest } = await newestFirst.next();
  return newest !== undefined && newest.parkedAt + YOUNG_MS > dependencies.clock.now();
}

/** The lease as it was last seen, and what the run has done so far. */
interface Repair {
  record: LeaseRecord;
  repaired: Repaired;
}

/**
 * Hands on a lease that is free or expired, and puts a lost mark back on one that runs.
 * @returns the record as it was last seen
 */
async function handOnOrMark(
  dependencies: LeaseDependencies,
  { record: seen, repaired }: Repair,
  call: Call,
): Promise<LeaseRecord> {
  const { key } = seen;
  let record = seen;
  for (let tries = 0; canBeHad(record, dependencies); record = await readRecord(dependencies, key, call)) {
    const ending = isLeased(record) ? 'expired' : 'free';
    const { end, standing } = await handOff(dependencies, { record, ending }, call);
    if (end === 'granted') repaired.granted++;
    if (end !== 'left' || ++tries === MAX_HAND_OFFS || call.timeLeftMs() < LAST_KEY_MS) return standing;
  }
  if (record.waiters !== undefined || !(await isSomebodyWaiting(dependencies, { key, isGranted: () => false }, call)))
    return record;
  return (await markAgain(dependencies, { record }, call)).standing;
}

/** The ticket of the grant is still there, so perhaps its task was never notified. Notifies it, under a new version. */
async function notifyLate(dependencies: LeaseDependencies, { record, repaired }: Repair, call: Call): Promise<void> {
  const { key, ticket } = record;
  if (!isLeased(record) || ticket === undefined || !isLate(record, dependencies.clock.now())) return;
  const row = await getTicket(dependencies, { key, ticket }, call);
  if (row && !isTask(row)) {
    // The grant was claimed, and its call died before it deleted the row.
    if (record.claimTtlMs === undefined) await leaveLine(dependencies, row, call);
    return;
  }
  if (!row || !isStillTold(row, dependencies.clock.now())) return;
  if (isEnding(record)) {
    // The break that marked it died before it looked at the ticket.
    const ending = { ticket: row, error: leaseLost(key, 'broken', undefined) };
    const delivery = await endUnnotified(dependencies, ending, call);
    if (delivery === 'unanswered') repaired.unanswered++;
    if (delivery !== 'delivered') return;
    const { end } = await handOff(dependencies, { record, ending: 'broken' }, call);
    if (end === 'granted') repaired.granted++;
    return;
  }
  const grant = { ticket: row, record, repeated: false, isOurs: false };
  const { outcome, standing } = await notifyGranted(dependencies, grant, call);
  if (outcome === 'overtaken') return;
  if (outcome === 'unanswered') {
    repaired.unanswered++;
    return;
  }
  await deleteTicket(dependencies, row, call);
  if (outcome === 'delivered') repaired.told++;
  // Perhaps the task was notified before, and the answer was lost: only the end of its execution or its expiry moves the lease.
  const { execution } = standing;
  if (outcome === 'delivered' || execution === undefined) return;
  const found = await findEnd(dependencies, { execution, orMissing: true }, call);
  if (found) repaired.granted += await releaseHeldByEnded(dependencies, { ...found, key, ticket }, call);
}
