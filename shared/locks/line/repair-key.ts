import { text } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import { HoldfastError } from '../../errors.ts';
import { endGrant, handOffToLine } from '../calls/release.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import { endGrantsOf } from '../executions/ended.ts';
import { dueKeyOf } from '../executions/look.ts';
import type { Questions } from '../executions/questions.ts';
import { executionState } from '../executions/state.ts';
import { isStill, isUnmarked } from '../record/conditions.ts';
import { writeGrants } from '../record/grants.ts';
import { requestName } from '../record/identity.ts';
import { areNotSuperseded, keptMark, mark, newMark } from '../record/mark.ts';
import { endingOf, entryOf, type HolderEntry, isBound, isUnnotified, type KeyRecord } from '../record/record.ts';
import { leaseLost } from '../record/refusals.ts';
import { readKey, updateKey } from '../record/requests.ts';
import { takeoverAt } from '../record/room.ts';
import { notifyHolder } from '../record/versions.ts';
import { sendNextRepair } from './delayed-repair.ts';
import { handOff } from './hand-off.ts';
import { failOverdue, newGrantOf } from './next.ts';
import { canNotify, endUnnotified, type NotifyOutcome, sendHeartbeat } from './notify.ts';
import { failAllOverdue, isAnyWaiting, isStillNotified, isTaskLate, LAST_KEY_MS } from './overdue.ts';
import { deleteWaiter, isOverdue, isTask, readWaiters, type Waiter, type WaitingTask } from './waiters.ts';
import { deleteUnlessWithdrawn } from './waiting-calls.ts';

/** What a run of the repair has done so far (locks/calls/repair.ts). */
export interface RepairCounts {
  /** Tasks and callers that received a grant whose holder had disappeared. */
  granted: number;
  /** Tasks that were notified of a grant on record. */
  notified: number;
  /** Tasks about which Step Functions gave no answer. The next run tries again. */
  unanswered: number;
}

/** One key with a line, and what the run may still do for it. */
export interface KeyRepair {
  key: string;
  repaired: RepairCounts;
  /** With less time left than this, the rest of a long line is left to the next run. */
  spareMs: number;
  questions: Questions;
  /** Whether a message asks for this look. If the key stays held, another message follows. */
  isMessage: boolean;
}

/** The most that one run does for one key. */
const MAX_HAND_OFFS = 10;
const MAX_LATE = 100;

interface Repair {
  record: KeyRecord;
  repaired: RepairCounts;
}

/**
 * Finishes what an interrupted call left undone, and grants the room of expired holders to the line (docs/protocols/tasks.md#repair).
 * @returns whether to look at the key again in this run: a third-party client holds it, and does not hand it off
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function repairKey(
  dependencies: LeaseDependencies,
  { key, repaired, spareMs, questions, isMessage }: KeyRepair,
  call: Call,
): Promise<boolean> {
  let record = await readKey(dependencies, key, call);
  const line = { key, isGranted: (waiter: Waiter) => isGranted(record, waiter) } as const;
  const fail = (waiter: WaitingTask) => failOverdue(dependencies, { waiter, record }, call);
  repaired.unanswered += await failAllOverdue(dependencies, { ...line, fail, spareMs }, call);
  record = await markAgain(dependencies, record, call);
  if (record.latest) await (await import('./replace.ts')).repairReplaced(dependencies, record, call);
  // Before the line is served: that may notify an older try of the task, and so give the grant a version that this call has not seen.
  if (await notifyLate(dependencies, { record, repaired }, call)) record = await readKey(dependencies, key, call);
  record = await passOn(dependencies, { record, repaired }, call);
  let next: Waiter | undefined;
  let isServed = false;
  for (let tries = 0; tries < MAX_HAND_OFFS && call.timeLeftMs() >= LAST_KEY_MS; tries++) {
    const { granted, end, record: current, blocked } = await handOff(dependencies, { record }, call);
    repaired.granted += granted.length;
    isServed ||= granted.length > 0;
    [record, next] = [current, blocked];
    if (blocked && (await deleteDeadTask(dependencies, { waiter: blocked, questions }, call))) continue;
    if (end !== 'left') break;
  }
  // A hand-off sends the message about its own grants.
  if (isMessage && next && !isServed) await sendNextRepair(dependencies, { record, next }, call);
  const due = dueKeyOf(record, { withTtl: questions.withTtl, now: dependencies.clock.now() });
  if (due) questions.due.set(key, due);
  return record.thirdParty !== undefined && hasYoungWaiter(dependencies, key, call);
}

/** The same for a key that a third-party client held when the run came to it. @returns whether such a client still holds it */
export async function repairAgain(
  dependencies: LeaseDependencies,
  { key, repaired }: Pick<KeyRepair, 'key' | 'repaired'>,
  call: Call,
): Promise<boolean> {
  const seen = await markAgain(dependencies, await readKey(dependencies, key, call), call);
  const { granted, record } = await handOff(dependencies, { record: seen }, call);
  repaired.granted += granted.length;
  return record.thirdParty !== undefined;
}

