import { text } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import { HoldfastError } from '../../errors.ts';
import { endGrant, handOffToLine } from '../calls/release.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import { endGrantsOf } from '../executions/ended.ts';
import { dueKeyOf } from '../executions/look.ts';
import type { Questions } from '../executions/questions.ts';
import { executionState } from '../executions/state.ts';
import { isEntryAsSeen, isUnmarked } from '../record/conditions.ts';
import { writeGrants } from '../record/grants.ts';
import { nameOfRequest } from '../record/identity.ts';
import { areNotSuperseded, keptMark, newMark, writeMark } from '../record/mark.ts';
import { notifyHolder } from '../record/notify-holder.ts';
import { entryOf, type HolderEntry, isBound, isUnnotified, type KeyRecord, whyEnding } from '../record/record.ts';
import { leaseLost } from '../record/refusals.ts';
import { readKey, updateKey } from '../record/requests.ts';
import { takeOverAt } from '../record/room.ts';
import { sendNextRepair } from './delayed-repair.ts';
import { handOff } from './hand-off.ts';
import { failOverdue, newGrantOf } from './next.ts';
import { canNotify, failUnnotifiedTask, type NotifyOutcome, sendHeartbeat } from './notify.ts';
import { failAllOverdue, isStillNotified, isTaskLate, MIN_KEY_TIME_MS, needsMark } from './overdue.ts';
import { deleteWaiter, isOverdue, isTask, readWaiters, type Waiter, type WaitingTask } from './waiters.ts';
import { deleteUnlessFlagged } from './waiting-calls.ts';

/** What a run of the repair has done so far (locks/calls/repair.ts). */
export interface RepairCounts {
  /** Tasks and callers that received the key after its former holder had disappeared. */
  granted: number;
  /** Tasks that were notified of a grant on record. */
  notified: number;
  /** Tasks whose message is unanswered. The next run tries again. */
  unanswered: number;
}

export interface KeyRepair {
  key: string;
  counts: RepairCounts;
  /** How much time a run must have left to go on with a long line. With less, it leaves the rest to the next run. */
  spareMs: number;
  questions: Questions;
  /** Whether this is a delayed repair. If the key stays held, another one follows. */
  isDelayed: boolean;
}

/** How often a run hands a key off at most. */
const MAX_HAND_OFFS = 10;
/** How many rows of a key a run reads at most to find tasks that were not notified. */
const MAX_LATE_ROWS = 100;

interface Repair {
  record: KeyRecord;
  counts: RepairCounts;
}

/**
 * Finishes what an interrupted call left undone, and hands off the room of expired holders
 * (docs/protocols/tasks.md#repair).
 * @returns whether this run should repair the key again: a third-party client holds it, and will not hand it off
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function repairKey(
  dependencies: LeaseDependencies,
  { key, counts, spareMs, questions, isDelayed }: KeyRepair,
  call: Call,
): Promise<boolean> {
  let record = await readKey(dependencies, key, call);
  const line = { key, isGranted: (waiter: Waiter) => isGranted(record, waiter) } as const;
  const fail = (waiter: WaitingTask) => failOverdue(dependencies, { waiter, record }, call);
  counts.unanswered += await failAllOverdue(dependencies, { ...line, fail, spareMs }, call);
  record = await restoreMark(dependencies, record, call);
  if (record.latest) await (await import('./replace.ts')).repairReplaced(dependencies, record, call);
  // Notify before serving the line: a hand-off may notify another try of the task, and then the grant has a version
  // that this call has not seen.
  if (await notifyLate(dependencies, { record, counts }, call)) record = await readKey(dependencies, key, call);
  record = await passBoundGrants(dependencies, { record, counts }, call);
  let next: Waiter | undefined;
  let isServed = false;
  for (let tries = 0; tries < MAX_HAND_OFFS && call.timeLeftMs() >= MIN_KEY_TIME_MS; tries++) {
    const { served, end, record: current, blocked } = await handOff(dependencies, { record }, call);
    counts.granted += served.length;
    isServed ||= served.length > 0;
    [record, next] = [current, blocked];
    if (blocked && (await deleteDeadTask(dependencies, { waiter: blocked, questions }, call))) continue;
    if (end !== 'left') break;
  }
  // If the line was served, the hand-off has sent a delayed repair if one is needed.
  if (isDelayed && next && !isServed) await sendNextRepair(dependencies, { record, next }, call);
  const due = dueKeyOf(record, { withTtl: questions.withTtl, now: dependencies.clock.now() });
  if (due) questions.due.set(key, due);
  return record.thirdParty !== undefined && hasYoungWaiter(dependencies, key, call);
}

/** Repairs a key again that a third-party client held before. @returns whether such a client still holds it */
export async function repairAgain(
  dependencies: LeaseDependencies,
  { key, counts }: Pick<KeyRepair, 'key' | 'counts'>,
  call: Call,
): Promise<boolean> {
  const seen = await restoreMark(dependencies, await readKey(dependencies, key, call), call);
  const { served, record } = await handOff(dependencies, { record: seen }, call);
  counts.granted += served.length;
  return record.thirdParty !== undefined;
}

