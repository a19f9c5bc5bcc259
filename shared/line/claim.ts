import type { Granted } from '../permits/permit-request.ts';
import type { PoolRecord } from '../permits/record.ts';
import type { Ended } from './ended.ts';
import type { Grant, LockCall } from './lock.ts';
import { deleteWaiter, withdrawn } from './waiters.ts';
import { deleteUnlessWithdrawn, isCancelled } from './waiting-calls.ts';

/** A claim is renewed if its response was late. The response to each renewal may be late too. */
const MAX_RENEWALS = 4;

/** Duplicate calls may change the grant before this call does. Each duplicate usually changes the grant once. */
const MAX_CONFLICTS = 20;

interface Claiming {
  /** The record that shows the grant of the request, as last seen. */
  record: PoolRecord;
  /** The waiter of this call, if it has one. */
  ticket?: string;
  /** True if this call has just written the grant, as a full grant. */
  isOurs?: boolean;
  /** How many writes this call may lose. A first try may lose one write, because the first try itself starts again. */
  maxConflicts?: number;
}

/**
 * Makes the grant that a hand-off has left for this request a full grant, or answers with the grant that a duplicate call has claimed
 * (docs/protocols/queue.md#claim). Then deletes its waiter. If that waiter was withdrawn, gives up the grant.
 * @returns undefined if the request no longer has such a grant
 * @throws HoldfastError LeaseLost (`cancelled`), InvalidRequest (other terms), Throttled, Unavailable, OutcomeUnknown
 */
export async function claim(at: LockCall, claiming: Claiming): Promise<Granted | undefined> {
  const { dependencies, lock, call } = at;
  const { ticket } = claiming;
  const { key } = lock.asked;
  const seen = lock.own(claiming.record);
  if (!isGrant(seen)) return undefined;
  const isOfAnotherWaiter = ticket !== undefined && ticket !== seen.ticket;
  if (isOfAnotherWaiter && (await isCancelled(dependencies, { key, ticket }, call))) throw withdrawn(key);
  const full = await claimFull(at, claiming);
  if (!full) return undefined;
  let { record, grant } = full;
  for (const row of new Set([grant.ticket, ticket])) {
    if (row === undefined) continue;
    // A withdrawal flags the row first, and reads the record second. So either this call sees the flag, or the withdrawal sees the claim.
    const { cancelled } = await deleteUnlessWithdrawn(dependencies, { key, ticket: row }, call);
    if (!cancelled) continue;
    // If another waiter received the grant, a duplicate call may have answered its caller with the grant.
    if (row === grant.ticket) await lock.giveUp(record);
    throw withdrawn(key);
  }
  // Without this renewal, the call would wait behind its own grant.
  if (!full.repeated && grant.expiresAt <= dependencies.clock.now()) {
    const renewed = await lock.write(record, 'renew');
    const own = lock.own(renewed.record);
    if (!renewed.won || !isGrant(own)) return undefined;
    [record, grant] = [renewed.record, own];
  }
  if (grant.expiresAt <= dependencies.clock.now()) return undefined;
  if (!full.repeated) lock.received(grant);
  return { record, repeated: full.repeated, previous: full.previous };
}

async function claimFull(
  at: LockCall,
  { record, ticket, isOurs: wasOurs = false, maxConflicts = MAX_CONFLICTS }: Claiming,
): Promise<(Granted & { grant: Grant }) | undefined> {
  const { dependencies, lock } = at;
  const { clock } = dependencies;
  let [current, isOurs] = [record, wasOurs];
  let previous: Ended | undefined;
  for (let [renewals, conflicts] = [0, 0]; ; ) {
    const grant = lock.own(current);
    if (!isGrant(grant)) return undefined;
    if (isAlive(grant, clock.now())) await refuseOtherTerms(at, current, ticket);
    previous = grant.previous ?? previous;
    if (isOurs && isWorthIt(grant, clock.now())) return { record: current, grant, repeated: false, previous };
    const how = isOurs ? 'renew' : firstWrite(grant);
    if (how === 'renew' && renewals++ === MAX_RENEWALS) return undefined;
    if (how === 'answer' && grant.expiresAt <= clock.now()) return undefined;
    const written = await lock.write(current, how);
    current = written.record;
    const own = lock.own(current);
    if (!isGrant(own) || (!written.won && ++conflicts === maxConflicts)) return undefined;
    if (how === 'answer' && written.won) return { record: current, grant: own, repeated: true, previous };
    isOurs = written.won;
  }
}

/** If the grant is full and this call has not made it so, a duplicate call has. The caller then gets that grant as its answer. */
const firstWrite = ({ claimTtlMs }: Grant) => (claimTtlMs === undefined ? 'answer' : 'claim');

/** @throws HoldfastError InvalidRequest if the call asks for other terms than the grant has. The waiter of the call is then deleted. */
async function refuseOtherTerms({ dependencies, lock, call }: LockCall, record: PoolRecord, ticket?: string) {
  const error = lock.otherTerms(record);
  if (error && ticket !== undefined) await deleteWaiter(dependencies, { key: lock.asked.key, ticket }, call);
  if (error) throw error;
}

export const isGrant = (own: Grant | string | undefined): own is Grant => typeof own === 'object';

/** True if the request still has the grant. A call may claim its grant after the grant window, if no other call has changed the record. */
export const isAlive = (own: Grant | string | undefined, now: number): own is Grant =>
  isGrant(own) && (own.claimTtlMs !== undefined || own.expiresAt > now);

/** False if the response to the write was so late that half of the ttl or less is left. */
const isWorthIt = ({ expiresAt, ttlMs = 0 }: Grant, now: number): boolean => (expiresAt - now) * 2 > ttlMs;