/** Puts back a mark that a third-party client has removed, or TTL, so that no other call passes those in line. */
async function markAgain(dependencies: LeaseDependencies, record: KeyRecord, call: Call): Promise<KeyRecord> {
  const { key } = record;
  const waiting = { key, isGranted: (waiter: Waiter) => hasPermit(dependencies, record, waiter) };
  if (record.mark !== undefined || !(await isAnyWaiting(dependencies, waiting, call))) return record;
  return (await mark(dependencies, { key, condition: isUnmarked, left: 1 }, call)).record;
}

/** The line of a busy key of third-party clients is looked at again in the same run while its newest ticket is younger than this. */
const YOUNG_MS = 600_000;

async function hasYoungWaiter(dependencies: LeaseDependencies, key: string, call: Call): Promise<boolean> {
  const newestFirst = readWaiters(dependencies, { key, firstPage: 1, ScanIndexForward: false }, call);
  const { value: newest } = await newestFirst.next();
  return newest !== undefined && newest.parkedAt + YOUNG_MS > dependencies.clock.now();
}

const isGranted = (record: KeyRecord, waiter: Waiter): boolean =>
  entryOf(record, requestName(waiter))?.ticket === waiter.ticket;

/** Whether the request of a row has a grant, by whichever row. */
const hasPermit = ({ clock }: LeaseDependencies, record: KeyRecord, waiter: Waiter): boolean =>
  Number(entryOf(record, requestName(waiter))?.expiresAt) > clock.now();

/**
 * The ticket of a grant is still there, so perhaps its task was never notified. Notifies it, under a new version.
 * @returns whether the record may have changed
 */
async function notifyLate(dependencies: LeaseDependencies, { record, repaired }: Repair, call: Call): Promise<boolean> {
  const { clock, clockSkewMs } = dependencies;
  if (!record.entries.some((entry) => isTaskLate(entry, clock.now()))) return false;
  let [read, isChanged] = [0, false];
  for await (const waiter of readWaiters(dependencies, { key: record.key, firstPage: MAX_LATE }, call)) {
    if (read++ === MAX_LATE || call.timeLeftMs() < LAST_KEY_MS) break;
    const entry = entryOf(record, requestName(waiter));
    if (!entry || !isTaskLate(entry, clock.now())) continue;
    // No other grant replaces this one before the margin is over.
    if (entry.ticket !== waiter.ticket || takeoverAt(entry, clockSkewMs) <= clock.now()) continue;
    if (!isTask(waiter)) {
      // The grant was claimed, and its call died before it deleted the row.
      if (entry.claimTtlMs === undefined) await deleteUnlessWithdrawn(dependencies, waiter, call);
      continue;
    }
    if (!isStillNotified(waiter, clock.now())) continue;
    isChanged = true;
    if (entry.isEnding) {
      await endMarked(dependencies, { record, entry, waiter, repaired }, call);
      continue;
    }
    await notify(dependencies, { record, entry, waiter, repaired, isOurs: false }, call);
  }
  return isChanged;
}

interface NotifyingKey extends Repair {
  entry: HolderEntry;
  waiter: WaitingTask;
  /** Whether this call has just written the version on record. */
  isOurs: boolean;
}

/** @returns the record as it was last seen */
async function notify(
  dependencies: LeaseDependencies,
  { record, entry, waiter, repaired, isOurs }: NotifyingKey,
  call: Call,
): Promise<KeyRecord> {
  const grant = { waiter, record, entry, repeated: false, isOurs };
  const { outcome, ...notified } = await notifyHolder(dependencies, grant, call);
  let current = notified.record;
  if (outcome === 'unanswered') repaired.unanswered++;
  if (outcome === 'accepted') repaired.notified++;
  const now = entryOf(current, entry.name);
  if (outcome === 'gone' && now && isBound(now) && mayBeUnnotified({ ...now, heartbeatAt: now.beatAt }))
    current = (await noteUnnotified(dependencies, { key: record.key, entry: now }, call)).record;
  if (outcome === 'accepted' || outcome === 'gone') await deleteWaiter(dependencies, waiter, call);
  // Perhaps an earlier message reached the task, and its answer was lost. So only the end of the execution or the expiry may end the grant.
  if (outcome !== 'gone' || entry.execution === undefined) return current;
  const { execution } = entry;
  repaired.granted += (await endGrantsOf(dependencies, { key: record.key, execution }, call)).granted;
  return current;
}