/** Restores a mark that a third-party client or TTL has removed, so that no caller passes those in line. */
async function restoreMark(dependencies: LeaseDependencies, record: KeyRecord, call: Call): Promise<KeyRecord> {
  const { key } = record;
  const waiting = { key, isGranted: (waiter: Waiter) => hasGrant(dependencies, record, waiter) };
  if (record.mark !== undefined || !(await needsMark(dependencies, waiting, call))) return record;
  return (await writeMark(dependencies, { key, condition: isUnmarked, left: 1 }, call)).record;
}

/**
 * A run repairs a busy key of third-party clients again while the newest waiter is younger than this. An older line
 * waits for the next run.
 */
const YOUNG_MS = 600_000;

async function hasYoungWaiter(dependencies: LeaseDependencies, key: string, call: Call): Promise<boolean> {
  const newestFirst = readWaiters(dependencies, { key, firstPage: 1, ScanIndexForward: false }, call);
  const { value: newest } = await newestFirst.next();
  return newest !== undefined && newest.parkedAt + YOUNG_MS > dependencies.clock.now();
}

const isGranted = (record: KeyRecord, waiter: Waiter): boolean =>
  entryOf(record, nameOfRequest(waiter))?.ticket === waiter.ticket;

/** Whether the request of a row has a grant, by this row or another. */
const hasGrant = ({ clock }: LeaseDependencies, record: KeyRecord, waiter: Waiter): boolean =>
  Number(entryOf(record, nameOfRequest(waiter))?.expiresAt) > clock.now();

/**
 * Notifies the tasks of grants whose rows are still there: the call that made such a grant may have crashed before it
 * notified the task.
 * @returns whether the record may have changed
 */
async function notifyLate(dependencies: LeaseDependencies, { record, counts }: Repair, call: Call): Promise<boolean> {
  const { clock, clockSkewMs } = dependencies;
  if (!record.entries.some((entry) => isTaskLate(entry, clock.now()))) return false;
  let [read, isChanged] = [0, false];
  for await (const waiter of readWaiters(dependencies, { key: record.key, firstPage: MAX_LATE_ROWS }, call)) {
    if (read++ === MAX_LATE_ROWS || call.timeLeftMs() < MIN_KEY_TIME_MS) break;
    const entry = entryOf(record, nameOfRequest(waiter));
    if (!entry || !isTaskLate(entry, clock.now())) continue;
    // Leave a grant that may be taken over to the hand-off: another call could replace it while this one notifies its
    // task.
    if (entry.ticket !== waiter.ticket || takeOverAt(entry, clockSkewMs) <= clock.now()) continue;
    if (!isTask(waiter)) {
      // A call has claimed the grant, and crashed before it deleted its row.
      if (entry.claimTtlMs === undefined) await deleteUnlessFlagged(dependencies, waiter, call);
      continue;
    }
    if (!isStillNotified(waiter, clock.now())) continue;
    isChanged = true;
    if (entry.isEnding) {
      await failTaskOfEndingGrant(dependencies, { record, entry, waiter, counts }, call);
      continue;
    }
    await notify(dependencies, { record, entry, waiter, counts, isWrittenHere: false }, call);
  }
  return isChanged;
}

