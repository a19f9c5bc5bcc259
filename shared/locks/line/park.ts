import { createHash } from 'node:crypto';
import type { Call } from '../../aws/call.ts';
import { addRetryWith } from '../../aws/send.ts';
import { HoldfastError, invalidRequest } from '../../errors.ts';
import type { AcquireInput } from '../calls/inputs.ts';
import type { Parked } from '../calls/types.ts';
import { DEFAULT_QUOTAS, type LeaseDependencies } from '../dependencies.ts';
import { ANY_EXECUTION } from '../executions/allowed.ts';
import type { KeyRecord } from '../record/record.ts';
import { isLineFull, refuseIfNamespaceFull } from './limits.ts';
import type { Lock, MarkUpdated } from './lock.ts';
import { failTask, NOTIFY_MS, sendError } from './notify.ts';
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
 * Gives the request of a callback a request id that is derived from the callback id. Code that submits a callback may
 * run again, even after the callback has ended (docs/protocols/tasks.md#a-callback-is-submitted-twice), and must name
 * the same request. The hash keeps the callback id secret in answers.
 * @throws HoldfastError InvalidRequest if the deployment serves no durable functions
 */
export function withRequestOfCallback(
  { executions = ANY_EXECUTION }: LeaseDependencies,
  input: AcquireInput,
): AcquireInput {
  const { callbackId = '', requestId } = input;
  if (executions.durableFunctions === undefined)
    throw invalidRequest([
      { path: 'callbackId', message: 'needs the parameter durableFunctions of the deployment, which is empty' },
    ]);
  if (requestId !== undefined) return input;
  return { ...input, requestId: `c-${createHash('sha256').update(callbackId).digest('base64url')}` };
}

interface ParkRequest {
  lock: Lock;
  notifyBy: ParkedBy;
  parkSeconds: number;
}

/**
 * Parks a task or a callback (docs/protocols/tasks.md#park). Writes its row first, even if the key is free: if this
 * call is interrupted, the schedule finds the row and goes on.
 * @throws HoldfastError InvalidRequest (the request has a grant of another weight or mode), QueueFull, Throttled,
 * Unavailable, OutcomeUnknown
 */
export async function park(dependencies: LeaseDependencies, parking: ParkRequest, call: Call): Promise<Parked> {
  const { requestId } = parking.lock.request;
  const answer = await putInLine(dependencies, parking, call).catch(addRetryWith({ requestId }));
  if (answer.parked) call.measure?.('Parked', 1);
  return answer;
}

async function putInLine(
  dependencies: LeaseDependencies,
  { lock, notifyBy, parkSeconds }: ParkRequest,
  call: Call,
): Promise<Parked> {
  const { request } = lock;
  const newWaiter = (): WaitingTask => {
    const now = dependencies.clock.now();
    return {
      ...{ ...request, namespace: call.namespace, ...notifyBy, ticket: newTicket(now, dependencies.ids.uuid()) },
      ...{ parkedAt: now, deadline: now + parkSeconds * 1000 },
    };
  };
  const answerOf = ({ ticket }: WaitingTask) => ({ key: request.key, holder: request.holder, ticket });
  const answered = await answeredInFullNamespace(dependencies, { key: request.key, newWaiter }, call);
  if (answered) return { ...answerOf(answered), parked: false };
  const waiter = newWaiter();
  await putWaiter(dependencies, waiter, call);
  const outcome = await enter(dependencies, { lock, waiter }, call);
  return { ...answerOf(waiter), parked: outcome === 'waits' };
}

/**
 * Refuses a task that parks in a full namespace. The task receives QueueFull as a message too, so that an earlier
 * ticket of the task cannot receive a grant after the refusal.
 * @returns the waiter if the task already has a result, such as the grant of an earlier ticket; undefined if the
 * namespace is not full
 * @throws HoldfastError QueueFull, Throttled, Unavailable
 */
async function answeredInFullNamespace(
  dependencies: LeaseDependencies,
  { key, newWaiter }: { key: string; newWaiter(): WaitingTask },
  call: Call,
): Promise<WaitingTask | undefined> {
  try {
    await refuseIfNamespaceFull(dependencies, key, call);
    return undefined;
  } catch (error) {
    if (!(error instanceof HoldfastError && error.code === 'QueueFull')) throw error;
    const waiter = newWaiter();
    const outcome = await sendError(dependencies, { waiter, error }, call);
    if (outcome === 'gone') return waiter;
    if (outcome === 'accepted') throw error;
    throw new HoldfastError('Unavailable', 'the task may not have been notified of QueueFull: send the call again', {
      retryAfterMs: 1000,
    });
  }
}

/**
 * `waits`: the task waits, or may wait. `done`: the task does not wait any more, or another call is about to notify
 * it.
 */
type ParkOutcome = 'waits' | 'done';

interface TaskInLine {
  lock: Lock;
  waiter: WaitingTask;
}

/** Raises the mark for a task whose row is written. If the request has or had a grant, decides by that grant. */
async function enter(dependencies: LeaseDependencies, { lock, waiter }: TaskInLine, call: Call): Promise<ParkOutcome> {
  for (let expired: KeyRecord | undefined; ; ) {
    const { won, record, isRuined, ...counts } = await lock.raiseMarkForTask(waiter.ticket, expired);
    const arrival = { lock, waiter, record };
    if (lock.ticketsOfHolders(record).has(waiter.ticket)) return 'done'; // by the call that has made the grant
    const own = isRuined ? 'unknown' : lock.ownGrant(record);
    const isTakenOver = expired !== undefined && !won && own === undefined;
    expired = undefined;
    if (isTakenOver) continue; // another request has taken the key over, so the request has no grant, as at first
    let outcome: ParkOutcome | 'again' = 'again';
    if (won || own === undefined) outcome = await arrive(dependencies, { ...arrival, ...counts }, call);
    else if (typeof own === 'string') outcome = await refuseTask(dependencies, { ...arrival, why: own }, call);
    else if (own.expiresAt > dependencies.clock.now())
      outcome = await takeGrant(dependencies, { ...arrival, repeated: own.claimTtlMs === undefined }, call);
    else expired = record;
    if (outcome !== 'again') return outcome;
  }
}

/** A task in line, and the current record after a write of its call. */
interface Arrival extends TaskInLine {
  record: KeyRecord;
}

/**
 * Serves the line if the key is free. Otherwise the task waits: the record is marked, so the call that ends a grant
 * finds its row.
 */
async function arrive(
  dependencies: LeaseDependencies,
  { lock, waiter, record, arrivals, lineOut }: Arrival & Pick<MarkUpdated, 'arrivals' | 'lineOut'>,
  call: Call,
): Promise<ParkOutcome | 'again'> {
  if (lock.roomAt(record) <= dependencies.clock.now()) {
    const { served, unnotified, end, record: after } = await lock.handOff(record);
    if (unnotified?.has(waiter.ticket)) return 'waits';
    if (served.includes(waiter.ticket) || lock.ticketsOfHolders(after).has(waiter.ticket)) return 'done';
    // If the line is empty and the task has no grant, another call has notified the task and deleted its row. If the
    // row is still there, the hand-off stopped before it, and the task waits.
    return end === 'empty' && !(await getWaiter(dependencies, waiter, call)) ? 'done' : 'waits';
  }
  const correct = async (inLine: number) => lock.correctLineOut(arrivals, inLine);
  if (await isLineFull(dependencies, { key: waiter.key, arrivals, lineOut, correct }, call))
    return refuseFull(dependencies, { lock, waiter }, call);
  await lock.sendDelayedRepair(record, waiter.ticket);
  return 'waits';
}

/**
 * Refuses a task whose request had a grant that has ended, or was superseded. If the message is unanswered, the row
 * stays, and the next call that reads it refuses the task.
 */
async function refuseTask(
  dependencies: LeaseDependencies,
  { lock, waiter, record, why }: Arrival & { why: 'released' | 'broken' | 'superseded' | 'unknown' },
  call: Call,
): Promise<ParkOutcome> {
  const outcome = await failTask(dependencies, { waiter, error: lock.errorOfEnded(why, record) }, call);
  return outcome === 'unanswered' ? 'waits' : 'done';
}

/**
 * Removes the task from a full line. Fails the task first: a call that has just read its row then cannot notify the
 * task of a grant after this refusal.
 * @throws HoldfastError QueueFull
 */
async function refuseFull(
  dependencies: LeaseDependencies,
  { lock, waiter }: TaskInLine,
  call: Call,
): Promise<ParkOutcome> {
  const full = queueFull(waiter.key, (dependencies.quotas ?? DEFAULT_QUOTAS).waitersPerKey);
  const outcome = await sendError(dependencies, { waiter, error: full }, call);
  if (outcome === 'unanswered') return 'waits'; // the task may still wait, so its row must stay
  if (outcome === 'gone' && lock.ticketsOfHolders(await lock.read()).has(waiter.ticket)) return 'done';
  await deleteWaiter(dependencies, waiter, call);
  throw full;
}

/**
 * Passes the grant that a call or an older try of the task has to this task, and notifies it. The grant then names this
 * ticket, so if this call crashes or the message is unanswered, the schedule finds the task.
 * `repeated`: whether another call or task may know of the grant. Then the grant stays even if this task
 * is gone
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
  return 'done';
}
