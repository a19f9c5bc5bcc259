import type { Call } from '../aws/call.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { endUnnotified } from '../line/notify.ts';
import type { Counts, Looking } from '../line/repair/looking.ts';
import { failAllOverdue, isAnyWaiting, isLate, isStillNotified, LAST_KEY_MS } from '../line/repair/overdue.ts';
import { mayBeUnnotified, successorOf } from '../line/repair/unnotified-grant.ts';
import {
  deleteWaiter,
  getWaiter,
  isTask,
  readWaiters,
  stayingOf,
  type Waiter,
  type WaitingTask,
} from '../line/waiters.ts';
import { deleteUnlessWithdrawn } from '../line/waiting-calls.ts';
import { isStillHeld } from './conditions.ts';
import { notifyLease } from './deliver.ts';
import { releaseHeldBy } from './execution-ended.ts';
import { handOff } from './hand-off.ts';
import { dueKeyOf } from './holder-look.ts';
import { markAgain } from './marks.ts';
import { failOverdue } from './next.ts';
import { readRecord } from './read-record.ts';
import type { Leased, LeaseRecord } from './record.ts';
import { canBeHad, isBound, isEnding, isLeased, isUnnotified } from './rules.ts';
import { transfer } from './transfer.ts';
import { leaseLost } from './views.ts';
import { repairAgainAtTheEnd } from './watch.ts';
import { updateLease } from './write.ts';

/** One run does no more for one key, because one line of tasks that are gone must not delay the other keys. */
const MAX_HAND_OFFS = 10;

/** The line of a busy key of third-party clients is looked at again in the same run while its newest ticket is younger than this. */
const YOUNG_MS = 600_000;

/**
 * Finishes what a call on a lease that was interrupted left undone, and hands on the lease of a holder that disappeared
 * (docs/protocols/tasks.md#repair).
 * @param fence of the grant that a message is about
 * @returns whether to look at the key again in this run
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function repairLease(
  dependencies: LeaseDependencies,
  { key, fence, repaired, spareMs, questions, strangers }: Looking & { fence: number | undefined },
  call: Call,
): Promise<boolean> {
  const record = await readRecord(dependencies, key, call);
  // The grant that the message is about has ended. Another one that stands has messages of its own.
  if (fence !== undefined && record.fence !== fence && !canBeHad(record, dependencies)) return false;
  const isGranted = ({ ticket }: Waiter) => ticket === record.ticket;
  const fail = (waiter: WaitingTask) => failOverdue(dependencies, { waiter, record }, call);
  const shared = sharedRequest(record, dependencies.clock.now());
  repaired.unanswered += await failAllOverdue(
    dependencies,
    { key, kind: 'lease', isGranted, shared, fail, spareMs, strangers },
    call,
  );
  // Each notified task of the request that holds the lease has given the grant a new version.
  const latest = shared === undefined ? record : await readRecord(dependencies, key, call);
  const current = await handOffOrMark(dependencies, { record: latest, repaired }, call);
  const notified = await notifyLate(dependencies, { record: current, repaired }, call);
  await passOn(dependencies, { record: notified, repaired }, call);
  if (fence !== undefined && current.fence === fence) await repairAgainAtTheEnd(dependencies, current, call);
  const due = dueKeyOf(current, { withTtl: questions.withTtl, now: dependencies.clock.now() });
  if (due) questions.due.set(key, due);
  return isForeign(current) && hasYoungWaiter(dependencies, key, call);
}

/**
 * The request that holds the lease. A later try of its task may have been in line before the grant, and only the schedule notifies such a task.
 * @returns undefined if the call that wrote the grant may still notify a task of it, or no task may share it
 */
const sharedRequest = (record: LeaseRecord, now: number): string | undefined =>
  isLeased(record) && record.claimTtlMs === undefined && isLate(record, now) && !isEnding(record)
    ? record.requestId
    : undefined;

async function hasYoungWaiter(dependencies: LeaseDependencies, key: string, call: Call): Promise<boolean> {
  const newestFirst = readWaiters(dependencies, { key, kind: 'lease', firstPage: 1, ScanIndexForward: false }, call);
  const { value: newest } = await newestFirst.next();
  return newest !== undefined && newest.parkedAt + YOUNG_MS > dependencies.clock.now();
}

/** The same for a lease that a third-party client held when the run came to its key. @returns whether such a client still holds it */
export async function repairLeaseAgain(
  dependencies: LeaseDependencies,
  { key, repaired }: Pick<Looking, 'key' | 'repaired'>,
  call: Call,
): Promise<boolean> {
  const record = await readRecord(dependencies, key, call);
  return isForeign(await handOffOrMark(dependencies, { record, repaired }, call));
}

/** Leased by a client that writes the Rust crate's attributes alone. */
const isForeign = (record: LeaseRecord): boolean => isLeased(record) && record.leaseId === undefined;

/** The lease as it was last seen, and what the run has done so far. */
interface Repair {
  record: LeaseRecord;
  repaired: Counts;
}

/**
 * Hands on a lease that is free or expired, and puts a lost mark back on one that runs.
 * @returns the record as it was last seen
 */
