import type { Call } from '../../aws/call.ts';
import { canSleep, DEFAULT_QUOTAS, type LeaseDependencies } from '../dependencies.ts';
import type { KeyRecord } from '../record/record.ts';
import type { GrantOnRecord, TryOutcome } from '../record/room.ts';
import { noteMark } from '../record/seen-marks.ts';
import { leaveAfterGrant } from './claim.ts';
import { type Arrived, isLineFull, refuseIfNamespaceFull } from './limits.ts';
import type { LockCall, MarkUpdated } from './lock.ts';
import { extendPlace, putPlace, type Sleeper } from './place.ts';
import {
  deleteWaiter,
  errorOfFlagged,
  getWaiter,
  isTask,
  newTicket,
  parkedAtOf,
  placeKeyOf,
  putWaiter,
  queueFull,
  type WaitingCall,
} from './waiters.ts';
import { deleteOwnUnlessFlagged, KEEP_POSITION_MS, keepPosition } from './waiting-calls.ts';

/**
 * Takes a call that has just joined out of a line that is too long.
 * @throws HoldfastError QueueFull, Throttled, Unavailable, OutcomeUnknown
 */
async function leaveIfLineFull(
  dependencies: LeaseDependencies,
  { ticket, ...arrived }: Arrived & { ticket: string },
  call: Call,
): Promise<void> {
  if (!(await isLineFull(dependencies, arrived, call))) return;
  await deleteWaiter(dependencies, { key: arrived.key, ticket }, call);
  throw queueFull(arrived.key, (dependencies.quotas ?? DEFAULT_QUOTAS).waitersPerKey);
}

export interface JoinOptions {
  /** The ticket of an earlier call of the request, if the caller asks again. */
  ticket?: string | undefined;
  /** When the call stops waiting, in epoch milliseconds. */
  deadline: number;
  /** The deadline that the row gets: later than the call's if the caller asks again at once. */
  presentUntil?: number | undefined;
  /** The number of the arrival, if it is known. */
  number?: number | undefined;
  /** Whether the caller has slept, and so has a place. */
  hasPlace?: boolean | undefined;
  /** Whether the last call of the caller was held, and so left a row. */
  hasRow?: boolean | undefined;
  /**
   * One try without waiting, for a call that joins without a first try because the key had a line a moment ago. It
   * needs the try if the line is gone.
   */
  attempt?: (() => Promise<TryOutcome>) | undefined;
  /**
   * For a call that came when the key was free already: until when it leaves the key to sleepers
   * (docs/protocols/places.md#take-a-free-key).
   */
  patience?: { freeSince: number; until: number } | undefined;
  /**
   * Puts the caller to sleep and throws LeaseHeld, if its turn has moved away. A call that waits calls this every few
   * seconds.
   */
  sleepIfFar?:
    | ((record: KeyRecord, held: JoinOptions & { ticket: string }) => Promise<GrantOnRecord | undefined>)
    | undefined;
}

export interface Joined {
  ticket: string;
  hasPlace?: boolean;
  /** The record after the mark was raised, or the record that did not allow the mark. */
  record: KeyRecord;
  /** The grant of a call that joined without a first try, and then found the line gone. */
  granted?: GrantOnRecord | undefined;
}

/**
 * Extends the row of a call that asks again in time, puts the row of a caller that has slept, or adds a new waiter.
 * @returns `how`: `new`: added a waiter. `counted`: extended its row. `uncounted`: extended a row that the hints may
 * not count any more. `back`: put the row of a caller that has slept
 * @throws HoldfastError LeaseLost (`cancelled`), Superseded, QueueFull, Throttled, Unavailable, OutcomeUnknown
 */
async function takePosition(
  lockCall: LockCall,
  joining: JoinOptions,
): Promise<{ ticket: string; how: 'new' | 'counted' | 'uncounted' | 'back' }> {
  const {
    dependencies,
    lock: { request },
    call,
  } = lockCall;
  const { clock, clockSkewMs, ids } = dependencies;
  const { ticket, number, deadline, presentUntil = deadline } = joining;
  const hasOnlyPlace = joining.hasPlace && !joining.hasRow;
  const keepUntil = presentUntil + KEEP_POSITION_MS;
  if (ticket !== undefined && !Number.isNaN(parkedAtOf(ticket))) {
    const keeping = { asker: request, ticket, deadline: presentUntil };
    const kept = hasOnlyPlace ? undefined : await keepPosition(dependencies, keeping, call);
    if (kept?.cancelledAt !== undefined) throw errorOfFlagged(kept);
    // By a clock that is ahead, the row may have expired already, so another call may have counted the line without it.
    if (kept) return { ticket, how: kept.keepUntil > clock.now() + clockSkewMs ? 'counted' : 'uncounted' };
    const place = hasOnlyPlace ? { number } : await ownPlace(lockCall, ticket);
    const row = {
      ...request,
      ticket,
      number: place?.number,
      parkedAt: parkedAtOf(ticket),
      deadline: presentUntil,
      keepUntil,
    };
    if (place && (await putRowBack(dependencies, row, call))) return { ticket, how: 'back' };
  }
  await refuseIfNamespaceFull(dependencies, request.key, call);
  const now = clock.now();
  const fresh = newTicket(now, ids.uuid());
  await putWaiter(
    dependencies,
    { ...request, ticket: fresh, number, parkedAt: now, deadline: presentUntil, keepUntil },
    call,
  );
  return { ticket: fresh, how: 'new' };
}

