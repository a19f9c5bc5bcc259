import { HoldfastError } from '../errors.ts';
import type { Granted } from '../permits/permit-request.ts';
import type { PoolRecord } from '../permits/record.ts';
import { claim, isAlive, isGrant } from './claim.ts';
import { readPosition } from './listed-waiters.ts';
import type { LockCall } from './lock.ts';
import { deleteWaiter, getWaiter, isTask, withdrawn } from './waiters.ts';
import { deleteOwnUnlessWithdrawn, isCancelled } from './waiting-calls.ts';

/**
 * Ends the wait of a call whose deadline has passed, or whose waiter is gone (docs/protocols/queue.md#leave). The waiter, if there is one, stays for
 * five seconds for a call that asks again.
 * @returns a grant that the request received at the last moment
 * @throws HoldfastError LeaseHeld, with the position if the call has a waiter; LeaseLost, Throttled, Unavailable, OutcomeUnknown
 */
export async function leave(at: LockCall, ticket: string): Promise<Granted> {
  const { dependencies, lock, call } = at;
  const { key, requestId } = lock.asked;
  const row = await getWaiter(dependencies, { key, ticket }, call);
  let record: PoolRecord = await lock.read();
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
    if (hasHandedOff || !lock.isMarked(record)) break;
    // A call that leaves while the lock is free must hand off, or the waiters behind it would not be served. The record after the hand-off may
    // show a grant to another waiter of the request, or a grant to this waiter by a call whose clock is behind.
    record = (await lock.handOff(record)).record;
  }
  const { code, message, context } = lock.held(record);
  if (!row) throw new HoldfastError(code, message, { ...context, retryWith: { requestId } });
  const position = { key, granted: lock.granted(record), ticket };
  const { isWhole, ...place } = await readPosition(dependencies, position, call);
  // A withdrawn waiter, or one whose call has exited, leaves the line without a write on the record. Lists would go on counting it.
  const counted = lock.counted(record);
  const inLine = place.waiting + 1;
  if (isWhole && counted && counted.inLine !== inLine) await lock.correct(counted.arrivals, inLine);
  throw new HoldfastError(code, message, { ...context, ...place, retryWith: { requestId, ticket } });
}

/** A call in line that can no longer receive a grant. */
interface Refusing<Reason> {
  record: PoolRecord;
  ticket: string;
  reason: Reason;
}

/**
 * Refuses a call whose request had a grant that has ended, as the record shows.
 * @throws HoldfastError LeaseLost, Throttled, Unavailable, OutcomeUnknown
 */
export async function refuseEnded(
  at: LockCall,
  { record, ticket, reason }: Refusing<'broken' | 'released'>,
): Promise<never> {
  const { dependencies, lock, call } = at;
  // A withdrawal flags the waiter before it ends the grant, so this call sees the flag too.
  const isWithdrawn = await isCancelled(dependencies, { key: lock.asked.key, ticket }, call);
  return refuse(at, { record, ticket, reason: isWithdrawn ? 'cancelled' : reason });
}

/**
 * Refuses a call in line. Deletes the waiter first, or the hand-off would grant the lock to this waiter.
 * @throws HoldfastError as `refuseEnded`
 */
export async function refuse(
  { dependencies, lock, call }: LockCall,
  { record, ticket, reason }: Refusing<'broken' | 'cancelled' | 'released'>,
): Promise<never> {
  const { key } = lock.asked;
  await deleteWaiter(dependencies, { key, ticket }, call);
  if (lock.isMarked(record)) await lock.handOff(record);
  throw reason === 'cancelled' ? withdrawn(key) : lock.lost(reason);
}

/**
 * Ends the wait of a call that asked again and received its grant at once. Refuses the call if its request was withdrawn.
 * @throws HoldfastError LeaseLost (`cancelled`), Throttled, Unavailable, OutcomeUnknown
 */
export async function leaveAfterGrant(
  { dependencies, lock, call }: LockCall,
  { granted, ticket }: { granted: Granted; ticket: string },
): Promise<void> {
  const { cancelled } = await deleteOwnUnlessWithdrawn(dependencies, { ticket, asker: lock.asked }, call);
  if (!cancelled) return;
  const own = lock.own(granted.record);
  // If another waiter received the grant, a duplicate call may have answered its caller with the grant.
  const isOfAnotherWaiter = granted.repeated && isGrant(own) && own.ticket !== ticket;
  if (!isOfAnotherWaiter) await lock.giveUp(granted.record);
  throw withdrawn(lock.asked.key);
}
