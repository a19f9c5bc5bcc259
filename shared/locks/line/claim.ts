import { HoldfastError } from '../../errors.ts';
import type { EndedGrant } from '../calls/types.ts';
import { canSleep } from '../dependencies.ts';
import type { KeyRecord } from '../record/record.ts';
import type { GrantOnRecord } from '../record/room.ts';
import { readPosition } from './listed-waiters.ts';
import type { Grant, LockCall } from './lock.ts';
import { logFailedHandOff } from './notify.ts';
import { deleteWaiter, errorOfFlagged, getWaiter, isTask, placeKeyOf, type WaitingCall } from './waiters.ts';
import { deleteOwnUnlessFlagged, deleteUnlessFlagged, getFlagged, KEEP_POSITION_MS } from './waiting-calls.ts';

// How a call makes its grant from the line a full grant, and how it leaves the line without one.
//
//   hand-off           + WINDOW_MS       + margin
//      |--- grant window ---|---------------|--- another hand-off may end the grant
//      |--- the call may claim the grant for its whole ttl, as long as no other call has changed it ---

/**
 * How often a call renews its claim. It does so if the response came so late that half of the ttl was gone, and the
 * response to each renewal may be late too.
 */
const MAX_CLAIM_RENEWALS = 4;

/** How many writes of a claim may be lost to duplicate calls, each of which usually changes the grant one time. */
const MAX_CLAIM_CONFLICTS = 20;

interface ClaimOptions {
  /** The record that shows the grant of the request, as last seen. */
  record: KeyRecord;
  ticket?: string;
  /** Whether this call has just written the grant, as a full grant. */
  isWrittenHere?: boolean;
  /** How many writes this call may lose. A first try may lose only one, because it starts again by itself. */
  maxConflicts?: number;
}

/**
 * Makes the grant that a hand-off has left for this request a full grant, or answers with the grant that a duplicate
 * call has claimed (docs/protocols/queue.md#claim). Then deletes the row of this call. If that row was withdrawn, gives
 * up the grant.
 * @returns undefined if the request no longer has such a grant
 * @throws HoldfastError LeaseLost (`cancelled`), InvalidRequest (other terms), Throttled, Unavailable, OutcomeUnknown
 */
export async function claim(lockCall: LockCall, claiming: ClaimOptions): Promise<GrantOnRecord | undefined> {
  const { dependencies, lock, call } = lockCall;
  const { ticket } = claiming;
  const { key } = lock.request;
  const seen = lock.ownGrant(claiming.record);
  if (!isGrant(seen)) return undefined;
  const isOfAnotherWaiter = ticket !== undefined && ticket !== seen.ticket;
  const flagged = isOfAnotherWaiter && (await getFlagged(dependencies, { key, ticket }, call));
  if (flagged) throw errorOfFlagged(flagged);
  const remove = (row: string) => deleteUnlessFlagged(dependencies, { key, ticket: row }, call);
  const ownRows = rowsToDelete(lockCall, ticket);
  // Deleting the row beside the claim saves a round trip. A withdrawal that no longer finds the row finds the grant on
  // record.
  const isBeside = !isOfAnotherWaiter && isDeletedBeside(lockCall, claiming, seen);
  const [full, ...beside] = await Promise.all([
    claimFull(lockCall, claiming),
    ...(isBeside ? ownRows.map(remove) : []),
  ]);
  if (!full) return undefined;
  let { record, grant } = full;
  // A withdrawal flags the row before it reads the record. So either this call sees the flag, or the withdrawal sees
  // the claim.
  const others = isBeside ? [] : [...new Set([...(grant.ticket === undefined ? [] : [grant.ticket]), ...ownRows])];
  const removed = isBeside ? beside : await inTurn(others, remove);
  const flaggedAt = removed.findIndex(({ flagged }) => flagged);
  const { flagged: flaggedRow } = removed[flaggedAt] ?? {};
  if (flaggedRow) {
    // If another waiter of the request received the grant, its call may already have answered with it, so the grant
    // must stay.
    const isOfGrant = isBeside || others[flaggedAt] === grant.ticket || ticket === grant.ticket;
    if (isOfGrant) await lock.giveUp(record);
    throw errorOfFlagged(flaggedRow);
  }
  // The grant expired while the rows were deleted. Without this renewal, the call would wait behind its own grant.
  if (!full.repeated && grant.expiresAt <= dependencies.clock.now()) {
    const renewed = await lock.write(record, 'renew');
    const own = lock.ownGrant(renewed.record);
    if (!renewed.won || !isGrant(own)) return undefined;
    [record, grant] = [renewed.record, own];
  }
  if (grant.expiresAt <= dependencies.clock.now()) return undefined;
  if (!full.repeated) lock.measureHandOff(grant);
  // A newer request cannot ask a holder to stop before that holder has claimed its grant. So this call asks itself, as
  // the holder.
  if (record.latest) await (await import('./replace.ts')).askHolder(dependencies, record, call).catch(logFailedHandOff);
  return { record, repeated: full.repeated, previous: full.previous };
}