/**
 * The place of a ticket, if it belongs to this request. Every caller can read tickets. With another caller's early
 * ticket, a caller could jump the whole line.
 */
async function ownPlace({ dependencies, lock, call }: LockCall, ticket: string): Promise<WaitingCall | undefined> {
  if (!canSleep(dependencies)) return undefined;
  const place = await getWaiter(dependencies, { key: lock.request.key, ticket: placeKeyOf(ticket) }, call);
  return place && !isTask(place) && lock.isOwnRow(place) ? place : undefined;
}

/**
 * Puts the row of a call whose caller has slept, and then extends its place. A withdrawal flags the place first and the
 * row second. Of the two, at least one therefore sees the write of the other.
 * @returns false if the place is gone. Then the row is deleted again, because the request may have had its grant
 */
async function putRowBack(dependencies: LeaseDependencies, row: WaitingCall, call: Call): Promise<boolean> {
  await putWaiter(dependencies, row, call);
  const sleeper = { request: row, ticket: row.ticket, sleepMs: row.deadline - dependencies.clock.now(), isNear: true };
  const kept = await extendPlace(dependencies, sleeper, call);
  if (kept === 'kept') return true;
  const own = { ticket: row.ticket, asker: row };
  const { flagged: flaggedRow } = await deleteOwnUnlessFlagged(dependencies, own, call);
  const flagged = kept === 'gone' ? flaggedRow : kept;
  if (flagged) throw errorOfFlagged(flagged);
  return false;
}

/**
 * Adds a call to the line: the waiter first, then the mark (docs/protocols/queue.md#join).
 * @throws HoldfastError LeaseLost (`cancelled`), QueueFull, Throttled, Unavailable, OutcomeUnknown
 */
export async function join(lockCall: LockCall, joining: JoinOptions): Promise<Joined> {
  const { dependencies, lock, call } = lockCall;
  const { key } = lock.request;
  const { ticket, how } = await takePosition(lockCall, joining);
  // The place has kept the mark, so the call need not raise it.
  if (how === 'back') return { ticket, hasPlace: true, record: await lock.read() };
  const { attempt } = joining;
  const tried = attempt && how === 'new' ? await markOrTry(lockCall, { ticket, attempt }) : undefined;
  if (tried?.granted) return { ticket, record: tried.granted.record, granted: tried.granted };
  const marked = tried?.marked ?? (await lock.raiseMark(ticket, { isCounted: how === 'counted' }));
  const { won, record, arrivals, lineOut } = marked;
  const correct = async (inLine: number) => lock.correctLineOut(arrivals, inLine);
  // A caller that asks again keeps its position, even in a line that is too long.
  if (won && how === 'new') await leaveIfLineFull(dependencies, { key, ticket, arrivals, lineOut, correct }, call);
  noteMark(dependencies, record);
  return { ticket, record, hasPlace: how !== 'new' && joining.hasPlace === true };
}

/**
 * Raises the mark if the key still has one. Otherwise makes the try that the call left out.
 * @returns neither if the try was refused
 */
async function markOrTry(
  lockCall: LockCall,
  { ticket, attempt }: { ticket: string; attempt: () => Promise<TryOutcome> },
): Promise<{ marked?: MarkUpdated; granted?: GrantOnRecord }> {
  const marked = await lockCall.lock.raiseMark(ticket, { mustBeMarked: true });
  if (marked.won || lockCall.lock.isMarked(marked.record) || lockCall.lock.ownGrant(marked.record) !== undefined)
    return { marked };
  const outcome = await attempt();
  if (!outcome.won) return {};
  await leaveAfterGrant(lockCall, { granted: outcome, ticket });
  return { granted: outcome };
}

/**
 * Adds a caller that sleeps to the line: puts its place, and then raises the mark (docs/protocols/places.md#join).
 * @throws HoldfastError QueueFull, Throttled, Unavailable, OutcomeUnknown
 */
export async function joinAsleep(
  { dependencies, lock, call }: LockCall,
  sleeping: Pick<Sleeper, 'number' | 'sleepMs' | 'isNear'>,
): Promise<{ ticket: string; record: KeyRecord }> {
  const { request } = lock;
  const { key } = request;
  await refuseIfNamespaceFull(dependencies, key, call);
  const ticket = newTicket(dependencies.clock.now(), dependencies.ids.uuid());
  await putPlace(dependencies, { request, ticket, ...sleeping }, call);
  const { won, record, arrivals, lineOut } = await lock.raiseMark(ticket, { isAsleep: true });
  const correct = async (inLine: number) => lock.correctLineOut(arrivals, inLine);
  const arrived = { key, ticket: placeKeyOf(ticket), arrivals, lineOut, correct };
  if (won) await leaveIfLineFull(dependencies, arrived, call);
  return { ticket, record };
}
