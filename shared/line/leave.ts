import { HoldfastError } from '../errors.ts';
import { claim, isAlive, isGrant } from './claim.ts';
import { readPosition } from './list.ts';
import type { Granted, LockCall } from './lock.ts';
import { deleteWaiter, getWaiter, isTask, withdrawn } from './waiters.ts';
import { deleteOwnUnlessWithdrawn, isCancelled } from './waiting-calls.ts';

/**
 * Ends the wait of a call in line whose patience has ended, or whose waiter is gone (docs/protocols/queue.md#leave). The waiter stays for a
 * while, if it is there, for the call that asks again.
 * @returns a grant that came in the last moment
 * @throws HoldfastError LeaseHeld, with the position, if it has one; LeaseLost, Throttled, Unavailable, OutcomeUnknown
 */
export async function leave<Rec>(at: LockCall<Rec>, ticket: string): Promise<Granted<Rec>> {
  const { dependencies, lock, call } = at;
  const { key, requestId } = lock.asked;
  const row = await getWaiter(dependencies, { key, ticket }, call);
  let record: Rec = await lock.read();
  for (let hasHandedOff = false; ; hasHandedOff = true) {
    if (isAlive(lock.own(record), dependencies.clock.now())) {
      const claimed = await claim(at, { record, ticket });
      if (claimed) return claimed;
      record = await lock.read();
    }
    if (row && !isTask(row) && row.cancelledAt !== undefined)
      return refuse(at, { record, ticket, reason: 'cancelled' });
    const how = lock.own(record);
    if (typeof how === 'string') return refuseEnded(at, { record, ticket, reason: how });
    if (hasHandedOff || !lock.mayServe(record)) break;
    // A call that leaves while the lock is free must hand off, or it would take the turn of those behind it along. What it sees then may be
    // the grant of another waiter of its request, or of a call whose clock is behind.
    record = (await lock.handOff(record)).record;
  }
  const { code, message, context } = lock.held(record);
  if (!row) throw new HoldfastError(code, message, { ...context, retryWith: { requestId } });
  const place = await readPosition(dependencies, { key, granted: lock.granted(record), ticket }, call);
  throw new HoldfastError(code, message, { ...context, ...place, retryWith: { requestId, ticket } });
}

/** A call in line that gets no grant any more. */
interface Refusing<Rec, Reason> {
  record: Rec;
  ticket: string;
  reason: Reason;
}

/**
 * Answers a call whose request has had its grant, as the record shows.
 * @throws HoldfastError LeaseLost, Throttled, Unavailable, OutcomeUnknown
 */
export async function refuseEnded<Rec>(
  at: LockCall<Rec>,
  { record, ticket, reason }: Refusing<Rec, 'broken' | 'released'>,
): Promise<never> {
  const { dependencies, lock, call } = at;
  // A withdrawal flags the waiter before it ends the grant, so this call sees that too.
  const isWithdrawn = await isCancelled(dependencies, { key: lock.asked.key, ticket }, call);
  return refuse(at, { record, ticket, reason: isWithdrawn ? 'cancelled' : reason });
}

/**
 * Deletes the waiter first, or the hand-off would grant the lock to it.
 * @throws HoldfastError as `refuseEnded`
 */
export async function refuse<Rec>(
  { dependencies, lock, call }: LockCall<Rec>,
  { record, ticket, reason }: Refusing<Rec, 'broken' | 'cancelled' | 'released'>,
): Promise<never> {
  const { key } = lock.asked;
  await deleteWaiter(dependencies, { key, ticket }, call);
  if (lock.mayServe(record)) await lock.handOff(record);
  throw reason === 'cancelled' ? withdrawn(key) : lock.lost(reason);
}

/**
 * A call that asks again and gets its grant at once leaves the line, unless its request was withdrawn.
 * @throws HoldfastError LeaseLost (`cancelled`), Throttled, Unavailable, OutcomeUnknown
 */
export async function leaveAfterGrant<Rec>(
  { dependencies, lock, call }: LockCall<Rec>,
  { granted, ticket }: { granted: Granted<Rec>; ticket: string },
): Promise<void> {
  const { cancelled } = await deleteOwnUnlessWithdrawn(dependencies, { ticket, asker: lock.asked }, call);
  if (!cancelled) return;
  const own = lock.own(granted.record);
  // If another waiter received the grant, perhaps a duplicate call has returned it.
  const isOfAnotherWaiter = granted.repeated && isGrant(own) && own.ticket !== ticket;
  if (!isOfAnotherWaiter) await lock.giveUp(granted.record);
  throw withdrawn(lock.asked.key);
}
