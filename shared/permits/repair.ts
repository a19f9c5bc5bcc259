import type { Call } from '../aws/call.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { endUnnotified } from '../line/notify.ts';
import { dropDeadTask } from '../line/repair/dead-task.ts';
import type { Counts, Looking } from '../line/repair/looking.ts';
import { failAllOverdue, isAnyWaiting, isLate, isStillNotified, LAST_KEY_MS } from '../line/repair/overdue.ts';
import { mayBeUnnotified, successorOf } from '../line/repair/unnotified-grant.ts';
import { deleteWaiter, isTask, readWaiters, stayingOf, type Waiter, type WaitingTask } from '../line/waiters.ts';
import { deleteUnlessWithdrawn } from '../line/waiting-calls.ts';
import { isStill, isUnmarked } from './conditions.ts';
import { notifyPermit } from './deliver.ts';
import { endPermitsOf } from './execution-ended.ts';
import { grantPermits } from './grants.ts';
import { handOff } from './hand-off.ts';
import { dueKeyOf } from './holder-look.ts';
import { requestName } from './identity.ts';
import { mark } from './marks.ts';
import { failOverdue, permitOf } from './next.ts';
import { readPool } from './read.ts';
import { entryOf, isBound, isUnnotified, type PoolEntry, type PoolRecord } from './record.ts';
import { endGrant, handOffToLine } from './release.ts';
import { takeoverAt } from './room.ts';
import { permitLost } from './views.ts';
import { lookAtTheEnd } from './watch.ts';
import { updatePool } from './write.ts';

/** The most that one run does for one pool. */
const MAX_ADVANCES = 10;
const MAX_LATE = 100;

interface Repair {
  record: PoolRecord;
  repaired: Counts;
}

/**
 * Finishes what an interrupted call left undone, and grants the room of expired holders to the line (docs/protocols/tasks.md#repair).
 * @returns whether to look at the key again in this run: a third-party client holds it, and does not hand it off
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function repairPoolLine(
  dependencies: LeaseDependencies,
  { key, repaired, spareMs, questions, isMessage }: Looking,
  call: Call,
): Promise<boolean> {
  let record = await readPool(dependencies, key, call);
  const line = { key, isGranted: (waiter: Waiter) => isGranted(record, waiter) } as const;
  const fail = (waiter: WaitingTask) => failOverdue(dependencies, { waiter, record }, call);
  repaired.unanswered += await failAllOverdue(dependencies, { ...line, fail, spareMs }, call);
  record = await marked(dependencies, record, call);
  // Before the line is served: that may notify an older try of the task, and so give the permit a version that this call has not seen.
  if (await notifyLate(dependencies, { record, repaired }, call)) record = await readPool(dependencies, key, call);
  record = await passOn(dependencies, { record, repaired }, call);
  let next: Waiter | undefined;
  let isServed = false;
  for (let tries = 0; tries < MAX_ADVANCES && call.timeLeftMs() >= LAST_KEY_MS; tries++) {
    const { granted, end, record: current, blocked } = await handOff(dependencies, { record }, call);
    repaired.granted += granted.length;
    isServed ||= granted.length > 0;
    [record, next] = [current, blocked];
    if (blocked && (await dropDeadTask(dependencies, { waiter: blocked, questions }, call))) continue;
    if (end !== 'left') break;
  }
  // A hand-off sends the message about its own grants.
  if (isMessage && next && !isServed) await lookAtTheEnd(dependencies, { record, next }, call);
  const due = dueKeyOf(record, { withTtl: questions.withTtl, now: dependencies.clock.now() });
  if (due) questions.due.set(key, due);
  return record.thirdParty !== undefined && hasYoungWaiter(dependencies, key, call);
}

/** The same for a key that a third-party client held when the run came to it. @returns whether such a client still holds it */
export async function repairAgain(
  dependencies: LeaseDependencies,
  { key, repaired }: Pick<Looking, 'key' | 'repaired'>,
  call: Call,
): Promise<boolean> {
  const seen = await marked(dependencies, await readPool(dependencies, key, call), call);
  const { granted, record } = await handOff(dependencies, { record: seen }, call);
  repaired.granted += granted.length;
  return record.thirdParty !== undefined;
}

/** Puts back a mark that a third-party client has removed, or TTL, so that nobody passes those in line. */
async function marked(dependencies: LeaseDependencies, record: PoolRecord, call: Call): Promise<PoolRecord> {
  const { key } = record;
  const waiting = { key, isGranted: (waiter: Waiter) => hasPermit(dependencies, record, waiter) };
  if (record.mark !== undefined || !(await isAnyWaiting(dependencies, waiting, call))) return record;
  return (await mark(dependencies, { key, condition: isUnmarked, isAgain: true }, call)).record;
}

/** The line of a busy key of third-party clients is looked at again in the same run while its newest ticket is younger than this. */
const YOUNG_MS = 600_000;