/** The rows to delete after a grant: the row of the call, and the place of a caller that has slept. */
const rowsToDelete = ({ hasPlace }: LockCall, ticket: string | undefined): string[] =>
  ticket === undefined ? [] : [ticket, ...(hasPlace ? [placeKeyOf(ticket)] : [])];

/** Deletes rows one by one, and stops at the first that was flagged. */
async function inTurn<Row, Outcome extends { flagged: unknown }>(
  rows: readonly Row[],
  remove: (row: Row) => Promise<Outcome>,
): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const row of rows) {
    const outcome = await remove(row);
    outcomes.push(outcome);
    if (outcome.flagged) break;
  }
  return outcomes;
}

/**
 * With less than this left of the grant window, the claim may be lost. The call then keeps its row until it has
 * claimed, because the row keeps its position.
 */
const SAFE_WINDOW_LEFT_MS = 1000;

/**
 * Whether the call deletes its row at the same time as it claims the grant. The claim of a shared grant is lost too
 * easily for that.
 */
const isDeletedBeside = (
  { dependencies, lock }: LockCall,
  { ticket, isWrittenHere }: ClaimOptions,
  { claimTtlMs, expiresAt }: Grant,
): boolean =>
  ticket !== undefined &&
  !isWrittenHere &&
  lock.isExclusive &&
  claimTtlMs !== undefined &&
  expiresAt - dependencies.clock.now() >= SAFE_WINDOW_LEFT_MS;

/** Writes the grant until it is a full grant with enough time left, or reads that a duplicate call has made it so. */
async function claimFull(
  lockCall: LockCall,
  { record, ticket, isWrittenHere: wasOurs = false, maxConflicts = MAX_CLAIM_CONFLICTS }: ClaimOptions,
): Promise<(GrantOnRecord & { grant: Grant }) | undefined> {
  const { dependencies, lock } = lockCall;
  const { clock } = dependencies;
  let [current, isWrittenHere] = [record, wasOurs];
  let previous: EndedGrant | undefined;
  for (let [renewals, conflicts] = [0, 0]; ; ) {
    const grant = lock.ownGrant(current);
    if (!isGrant(grant)) return undefined;
    const termsError = isAlive(grant, clock.now()) && lock.otherTerms(current);
    if (termsError) await refuseOtherTerms(lockCall, termsError, ticket);
    previous = grant.previous ?? previous;
    if (isWrittenHere && hasHalfTtlLeft(grant, clock.now()))
      return { record: current, grant, repeated: false, previous };
    const how = nextWrite(grant, isWrittenHere);
    if (how === 'renew' && renewals++ === MAX_CLAIM_RENEWALS) return undefined;
    if (how === 'answer' && grant.expiresAt <= clock.now()) return undefined;
    const written = await lock.write(current, how);
    current = written.record;
    const own = lock.ownGrant(current);
    if (!isGrant(own) || (!written.won && ++conflicts === maxConflicts)) return undefined;
    if (how === 'answer' && written.won) return { record: current, grant: own, repeated: true, previous };
    isWrittenHere = written.won;
  }
}