async function handOffOrMark(
  dependencies: LeaseDependencies,
  { record: seen, repaired }: Repair,
  call: Call,
): Promise<LeaseRecord> {
  const { key } = seen;
  let record = seen;
  for (let tries = 0; canBeHad(record, dependencies); record = await readRecord(dependencies, key, call)) {
    const ending = isLeased(record) ? 'expired' : 'free';
    const { end, record: current } = await handOff(dependencies, { record, ending }, call);
    if (end === 'granted') repaired.granted++;
    if (end !== 'left' || ++tries === MAX_HAND_OFFS || call.timeLeftMs() < LAST_KEY_MS) return current;
  }
  if (
    record.waiters !== undefined ||
    !(await isAnyWaiting(dependencies, { key, kind: 'lease', isGranted: () => false }, call))
  )
    return record;
  return (await markAgain(dependencies, { record }, call)).record;
}

/**
 * Notifies a task whose ticket is still there, because perhaps nobody has notified it. Gives the grant a new version first.
 * @returns the record as it was last seen
 */
async function notifyLate(
  dependencies: LeaseDependencies,
  { record, repaired }: Repair,
  call: Call,
): Promise<LeaseRecord> {
  const { key, ticket } = record;
  if (!isLeased(record) || ticket === undefined || !isLate(record, dependencies.clock.now())) return record;
  const row = await getWaiter(dependencies, { key, ticket }, call);
  if (row && !isTask(row)) {
    // The grant was claimed, and its call died before it deleted the row.
    if (record.claimTtlMs === undefined) await deleteUnlessWithdrawn(dependencies, row, call);
    return record;
  }
  if (!row || !isStillNotified(row, dependencies.clock.now())) return record;
  if (isEnding(record)) {
    // The break that marked it died before it looked at the ticket.
    const ending = { waiter: row, error: leaseLost(key, 'broken', undefined) };
    const delivery = await endUnnotified(dependencies, ending, call);
    if (delivery === 'unanswered') repaired.unanswered++;
    if (delivery !== 'delivered') return record;
    const { end, record: after } = await handOff(dependencies, { record, ending: 'broken' }, call);
    if (end === 'granted') repaired.granted++;
    return after;
  }
  return notify(dependencies, { record, row, repaired, isOurs: false }, call);
}

interface Notifying {
  record: Leased;
  row: WaitingTask;
  repaired: Counts;
  /** Whether this call has just written the version on record. */
  isOurs: boolean;
}

/** Notifies the task of the grant on record. @returns the record as it was last seen */
async function notify(
  dependencies: LeaseDependencies,
  { record, row, repaired, isOurs }: Notifying,
  call: Call,
): Promise<LeaseRecord> {
  const { key } = row;
  const grant = { waiter: row, record, repeated: false, isOurs };
  const { outcome, record: current } = await notifyLease(dependencies, grant, call);
  if (outcome === 'overtaken') return current;
  if (outcome === 'unanswered') {
    repaired.unanswered++;
    return current;
  }
  const noted =
    outcome === 'gone' && isBound(current) && mayBeUnnotified(current)
      ? await noteUnnotified(dependencies, current, call)
      : current;
  await deleteWaiter(dependencies, row, call);
  if (outcome === 'delivered') repaired.told++;
  // Perhaps an earlier message reached the task, and its answer was lost. So only the end of the execution or the expiry may end the lease.
  const { execution } = current;
  if (outcome === 'delivered' || execution === undefined) return noted;
  const { outcome: end, granted = 0 } = await releaseHeldBy(dependencies, { key, execution }, call);
  if (end !== 'freed') return noted;
  repaired.granted += granted;
  return readRecord(dependencies, key, call);
}

/** Marks the bound grant on record as one of which perhaps no task was notified. */
async function noteUnnotified(dependencies: LeaseDependencies, record: Leased, call: Call): Promise<LeaseRecord> {
  const note = { key: record.key, expression: 'SET unnotified_version = :seen', condition: isStillHeld(record) };
  return (await updateLease(dependencies, note, call)).record;
}

/** The line was not read, so others may be in line. */
const BEHIND_OTHERS = {
  ...{ next: undefined, others: true, following: [], taskWaits: false, staying: stayingOf([]) },
  ...{ isFull: false, gone: 0, expiredUnnotified: false },
};

/** Passes a bound grant that perhaps reached no task to the next task of the same execution, under a new fence. */
async function passOn(dependencies: LeaseDependencies, { record, repaired }: Repair, call: Call): Promise<void> {
  if (!isUnnotified(record)) return;
  const { key, execution, previous } = record;
  const waiter = await successorOf(dependencies, { key, kind: 'lease', execution }, call);
  if (!waiter) return;
  const line = { oldest: waiter, ...BEHIND_OTHERS };
  const passed = await transfer(dependencies, { from: record, how: 'undelivered', waiter, line, previous }, call);
  if (!passed.won || !isLeased(passed.record)) return;
  repaired.granted++;
  await notify(dependencies, { record: passed.record, row: waiter, repaired, isOurs: true }, call);
}