/** Marks a bound grant as one of which perhaps no task was notified. */
const noteUnnotified = (
  dependencies: LeaseDependencies,
  { key, entry }: { key: string; entry: HolderEntry },
  call: Call,
) => updateKey(dependencies, { key, set: ['#h.j = :seen'], condition: isStill(entry) }, call);

/** Passes bound grants that perhaps reached no task to the next tasks of the same executions, under new fences. @returns the record as it was last seen */
async function passOn(dependencies: LeaseDependencies, { record, repaired }: Repair, call: Call): Promise<KeyRecord> {
  let current = record;
  const { key } = record;
  for (const entry of record.entries.filter(isUnnotified)) {
    const waiter = await successorOf(dependencies, { key, execution: entry.execution }, call);
    if (!waiter) continue;
    const grant = { ...newGrantOf(waiter), previous: entry.previous };
    const left = { granted: 1, value: newMark(dependencies) };
    const mark = keptMark({ seen: current, next: undefined }, left);
    const line = { seen: current, others: true, also: areNotSuperseded([grant]), mark };
    const granting = {
      key,
      grants: [grant],
      ended: [{ entry, how: 'neverNotified' } as const],
      now: dependencies.clock.now(),
      line,
    };
    const { landed, record: after } = await writeGrants(dependencies, granting, call);
    current = after;
    const own = entryOf(after, grant.name);
    if (!landed || own?.ticket !== waiter.ticket) continue;
    repaired.granted++;
    current = await notify(dependencies, { record: after, entry: own, waiter, repaired, isOurs: true }, call);
  }
  return current;
}

interface MarkedKey {
  entry: HolderEntry;
  waiter: WaitingTask;
}

/** The break that marked the grant died before it looked at the ticket. If the task takes the message, no holder works under the grant. */
async function endMarked(
  dependencies: LeaseDependencies,
  { record: { key }, entry, waiter, repaired }: Repair & MarkedKey,
  call: Call,
): Promise<void> {
  const error = leaseLost(key, endingOf(entry));
  const outcome = await endUnnotified(dependencies, { waiter, error }, call);
  if (outcome === 'unanswered') repaired.unanswered++;
  if (outcome !== 'accepted') return;
  const ends = { key, proof: entry, brokenFence: entry.fence, seenVersion: entry.version };
  const { won, record, isHandedOff } = await endGrant(dependencies, ends, call);
  if (won && !isHandedOff) await handOffToLine(dependencies, { record }, call);
}

/** Most tasks that are first in line do not wait for longer. */
const ASK_TASK_AFTER_MS = 60_000;

/**
 * Takes a task out of the line that keeps those behind it out, if Step Functions accepts no message for the task any more
 * (docs/protocols/tasks.md#dead-tasks). A heartbeat is the only message to a task that does not end the task. Step Functions then begins to count the
 * `HeartbeatSeconds` of its state again. Once Step Functions throttles, the run asks no more.
 * @param waiter the first in line, which does not fit
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
  const outcome = await liveness(dependencies, waiter, call);
  if (outcome === 'throttled') questions.tasks = 0;
  if (outcome !== 'gone') return false;
  await deleteWaiter(dependencies, waiter, call);
  return true;
}

/**
 * Asks whether a task is alive by a heartbeat. After a heartbeat, a callback would time out without further ones, so for a callback this asks about the
 * execution instead. The execution is older than the callback. So if AWS does not find it after `ASKED_AFTER_MS`, it has ended, or its function was deleted.
 */
async function liveness(
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
 * Whether a bound grant whose own task is gone may have reached no task. If the grant has had a heartbeat, or a later task of the request has
 * received it, its holder knows of it. Messages do not move the times of a bound grant.
 */
const mayBeUnnotified = ({ acquiredAt, heartbeatAt, answeredAt }: Times): boolean =>
  answeredAt === undefined && heartbeatAt === acquiredAt;

/**
 * The next task in line that may receive a bound grant whose own task is gone (docs/protocols/bound.md#a-grant-that-reached-no-task): a bound task of the same
 * execution. All other waiters wait for the end of the execution.
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