/** Chooses the next write. If a duplicate call has already made the grant full, this call only answers with it. */
function nextWrite({ claimTtlMs }: Grant, isWrittenHere: boolean): 'renew' | 'answer' | 'claim' {
  if (isWrittenHere) return 'renew';
  return claimTtlMs === undefined ? 'answer' : 'claim';
}

/**
 * Deletes the row of the call, and then throws the error: the call asks for other terms than the grant of its request
 * has.
 */
async function refuseOtherTerms({ dependencies, lock, call }: LockCall, error: HoldfastError, ticket?: string) {
  if (ticket !== undefined) await deleteWaiter(dependencies, { key: lock.request.key, ticket }, call);
  throw error;
}

export const isGrant = (own: Grant | string | undefined): own is Grant => typeof own === 'object';

/**
 * Whether the request still has the grant. A grant that was not claimed counts even after its grant window: if no
 * other call has changed it, the claim wins.
 */
export const isAlive = (own: Grant | string | undefined, now: number): own is Grant =>
  isGrant(own) && (own.claimTtlMs !== undefined || own.expiresAt > now);

/** Whether more than half of the ttl is left. A late response to the write may have used up the rest. */
const hasHalfTtlLeft = ({ expiresAt, ttlMs = 0 }: Grant, now: number): boolean => (expiresAt - now) * 2 > ttlMs;

/**
 * Ends the wait of a call whose deadline has passed, or whose row is gone (docs/protocols/queue.md#leave). A row stays
 * for five seconds, for a caller that asks again.
 * @returns a grant that the request received at the last moment
 * @throws HoldfastError LeaseHeld, with the position if the call has a waiter; LeaseLost, Throttled, Unavailable,
 * OutcomeUnknown
 */
export async function leave(lockCall: LockCall, ticket: string): Promise<GrantOnRecord> {
  const { dependencies, lock, call } = lockCall;
  const { key, requestId } = lock.request;
  const row = await getWaiter(dependencies, { key, ticket }, call);
  let record: KeyRecord = await lock.read();
  for (let hasHandedOff = false; ; hasHandedOff = true) {
    if (isAlive(lock.ownGrant(record), dependencies.clock.now())) {
      const claimed = await claim(lockCall, { record, ticket });
      if (claimed) return claimed;
      record = await lock.read();
    }
    if (row && !isTask(row) && row.cancelledAt !== undefined)
      return refuseCall(lockCall, { record, ticket, reason: row });
    const own = lock.ownGrant(record);
    if (typeof own === 'string') return refuseEnded(lockCall, { record, ticket, reason: own });
    if (hasHandedOff || !lock.isMarked(record)) break;
    // A call that leaves while the key is free must hand off, or the waiters behind it would not be served. Judge the
    // record once more after that: it may show a grant to another waiter of the request, or a grant to this one by a
    // call whose clock is behind.
    record = (await lock.handOff(record)).record;
  }
  if (!row) {
    const { code, message, context } = lock.errorOfHeld(record);
    throw new HoldfastError(code, message, { ...context, retryWith: { requestId } });
  }
  const number = isTask(row) ? undefined : row.number;
  const lineOfCall = { key, granted: lock.ticketsOfHolders(record), ticket, record, number };
  const { isWhole, position, waiting } = await readPosition(dependencies, lineOfCall, call);
  // A waiter that was withdrawn, or whose call has crashed, leaves the line without a write on the record. The hint
  // must not count it any longer.
  const counted = lock.countsByHints(record);
  const inLine = waiting + 1;
  if (isWhole && counted && counted.inLine !== inLine) await lock.correctLineOut(counted.arrivals, inLine);
  throw heldAt(lockCall, { record, ticket, position, waiting, comeBackMs: 0, keptMs: KEEP_POSITION_MS });
}

