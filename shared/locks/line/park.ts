import { createHash } from 'node:crypto';
import type { Call } from '../../aws/call.ts';
import { addRetryWith } from '../../aws/send.ts';
import { HoldfastError, invalidRequest } from '../../errors.ts';
import type { AcquireInput } from '../calls/inputs.ts';
import type { Parked } from '../calls/types.ts';
import { DEFAULT_QUOTAS, type LeaseDependencies } from '../dependencies.ts';
import { ANY_EXECUTION } from '../executions/allowed.ts';
import type { KeyRecord } from '../record/record.ts';
import { isLineFull, refuseWhereFull } from './limits.ts';
import type { Lock, MarkWritten } from './lock.ts';
import { failTask, NOTIFY_MS, notifyFailed } from './notify.ts';
import {
  deleteWaiter,
  getWaiter,
  newTicket,
  type ParkedBy,
  putWaiter,
  queueFull,
  type WaitingTask,
} from './waiters.ts';

/**
 * Gives the request of a callback its id. The code that submits a callback may run again with the same callback, also after its end
 * (docs/protocols/tasks.md#a-callback-is-submitted-twice), and must name the same request. The hash keeps the callback id secret in answers.
 * @throws HoldfastError InvalidRequest if the deployment serves no durable functions
 */
export function ofCallback({ executions = ANY_EXECUTION }: LeaseDependencies, input: AcquireInput): AcquireInput {
  const { callbackId = '', requestId } = input;
  if (executions.durableFunctions === undefined)
    throw invalidRequest([
      { path: 'callbackId', message: 'needs the parameter durableFunctions of the deployment, which is empty' },
    ]);
  if (requestId !== undefined) return input;
  return { ...input, requestId: `c-${createHash('sha256').update(callbackId).digest('base64url')}` };
}

interface Parking {
  lock: Lock;
  parked: ParkedBy;
  parkSeconds: number;
}

/**
 * Parks a task or a callback (docs/protocols/tasks.md#park). Writes its row first, even if the task could be
 * granted at once: if this call is interrupted, the schedule finds the row and goes on.
 * @throws HoldfastError InvalidRequest (the request has a grant of another weight or mode), QueueFull, Throttled, Unavailable, OutcomeUnknown
 */
export async function park(dependencies: LeaseDependencies, parking: Parking, call: Call): Promise<Parked> {
  const { requestId } = parking.lock.asked;
  const parked = await putInLine(dependencies, parking, call).catch(addRetryWith({ requestId }));
  if (parked.parked) call.measure?.('Parked', 1);
  return parked;
}

async function putInLine(
  dependencies: LeaseDependencies,
  { lock, parked, parkSeconds }: Parking,
  call: Call,
): Promise<Parked> {
  const { asked } = lock;
  const newWaiter = (): WaitingTask => {
    const now = dependencies.clock.now();
    return {
      ...{ ...asked, namespace: call.namespace, ...parked, ticket: newTicket(now, dependencies.ids.uuid()) },
      ...{ parkedAt: now, deadline: now + parkSeconds * 1000 },
    };
  };
  const answerOf = ({ ticket }: WaitingTask) => ({ key: asked.key, holder: asked.holder, ticket });
  const answered = await answeredInFullNamespace(dependencies, { key: asked.key, newWaiter }, call);
  if (answered) return { ...answerOf(answered), parked: false };
  const waiter = newWaiter();
  await putWaiter(dependencies, waiter, call);
  const outcome = await enter(dependencies, { lock, waiter }, call);
  return { ...answerOf(waiter), parked: outcome === 'waits' };
}

/**
 * Sends QueueFull to a task that parks in a full namespace, so that an earlier ticket of the task receives no grant after the refusal.
 * @returns the waiter if the task already has a result, such as the grant of an earlier ticket; undefined if the namespace is not full
 * @throws HoldfastError QueueFull, Throttled, Unavailable
 */
async function answeredInFullNamespace(
  dependencies: LeaseDependencies,
  { key, newWaiter }: { key: string; newWaiter(): WaitingTask },
  call: Call,
): Promise<WaitingTask | undefined> {
  try {
    await refuseWhereFull(dependencies, key, call);
    return undefined;
  } catch (error) {
    if (!(error instanceof HoldfastError && error.code === 'QueueFull')) throw error;
    const waiter = newWaiter();
    const outcome = await notifyFailed(dependencies, { waiter, error }, call);
    if (outcome === 'gone') return waiter;
    if (outcome === 'accepted') throw error;
    throw new HoldfastError('Unavailable', 'the task may not have been notified of QueueFull: send the call again', {
      retryAfterMs: 1000,
    });
  }
}

/** `waits`: the task waits, or may wait. `notified`: the task no longer waits, or another call is about to notify the task. */
type ParkOutcome = 'waits' | 'notified';

interface Entering {
  lock: Lock;
  waiter: WaitingTask;
}

