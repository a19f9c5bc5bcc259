import { HoldfastError } from '../../errors.ts';
import type { EndedGrant } from '../calls/types.ts';
import { canSleep } from '../dependencies.ts';
import type { KeyRecord } from '../record/record.ts';
import type { Granted } from '../record/room.ts';
import { readPosition } from './listed-waiters.ts';
import type { Grant, LockCall } from './lock.ts';
import { leftToSchedule } from './notify.ts';
import { deleteWaiter, getWaiter, isTask, placeOf, type WaitingCall, withdrawn } from './waiters.ts';
import { deleteOwnUnlessWithdrawn, deleteUnlessWithdrawn, getCancelled, KEEP_POSITION_MS } from './waiting-calls.ts';

/** A claim is renewed if its response was late. The response to each renewal may be late too. */
const MAX_CLAIM_RENEWALS = 4;

/** Duplicate calls may change the grant before this call does. Each duplicate usually changes the grant once. */
const MAX_CLAIM_CONFLICTS = 20;

interface Claiming {
  /** The record that shows the grant of the request, as last seen. */
  record: KeyRecord;
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
  const flagged = isOfAnotherWaiter && (await getCancelled(dependencies, { key, ticket }, call));
  if (flagged) throw withdrawn(flagged);
  const remove = (row: string) => deleteUnlessWithdrawn(dependencies, { key, ticket: row }, call);
  // The grant is on record already, so a withdrawal that no longer finds the row finds the grant.
  const own = rowsToDelete(at, ticket);
  const isBeside = !isOfAnotherWaiter && isDeletedBeside(at, claiming, seen);
  const [full, ...beside] = await Promise.all([claimFull(at, claiming), ...(isBeside ? own.map(remove) : [])]);
  if (!full) return undefined;
  let { record, grant } = full;
  // A withdrawal flags the row first, and reads the record second. So either this call sees the flag, or the withdrawal sees the claim.
  const others = isBeside ? [] : [...new Set([...(grant.ticket === undefined ? [] : [grant.ticket]), ...own])];
  const removed = isBeside ? beside : await inTurn(others, remove);
  const withdrawnAt = removed.findIndex(({ cancelled }) => cancelled);
  const { cancelled } = removed[withdrawnAt] ?? {};
  if (cancelled) {
    // If another waiter received the grant, a duplicate call may have answered its caller with the grant.
    const isOfGrant = isBeside || others[withdrawnAt] === grant.ticket || ticket === grant.ticket;
    if (isOfGrant) await lock.giveUp(record);
    throw withdrawn(cancelled);
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
  // A newer request may have found this grant not yet claimed.
  if (record.latest) await (await import('./replace.ts')).askHolder(dependencies, record, call).catch(leftToSchedule);
  return { record, repeated: full.repeated, previous: full.previous };
}

/** The rows to delete after a grant: that of the call, and the place of a caller that has slept. */
const rowsToDelete = ({ hasPlace }: LockCall, ticket: string | undefined): string[] =>
  ticket === undefined ? [] : [ticket, ...(hasPlace ? [placeOf(ticket)] : [])];

/** Deletes rows one by one, and stops at the first that was withdrawn. */
async function inTurn<Row, Outcome extends { cancelled: unknown }>(
  rows: readonly Row[],
  remove: (row: Row) => Promise<Outcome>,
): Promise<Outcome[]> {
  const done: Outcome[] = [];
  for (const row of rows) {
    done.push(await remove(row));
    if (done.at(-1)?.cancelled) break;
  }
  return done;
}

/** With less of the window left, the claim may be lost. Then the row is still needed, because it keeps the position of the call. */
const SURE_MS = 1000;

/** Whether the call deletes its row beside the write that claims the grant. Not for a shared grant, whose claim is lost more easily. */
const isDeletedBeside = (
  { dependencies, lock }: LockCall,
  { ticket, isOurs }: Claiming,
  { claimTtlMs, expiresAt }: Grant,
): boolean =>
  ticket !== undefined &&
  !isOurs &&
  lock.isAlone &&
  claimTtlMs !== undefined &&
  expiresAt - dependencies.clock.now() >= SURE_MS;

async function claimFull(
  at: LockCall,
  { record, ticket, isOurs: wasOurs = false, maxConflicts = MAX_CLAIM_CONFLICTS }: Claiming,
): Promise<(Granted & { grant: Grant }) | undefined> {
  const { dependencies, lock } = at;
  const { clock } = dependencies;
  let [current, isOurs] = [record, wasOurs];
  let previous: EndedGrant | undefined;
  for (let [renewals, conflicts] = [0, 0]; ; ) {
    const grant = lock.own(current);
    if (!isGrant(grant)) return undefined;
    const other = isAlive(grant, clock.now()) && lock.otherTerms(current);
    if (other) await refuseOtherTerms(at, other, ticket);
    previous = grant.previous ?? previous;
    if (isOurs && isWorthIt(grant, clock.now())) return { record: current, grant, repeated: false, previous };
    const how = nextWrite(grant, isOurs);
    if (how === 'renew' && renewals++ === MAX_CLAIM_RENEWALS) return undefined;
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
function nextWrite({ claimTtlMs }: Grant, isOurs: boolean): 'renew' | 'answer' | 'claim' {
  if (isOurs) return 'renew';
  return claimTtlMs === undefined ? 'answer' : 'claim';
}

/** @throws HoldfastError InvalidRequest if the call asks for other terms than the grant has. The waiter of the call is then deleted. */
async function refuseOtherTerms({ dependencies, lock, call }: LockCall, error: HoldfastError, ticket?: string) {
  if (ticket !== undefined) await deleteWaiter(dependencies, { key: lock.asked.key, ticket }, call);
  throw error;
}

export const isGrant = (own: Grant | string | undefined): own is Grant => typeof own === 'object';

/** True if the request still has the grant. A call may claim its grant after the grant window, if no other call has changed the record. */
export const isAlive = (own: Grant | string | undefined, now: number): own is Grant =>
  isGrant(own) && (own.claimTtlMs !== undefined || own.expiresAt > now);

/** False if the response to the write was so late that half of the ttl or less is left. */
const isWorthIt = ({ expiresAt, ttlMs = 0 }: Grant, now: number): boolean => (expiresAt - now) * 2 > ttlMs;

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
  let record: KeyRecord = await lock.read();
  for (let hasHandedOff = false; ; hasHandedOff = true) {
    if (isAlive(lock.own(record), dependencies.clock.now())) {
      const claimed = await claim(at, { record, ticket });
      if (claimed) return claimed;
      record = await lock.read();
    }
    if (row && !isTask(row) && row.cancelledAt !== undefined) return refuseCall(at, { record, ticket, reason: row });
    const how = lock.own(record);
    if (typeof how === 'string') return refuseEnded(at, { record, ticket, reason: how });
    if (hasHandedOff || !lock.isMarked(record)) break;
    // A call that leaves while the lock is free must hand off, or the waiters behind it would not be served. The record after the hand-off may
    // show a grant to another waiter of the request, or a grant to this waiter by a call whose clock is behind.
    record = (await lock.handOff(record)).record;
  }
  if (!row) {
    const { code, message, context } = lock.held(record);
    throw new HoldfastError(code, message, { ...context, retryWith: { requestId } });
  }
  const number = isTask(row) ? undefined : row.number;
  const position = { key, granted: lock.granted(record), ticket, record, number };
  const { isWhole, place, waiting } = await readPosition(dependencies, position, call);
  // A withdrawn waiter, or one whose call has exited, leaves the line without a write on the record. Lists would go on counting it.
  const counted = lock.counted(record);
  const inLine = waiting + 1;
  if (isWhole && counted && counted.inLine !== inLine) await lock.correct(counted.arrivals, inLine);
  throw heldAt(at, { record, ticket, place, waiting, comeBackMs: 0, keptMs: KEEP_POSITION_MS });
}

/** The error of a call that keeps its position while its caller is away. */
export function heldAt(
  { lock }: LockCall,
  { record, ticket, ...position }: KeptGrant & { record: KeyRecord; ticket: string },
): HoldfastError {
  const { code, message, context } = lock.held(record);
  return new HoldfastError(code, message, {
    ...{ ...context, ...position },
    retryWith: { requestId: lock.asked.requestId, ticket },
  });
}

interface KeptGrant {
  place: number;
  waiting: number;
  /** How soon the caller is to ask again, and for how long its position is kept. */
  comeBackMs: number;
  keptMs: number;
  retryAfterMs?: number;
}

/** A call in line that can no longer receive a grant. */
interface Refusing<Reason> {
  record: KeyRecord;
  ticket: string;
  reason: Reason;
}

/**
 * Refuses a call whose request had a grant that has ended, or was superseded, as the record shows.
 * @throws HoldfastError LeaseLost, Superseded, Throttled, Unavailable, OutcomeUnknown
 */
export async function refuseEnded(
  at: LockCall,
  { record, ticket, reason }: Refusing<'broken' | 'released' | 'superseded'>,
): Promise<never> {
  const { dependencies, lock, call } = at;
  // A withdrawal flags the waiter before it ends the grant, so this call sees the flag too.
  const flagged = await getCancelled(dependencies, { key: lock.asked.key, ticket }, call);
  return refuseCall(at, { record, ticket, reason: flagged ?? reason });
}

/**
 * Refuses a call in line. Deletes the waiter first, or the hand-off would grant the lock to this waiter.
 * @param refusing `reason`: how the grant of its request ended, or the row that was withdrawn or superseded
 * @throws HoldfastError as `refuseEnded`
 */
export async function refuseCall(
  at: LockCall,
  { record, ticket, reason }: Refusing<'broken' | 'released' | 'superseded' | WaitingCall>,
): Promise<never> {
  const { dependencies, lock, call } = at;
  const { key } = lock.asked;
  // A flagged place stays, because a duplicate call may have received a grant meanwhile, and must see the flag before it claims.
  const isFlagged = typeof reason === 'object';
  for (const row of isFlagged ? [ticket] : rowsToDelete(at, ticket))
    await deleteWaiter(dependencies, { key, ticket: row }, call);
  if (lock.isMarked(record)) await lock.handOff(record);
  throw isFlagged ? withdrawn(reason) : lock.lost(reason, record);
}

/**
 * Ends the wait of a call that asked again and received its grant at once. Refuses the call if its request was withdrawn.
 * @throws HoldfastError LeaseLost (`cancelled`), Throttled, Unavailable, OutcomeUnknown
 */
export async function leaveAfterGrant(
  { dependencies, lock, call }: LockCall,
  { granted, ticket }: { granted: Granted; ticket: string },
): Promise<void> {
  const remove = (row: string) => deleteOwnUnlessWithdrawn(dependencies, { ticket: row, asker: lock.asked }, call);
  const rows = canSleep(dependencies) ? [placeOf(ticket), ticket] : [ticket];
  const flagged = (await inTurn(rows, remove)).find(({ cancelled }) => cancelled)?.cancelled;
  if (!flagged) return;
  const own = lock.own(granted.record);
  // If another waiter received the grant, a duplicate call may have answered its caller with the grant.
  const isOfAnotherWaiter = granted.repeated && isGrant(own) && own.ticket !== ticket;
  if (!isOfAnotherWaiter) await lock.giveUp(granted.record);
  throw withdrawn(flagged);
}