/** The error of a call that keeps its position while its caller is away. */
export function heldAt(
  { lock }: LockCall,
  { record, ticket, position: place, ...kept }: KeptPosition & { record: KeyRecord; ticket: string },
): HoldfastError {
  const { code, message, context } = lock.errorOfHeld(record);
  return new HoldfastError(code, message, {
    ...{ ...context, place, ...kept },
    retryWith: { requestId: lock.request.requestId, ticket },
  });
}

interface KeptPosition {
  position: number;
  waiting: number;
  comeBackMs: number;
  /** For how long the service keeps the position. */
  keptMs: number;
  retryAfterMs?: number;
}

interface RefusedCall<Reason> {
  record: KeyRecord;
  ticket: string;
  reason: Reason;
}

/**
 * Refuses a call whose request had a grant that has ended, or was superseded, as the record shows.
 * @throws HoldfastError LeaseLost, Superseded, Throttled, Unavailable, OutcomeUnknown
 */
export async function refuseEnded(
  lockCall: LockCall,
  { record, ticket, reason }: RefusedCall<'broken' | 'released' | 'superseded'>,
): Promise<never> {
  const { dependencies, lock, call } = lockCall;
  // A withdrawal flags the row before it ends the grant. If that was the reason, the call must answer that it was
  // cancelled.
  const flagged = await getFlagged(dependencies, { key: lock.request.key, ticket }, call);
  return refuseCall(lockCall, { record, ticket, reason: flagged ?? reason });
}

/**
 * Refuses a call in line. Deletes its row first, or the hand-off would grant the key to this very call.
 * `reason`: how the grant of its request ended, or the row that was withdrawn or superseded
 * @throws HoldfastError as `refuseEnded`
 */
export async function refuseCall(
  lockCall: LockCall,
  { record, ticket, reason }: RefusedCall<'broken' | 'released' | 'superseded' | WaitingCall>,
): Promise<never> {
  const { dependencies, lock, call } = lockCall;
  const { key } = lock.request;
  // A flagged place stays: a duplicate call may have received a grant in the meantime, and must see the flag before
  // it claims.
  const isFlagged = typeof reason === 'object';
  for (const row of isFlagged ? [ticket] : rowsToDelete(lockCall, ticket))
    await deleteWaiter(dependencies, { key, ticket: row }, call);
  if (lock.isMarked(record)) await lock.handOff(record);
  throw isFlagged ? errorOfFlagged(reason) : lock.errorOfEnded(reason, record);
}

/**
 * Deletes the rows of a call that asked again and received its grant without waiting. Refuses the call if its request
 * was withdrawn.
 * @throws HoldfastError LeaseLost (`cancelled`), Throttled, Unavailable, OutcomeUnknown
 */
export async function leaveAfterGrant(
  { dependencies, lock, call }: LockCall,
  { granted, ticket }: { granted: GrantOnRecord; ticket: string },
): Promise<void> {
  const remove = (row: string) => deleteOwnUnlessFlagged(dependencies, { ticket: row, asker: lock.request }, call);
  const rows = canSleep(dependencies) ? [placeKeyOf(ticket), ticket] : [ticket];
  const flagged = (await inTurn(rows, remove)).find((outcome) => outcome.flagged)?.flagged;
  if (!flagged) return;
  const own = lock.ownGrant(granted.record);
  // If another waiter of the request received the grant, its call may already have answered with it, so the grant must
  // stay.
  const isOfAnotherWaiter = granted.repeated && isGrant(own) && own.ticket !== ticket;
  if (!isOfAnotherWaiter) await lock.giveUp(granted.record);
  throw errorOfFlagged(flagged);
}