async function enter(dependencies: LeaseDependencies, { lock, waiter }: Entering, call: Call): Promise<ParkOutcome> {
  for (let over: KeyRecord | undefined; ; ) {
    const { won, record, isRuined, ...counts } = await lock.markTask(waiter.ticket, over);
    const arrival = { lock, waiter, record };
    if (lock.granted(record).has(waiter.ticket)) return 'notified'; // the call that granted it notifies the task
    const own = isRuined ? 'unknown' : lock.own(record);
    const isTakenOver = over !== undefined && !won && own === undefined;
    over = undefined;
    if (isTakenOver) continue; // another request has the lock, so the first mark may be raised
    let outcome: ParkOutcome | 'again' = 'again';
    if (won || own === undefined) outcome = await arrive(dependencies, { ...arrival, ...counts }, call);
    else if (typeof own === 'string') outcome = await refuseTask(dependencies, { ...arrival, why: own }, call);
    else if (own.expiresAt > dependencies.clock.now())
      outcome = await takeGrant(dependencies, { ...arrival, repeated: own.claimTtlMs === undefined }, call);
    else over = record;
    if (outcome !== 'again') return outcome;
  }
}

/** A task in line, and the current record after a write of its call. */
interface Arrival extends Entering {
  record: KeyRecord;
}

/** The record is marked, or the lock is free. So the call that ends a grant finds the row, or this call serves the line. */
async function arrive(
  dependencies: LeaseDependencies,
  { lock, waiter, record, arrivals, lineOut }: Arrival & Pick<MarkWritten, 'arrivals' | 'lineOut'>,
  call: Call,
): Promise<ParkOutcome | 'again'> {
  if (lock.freeAt(record) <= dependencies.clock.now()) {
    const { served, unnotified, end, record: after } = await lock.handOff(record);
    if (unnotified?.has(waiter.ticket)) return 'waits';
    if (served.includes(waiter.ticket) || lock.granted(after).has(waiter.ticket)) return 'notified';
    // A hand-off that stopped at too many expired rows has not seen the ticket.
    return end === 'empty' && !(await getWaiter(dependencies, waiter, call)) ? 'notified' : 'waits';
  }
  const correct = async (inLine: number) => lock.correct(arrivals, inLine);
  if (await isLineFull(dependencies, { key: waiter.key, arrivals, lineOut, correct }, call))
    return refuseFull(dependencies, { lock, waiter }, call);
  await lock.sendDelayedRepair(record, waiter.ticket);
  return 'waits';
}

/**
 * Refuses a task whose request had a grant that has ended, or was superseded. If the message is unanswered, the ticket stays, and the next call that reads the ticket
 * refuses the task.
 */
async function refuseTask(
  dependencies: LeaseDependencies,
  { lock, waiter, record, why }: Arrival & { why: 'released' | 'broken' | 'superseded' | 'unknown' },
  call: Call,
): Promise<ParkOutcome> {
  const outcome = await failTask(dependencies, { waiter, error: lock.lost(why, record) }, call);
  return outcome === 'unanswered' ? 'waits' : 'notified';
}

/**
 * Removes the task from a full line. Fails the task first, as cancel does, so that a call that has just read the ticket cannot notify the task
 * after this call has refused the task.
 * @throws HoldfastError QueueFull
 */
async function refuseFull(
  dependencies: LeaseDependencies,
  { lock, waiter }: Entering,
  call: Call,
): Promise<ParkOutcome> {
  const full = queueFull(waiter.key, (dependencies.quotas ?? DEFAULT_QUOTAS).waitersPerKey);
  const outcome = await notifyFailed(dependencies, { waiter, error: full }, call);
  if (outcome === 'unanswered') return 'waits'; // the task may still wait, so its ticket must stay
  if (outcome === 'gone' && lock.granted(await lock.read()).has(waiter.ticket)) return 'notified';
  await deleteWaiter(dependencies, waiter, call);
  throw full;
}

/**
 * Passes the grant of the request, which a call or an older try of the task has, to this task, and notifies the task. So the schedule looks for this
 * ticket if the call exits early, or if its message is unanswered.
 * @param repeated true if another call or task may have had the grant. Then the grant stays if the task is gone
 */
async function takeGrant(
  dependencies: LeaseDependencies,
  { lock, waiter, record, repeated }: Arrival & { repeated: boolean },
  call: Call,
): Promise<ParkOutcome | 'again'> {
  const refused = lock.otherTerms(record);
  if (refused) {
    await deleteWaiter(dependencies, waiter, call);
    throw refused;
  }
  const passed = await lock.passTo(record, waiter);
  if (!passed.won) return 'again';
  if (call.timeLeftMs() < NOTIFY_MS) return 'waits'; // left to the schedule
  const { outcome, record: current } = await lock.notify(passed.record, { task: waiter, repeated, before: record });
  if (outcome === 'overtaken') return 'again';
  if (outcome === 'unanswered') return 'waits';
  if (outcome === 'gone' && !repeated) await lock.endNeverNotified(current);
  else await deleteWaiter(dependencies, waiter, call);
  return 'notified';
}