async function hasYoungWaiter(dependencies: LeaseDependencies, key: string, call: Call): Promise<boolean> {
  const newestFirst = readWaiters(dependencies, { key, firstPage: 1, ScanIndexForward: false }, call);
  const { value: newest } = await newestFirst.next();
  return newest !== undefined && newest.parkedAt + YOUNG_MS > dependencies.clock.now();
}

const isGranted = (record: PoolRecord, waiter: Waiter): boolean =>
  entryOf(record, requestName(waiter))?.ticket === waiter.ticket;

/** Whether the request of a row has a permit, by whichever row. */
const hasPermit = ({ clock }: LeaseDependencies, record: PoolRecord, waiter: Waiter): boolean =>
  Number(entryOf(record, requestName(waiter))?.expiresAt) > clock.now();

/**
 * The ticket of a grant is still there, so perhaps its task was never notified. Notifies it, under a new version.
 * @returns whether the record may have changed
 */
async function notifyLate(dependencies: LeaseDependencies, { record, repaired }: Repair, call: Call): Promise<boolean> {
  const { clock, clockSkewMs } = dependencies;
  if (!record.entries.some((entry) => isLate(entry, clock.now()))) return false;
  let [read, isChanged] = [0, false];
  for await (const waiter of readWaiters(dependencies, { key: record.key, firstPage: MAX_LATE }, call)) {
    if (read++ === MAX_LATE || call.timeLeftMs() < LAST_KEY_MS) break;
    const entry = entryOf(record, requestName(waiter));
    if (!entry || !isLate(entry, clock.now())) continue;
    // Nobody takes the place of the grant before the margin is over.
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

interface Notifying extends Repair {
  entry: PoolEntry;
  waiter: WaitingTask;
  /** Whether this call has just written the version on record. */
  isOurs: boolean;
}

async function notify(
  dependencies: LeaseDependencies,
  { record, entry, waiter, repaired, isOurs }: Notifying,
  call: Call,
): Promise<void> {
  const grant = { waiter, record, entry, repeated: false, isOurs };
  const { outcome, record: current } = await notifyPermit(dependencies, grant, call);
  if (outcome === 'unanswered') repaired.unanswered++;
  if (outcome === 'delivered') repaired.told++;
  const now = entryOf(current, entry.name);
  if (outcome === 'gone' && now && isBound(now) && mayBeUnnotified({ ...now, heartbeatAt: now.beatAt }))
    await noteUnnotified(dependencies, { key: record.key, entry: now }, call);
  if (outcome === 'delivered' || outcome === 'gone') await deleteWaiter(dependencies, waiter, call);
  // Perhaps an earlier message reached the task, and its answer was lost. So only the end of the execution or the expiry may end the permit.
  if (outcome !== 'gone' || entry.execution === undefined) return;
  const { execution } = entry;
  repaired.granted += (await endPermitsOf(dependencies, { key: record.key, execution }, call)).granted;
}

/** Marks a bound permit as one of which perhaps no task was notified. */
const noteUnnotified = (
  dependencies: LeaseDependencies,
  { key, entry }: { key: string; entry: PoolEntry },
  call: Call,
) => updatePool(dependencies, { key, set: ['#h.j = :seen'], condition: isStill(entry) }, call);

/** Passes bound permits that perhaps reached no task to the next tasks of the same executions, under new fences. @returns the record as it was last seen */
async function passOn(dependencies: LeaseDependencies, { record, repaired }: Repair, call: Call): Promise<PoolRecord> {
  let current = record;
  const { key } = record;
  for (const entry of record.entries.filter(isUnnotified)) {
    const waiter = await successorOf(dependencies, { key, execution: entry.execution }, call);
    if (!waiter) continue;
    const permit = { ...permitOf(waiter), previous: entry.previous };
    const line = { seen: current, others: true, next: undefined, staying: stayingOf([]) };
    const granting = {
      key,
      permits: [permit],
      ended: [{ entry, how: 'undelivered' } as const],
      now: dependencies.clock.now(),
      line,
    };
    const { landed, record: after } = await grantPermits(dependencies, granting, call);
    current = after;
    const own = entryOf(after, permit.name);
    if (!landed || own?.ticket !== waiter.ticket) continue;
    repaired.granted++;
    await notify(dependencies, { record: after, entry: own, waiter, repaired, isOurs: true }, call);
  }
  return current;
}

interface Marked {
  entry: PoolEntry;
  waiter: WaitingTask;
}

/** The break that marked the permit died before it looked at the ticket. If the task takes the message, no holder works under the permit. */
async function endMarked(
  dependencies: LeaseDependencies,
  { record: { key }, entry, waiter, repaired }: Repair & Marked,
  call: Call,
): Promise<void> {
  const delivery = await endUnnotified(dependencies, { waiter, error: permitLost(key, 'broken') }, call);
  if (delivery === 'unanswered') repaired.unanswered++;
  if (delivery !== 'delivered') return;
  const ends = { key, proof: entry, brokenFence: entry.fence, seen: entry.version };
  const { won, record, isHandedOff } = await endGrant(dependencies, ends, call);
  if (won && !isHandedOff) await handOffToLine(dependencies, { record }, call);
}
