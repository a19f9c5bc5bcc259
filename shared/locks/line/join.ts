import type { Call } from '../../aws/call.ts';
import { DEFAULT_QUOTAS, type LeaseDependencies } from '../dependencies.ts';
import type { KeyRecord } from '../record/record.ts';
import { type Arrived, isLineFull, refuseWhereFull } from './limits.ts';
import type { LockCall } from './lock.ts';
import { deleteWaiter, newTicket, putWaiter, queueFull, type WaitingCall, withdrawn } from './waiters.ts';
import { KEEP_POSITION_MS, keepPosition } from './waiting-calls.ts';

/**
 * Removes a call that has just joined from a line that is too long.
 * @throws HoldfastError QueueFull, Throttled, Unavailable, OutcomeUnknown
 */
async function refuseWhereLong(
  dependencies: LeaseDependencies,
  { ticket, ...arrived }: Arrived & { ticket: string },
  call: Call,
): Promise<void> {
  if (!(await isLineFull(dependencies, arrived, call))) return;
  await deleteWaiter(dependencies, { key: arrived.key, ticket }, call);
  throw queueFull(arrived.key, (dependencies.quotas ?? DEFAULT_QUOTAS).waitersPerKey);
}

/** A call that joins a line, under the key of the line. */
interface Placing {
  /** The ticket of an earlier call of the request, if the caller asks again. */
  ticket?: string | undefined;
  /** When it stops waiting, in epoch milliseconds. */
  deadline: number;
  asked: Omit<WaitingCall, 'ticket' | 'parkedAt' | 'deadline' | 'keepUntil'>;
}

/**
 * Keeps the waiter of a call that asks again in time, or adds a new waiter.
 * @throws HoldfastError LeaseLost (`cancelled`), QueueFull, Throttled, Unavailable, OutcomeUnknown
 */
async function takePosition(
  dependencies: LeaseDependencies,
  { asked, ticket, deadline }: Placing,
  call: Call,
): Promise<{ ticket: string; again: boolean; isCounted: boolean }> {
  const kept = ticket && (await keepPosition(dependencies, { asker: asked, ticket, deadline }, call));
  if (kept === 'cancelled') throw withdrawn(asked.key);
  const { clock, clockSkewMs } = dependencies;
  // A call with a faster clock may have counted the line without this row, if the row may have expired by that clock.
  if (kept) return { ticket: kept.ticket, again: true, isCounted: kept.keepUntil > clock.now() + clockSkewMs };
  await refuseWhereFull(dependencies, asked.key, call);
  const now = clock.now();
  const name = newTicket(now, dependencies.ids.uuid());
  const row: WaitingCall = { ...asked, ticket: name, parkedAt: now, deadline, keepUntil: deadline + KEEP_POSITION_MS };
  await putWaiter(dependencies, row, call);
  return { ticket: name, again: false, isCounted: false };
}

/** A call that joins the line of a lock. */
export interface Joining {
  /** The waiter of an earlier call of the request, if the caller asks again. */
  ticket?: string | undefined;
  /** When it stops waiting, in epoch milliseconds. */
  deadline: number;
}

export interface Joined {
  ticket: string;
  /** The record after the mark was raised, or the record that did not allow the mark. */
  record: KeyRecord;
}

/**
 * Adds a call to the line: the waiter first, then the mark (docs/protocols/queue.md#join).
 * @throws HoldfastError LeaseLost (`cancelled`), QueueFull, Throttled, Unavailable, OutcomeUnknown
 */
export async function join({ dependencies, lock, call }: LockCall, joining: Joining): Promise<Joined> {
  const { key } = lock.asked;
  const { ticket, again, isCounted } = await takePosition(dependencies, { ...joining, asked: lock.asked }, call);
  const { won, record, arrivals, lineOut } = await lock.mark(ticket, isCounted ? 'again' : 'first');
  const correct = async (inLine: number) => lock.correct(arrivals, inLine);
  // A call that asks again keeps its position, even in a line that is too long.
  if (won && !again) await refuseWhereLong(dependencies, { key, ticket, arrivals, lineOut, correct }, call);
  return { ticket, record };
}
