import type { Ended } from './ended.ts';
import type { Grant, Granted, LockCall } from './lock.ts';
import { deleteWaiter, withdrawn } from './waiters.ts';
import { deleteUnlessWithdrawn, isCancelled } from './waiting-calls.ts';

/** A claim whose answer comes late is renewed. Each renewal may be as late as the one before. */
const MAX_RENEWALS = 4;

/** Duplicate calls change the grant before this call does. Each of them does so once, as a rule. */
const MAX_CONFLICTS = 20;

interface Claiming<Rec> {
  /** The record that shows the request's own grant, as it was last seen. */
  record: Rec;
  /** The waiter of this very call, if it has one. */
  ticket?: string;
  /** Whether this very call has just written the grant, as a full grant. */
  isOurs?: boolean;
  /** How many writes this call may lose. A first try loses one: it tries again by itself. */
  maxConflicts?: number;
}

/**
 * Makes the grant that a hand-off has left for this request a full grant, or answers with the grant that a duplicate call has claimed
 * (docs/protocols/queue.md#claim). Then deletes its waiter. If that waiter was withdrawn, gives up the grant.
 * @returns undefined if the request has no such grant any more
 * @throws HoldfastError LeaseLost (`cancelled`), InvalidRequest (other terms), Throttled, Unavailable, OutcomeUnknown
 */
export async function claim<Rec>(at: LockCall<Rec>, claiming: Claiming<Rec>): Promise<Granted<Rec> | undefined> {
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
    // If another waiter received the grant, perhaps a duplicate call has returned it.
    if (row === grant.ticket) await lock.giveUp(record);
    throw withdrawn(key);
  }
  // Otherwise the call would wait on behind its own grant.
  if (!full.repeated && grant.expiresAt <= dependencies.clock.now()) {
    const renewed = await lock.write(record, 'renew');
    const own = lock.own(renewed.record);
    if (!renewed.won || !isGrant(own)) return undefined;
    [record, grant] = [renewed.record, own];
  }
  if (grant.expiresAt <= dependencies.clock.now()) return undefined;
  if (!full.repeated) lock.received?.(grant);
  return { record, repeated: full.repeated, previous: full.previous };
}

async function claimFull<Rec>(
  { dependencies: { clock, ...dependencies }, lock, call }: LockCall<Rec>,
  { record, ticket, isOurs: wasOurs = false, maxConflicts = MAX_CONFLICTS }: Claiming<Rec>,
): Promise<(Granted<Rec> & { grant: Grant }) | undefined> {
  let [current, isOurs] = [record, wasOurs];
  let previous: Ended | undefined;
  for (let [renewals, conflicts] = [0, 0]; ; ) {
    const grant = lock.own(current);
    if (!isGrant(grant)) return undefined;
    const error = lock.otherTerms?.(current);
    if (error && ticket !== undefined)
      await deleteWaiter({ clock, ...dependencies }, { key: lock.asked.key, ticket }, call);
    if (error) throw error;
    previous = grant.previous ?? previous;
    if (isOurs && isWorthIt(grant, clock.now())) return { record: current, grant, repeated: false, previous };
    const how = isOurs ? 'renew' : grant.claimTtlMs === undefined ? 'answer' : 'claim';
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

export const isGrant = (own: Grant | string | undefined): own is Grant => typeof own === 'object';

/** Whether the request still has the grant: a call may claim it after the window, if no other call was quicker. */
export const isAlive = (own: Grant | string | undefined, now: number): own is Grant =>
  isGrant(own) && (own.claimTtlMs !== undefined || own.expiresAt > now);

/** The answer of the write may have come late. */
const isWorthIt = ({ expiresAt, ttlMs = 0 }: Grant, now: number): boolean => (expiresAt - now) * 2 > ttlMs;