interface HolderToNotify extends Repair {
  entry: HolderEntry;
  waiter: WaitingTask;
  isWrittenHere: boolean;
}

/** Notifies a task of its grant. @returns the record as last seen */
async function notify(
  dependencies: LeaseDependencies,
  { record, entry, waiter, counts, isWrittenHere }: HolderToNotify,
  call: Call,
): Promise<KeyRecord> {
  const grant = { waiter, record, entry, repeated: false, isWrittenHere };
  const { outcome, ...notified } = await notifyHolder(dependencies, grant, call);
  let current = notified.record;
  if (outcome === 'unanswered') counts.unanswered++;
  if (outcome === 'accepted') counts.notified++;
  const latest = entryOf(current, entry.name);
  if (outcome === 'gone' && latest && isBound(latest) && mayBeUnnotified(latest))
    current = (await noteUnnotified(dependencies, { key: record.key, entry: latest }, call)).record;
  if (outcome === 'accepted' || outcome === 'gone') await deleteWaiter(dependencies, waiter, call);
  // A task that is gone may have received an earlier message whose answer was lost. So only the end of the execution or
  // the expiry may end the grant.
  if (outcome !== 'gone' || entry.execution === undefined) return current;
  const { execution } = entry;
  counts.granted += (await endGrantsOf(dependencies, { key: record.key, execution }, call)).granted;
  return current;
}

/**
 * Notes in the record that perhaps no task was notified of a bound grant. The note is void as soon as the grant has
 * another version.
 */
const noteUnnotified = (
  dependencies: LeaseDependencies,
  { key, entry }: { key: string; entry: HolderEntry },
  call: Call,
) => updateKey(dependencies, { key, set: ['#h.j = :seen'], condition: isEntryAsSeen(entry) }, call);

/**
 * Passes bound grants that perhaps reached no task to the next tasks of the same executions, under new fences
 * (docs/protocols/bound.md#a-grant-that-reached-no-task).
 * @returns the record as last seen
 */
async function passBoundGrants(
  dependencies: LeaseDependencies,
  { record, counts }: Repair,
  call: Call,
): Promise<KeyRecord> {
  let current = record;
  const { key } = record;
  for (const entry of record.entries.filter(isUnnotified)) {
    const waiter = await successorOf(dependencies, { key, execution: entry.execution }, call);
    if (!waiter) continue;
    const grant = { ...newGrantOf(waiter), previous: entry.previous };
    const change = { granted: 1, value: newMark(dependencies) };
    const nextMark = keptMark({ record: current, next: undefined }, change);
    const line = { record: current, hasOthers: true, conditions: areNotSuperseded([grant]), mark: nextMark };
    const granting = {
      key,
      grants: [grant],
      toEnd: [{ entry, how: 'neverNotified' } as const],
      now: dependencies.clock.now(),
      line,
    };
    const { landed, record: after } = await writeGrants(dependencies, granting, call);
    current = after;
    const own = entryOf(after, grant.name);
    if (!landed || own?.ticket !== waiter.ticket) continue;
    counts.granted++;
    current = await notify(dependencies, { record: after, entry: own, waiter, counts, isWrittenHere: true }, call);
  }
  return current;
}

interface EndingTaskGrant {
  entry: HolderEntry;
  waiter: WaitingTask;
}

/**
 * Fails the task of a grant that is ending. The call that asked the holder to stop, such as a break with `wait`,
 * crashed before it did this. If the task accepts the message, it does not work under the grant, so the grant ends at once.
 */
