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
import { endPermit, handOffToLine } from './release.ts';
import { permitLost } from './views.ts';
import { updatePool } from './write.ts';

/** The most that one run does for one pool. */
const MAX_ADVANCES = 10;
const MAX_LATE = 100;

interface Repair {
  record: PoolRecord;
  repaired: Counts;
}

/**
 * Finishes what an interrupted call on a pool left undone, and grants the room of expired holders to the line (docs/protocols/pools.md#repair).
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function repairPoolLine(
  dependencies: LeaseDependencies,
  { key, repaired, spareMs, questions, strangers }: Looking,
  call: Call,
): Promise<void> {
  let record = await readPool(dependencies, key, call);
  const line = { key, kind: 'pool', isGranted: (waiter: Waiter) => isGranted(record, waiter) } as const;
  const fail = (waiter: WaitingTask) => failOverdue(dependencies, { waiter, record }, call);
  repaired.unanswered += await failAllOverdue(dependencies, { ...line, fail, spareMs, strangers }, call);
  const waiting = { ...line, isGranted: (waiter: Waiter) => hasPermit(dependencies, record, waiter) };
  if (record.mark === undefined && (await isAnyWaiting(dependencies, waiting, call)))
    record = (await mark(dependencies, { key, condition: isUnmarked, isAgain: true }, call)).record;
  // Before the line is served: that may notify an older try of the task, and so give the permit a version that this call has not seen.
  if (await notifyLate(dependencies, { record, repaired }, call)) record = await readPool(dependencies, key, call);
  record = await passOn(dependencies, { record, repaired }, call);
  for (let tries = 0; tries < MAX_ADVANCES && call.timeLeftMs() >= LAST_KEY_MS; tries++) {
    const { granted, end, record: current, blocked } = await handOff(dependencies, { record }, call);
    repaired.granted += granted.length;
    record = current;
    if (blocked && (await dropDeadTask(dependencies, { waiter: blocked, questions }, call))) continue;
    if (end !== 'left') break;
  }
  const due = dueKeyOf(record, { withTtl: questions.withTtl, now: dependencies.clock.now() });
  if (due) questions.due.set(key, due);
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
  const { clock } = dependencies;
  let [read, isChanged] = [0, false];
  for await (const waiter of readWaiters(dependencies, { key: record.key, kind: 'pool', firstPage: MAX_LATE }, call)) {
    if (read++ === MAX_LATE || call.timeLeftMs() < LAST_KEY_MS) break;
    const entry = entryOf(record, requestName(waiter));
    if (!entry || !isLate(entry, clock.now())) continue;
    if (entry.ticket !== waiter.ticket || entry.expiresAt <= clock.now()) continue;
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
) =>
  updatePool(
    dependencies,
    { key, now: dependencies.clock.now(), set: ['#h.u = :seen'], condition: isStill(entry) },
    call,
  );

/** Passes bound permits that perhaps reached no task to the next tasks of the same executions, under new fences. @returns the record as it was last seen */
async function passOn(dependencies: LeaseDependencies, { record, repaired }: Repair, call: Call): Promise<PoolRecord> {
  let current = record;
  const { key } = record;
  for (const entry of record.entries.filter(isUnnotified)) {
    const waiter = await successorOf(dependencies, { key, kind: 'pool', execution: entry.execution }, call);
    if (!waiter) continue;
    const permit = { ...permitOf(waiter), previous: entry.previous };
    const line = { seen: current, others: true, next: undefined, staying: stayingOf([]) };
    const granting = { key, permits: [permit], ended: [entry], now: dependencies.clock.now(), line };
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
  { record: { key }, entry: { name, id, version, fence }, waiter, repaired }: Repair & Marked,
  call: Call,
): Promise<void> {
  const delivery = await endUnnotified(dependencies, { waiter, error: permitLost(key, 'broken') }, call);
  if (delivery === 'unanswered') repaired.unanswered++;
  if (delivery !== 'delivered') return;
  const ends = { key, proof: { name, id }, brokenFence: fence, seen: version };
  const { won, record } = await endPermit(dependencies, ends, call);
  if (won) await handOffToLine(dependencies, { record }, call);
}