async function failTaskOfEndingGrant(
  dependencies: LeaseDependencies,
  { record: { key }, entry, waiter, counts }: Repair & EndingTaskGrant,
  call: Call,
): Promise<void> {
  const error = leaseLost(key, whyEnding(entry));
  const outcome = await failUnnotifiedTask(dependencies, { rowKey: waiter, error }, call);
  if (outcome === 'unanswered') counts.unanswered++;
  if (outcome !== 'accepted') return;
  const ends = { key, proof: entry, brokenFence: entry.fence, seenVersion: entry.version };
  const { won, record, hasServedLine } = await endGrant(dependencies, ends, call);
  if (won && !hasServedLine) await handOffToLine(dependencies, { record }, call);
}

/** A task is worth a question only if it has waited for longer than most next waiters do. */
const ASK_TASK_AFTER_MS = 60_000;

/**
 * Takes a dead task out of the line, if it is the next waiter and keeps those behind it out
 * (docs/protocols/tasks.md#dead-tasks). To find out, sends it a heartbeat, after which Step Functions begins to count
 * the `HeartbeatSeconds` of its state again. If AWS throttles, the run stops asking.
 * @param waiter the next waiter, which does not fit
 * @returns whether its row is gone
 * @throws HoldfastError Throttled, OutcomeUnknown, Unavailable
 */
async function deleteDeadTask(
  dependencies: LeaseDependencies,
  { waiter, questions }: { waiter: Waiter; questions: Questions },
  call: Call,
): Promise<boolean> {
  if (!isTask(waiter) || waiter.parkedAt + ASK_TASK_AFTER_MS > dependencies.clock.now()) return false;
  if (questions.tasks-- <= 0) {
    questions.isCutShort = true;
    return false;
  }
  const outcome = await askIfAlive(dependencies, waiter, call);
  if (outcome === 'throttled') questions.tasks = 0;
  if (outcome !== 'gone') return false;
  await deleteWaiter(dependencies, waiter, call);
  return true;
}

/**
 * Asks whether a task is alive, by a heartbeat. A callback that has had a heartbeat would time out without further
 * ones, so for a callback this asks about its execution instead. The execution is older than the callback, so if AWS
 * does not find it, it has ended, or its function was deleted.
 */
async function askIfAlive(
  dependencies: LeaseDependencies,
  { taskToken, execution }: WaitingTask,
  call: Call,
): Promise<NotifyOutcome | 'throttled'> {
  if (taskToken !== undefined) return sendHeartbeat(dependencies, taskToken, call);
  if (execution === undefined) return 'unanswered';
  try {
    const state = await executionState(dependencies, execution, call);
    return state === 'ended' || state === 'missing' ? 'gone' : 'accepted';
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error;
    return error.code === 'Throttled' ? 'throttled' : 'unanswered';
  }
}

interface Times {
  acquiredAt?: number | undefined;
  heartbeatAt?: number | undefined;
  answeredAt?: number | undefined;
}

/**
 * Whether a bound grant whose own task is gone may have reached no task. A heartbeat, or an answer to a later task of
 * the request, would have changed these times. A message to a task does not.
 */
const mayBeUnnotified = ({ acquiredAt, heartbeatAt, answeredAt }: Times): boolean =>
  answeredAt === undefined && heartbeatAt === acquiredAt;

/**
 * Finds the next task that may receive a bound grant whose own task is gone: a bound task of the same execution. All
 * other waiters must wait for the end of the execution.
 * @throws HoldfastError Throttled, Unavailable
 */
async function successorOf(
  dependencies: LeaseDependencies,
  { key, execution }: { key: string; execution: string },
  call: Call,
): Promise<WaitingTask | undefined> {
  const ofExecution = {
    FilterExpression: 'execution = :execution',
    ExpressionAttributeValues: { ':execution': text(execution) },
  };
  for await (const waiter of readWaiters(dependencies, { key, ...ofExecution }, call)) {
    if (!isTask(waiter) || !waiter.bound || isOverdue(waiter, dependencies.clock.now())) continue;
    if (await canNotify(dependencies, waiter)) return waiter;
  }
  return undefined;
}
