import type { Call } from '../../aws/call.ts';
import { canSleep, DEFAULT_QUOTAS, type LeaseDependencies } from '../dependencies.ts';
import type { KeyRecord } from '../record/record.ts';
import type { Granted, TryOutcome } from '../record/room.ts';
import { noteMark } from '../record/seen-marks.ts';
import { leaveAfterGrant } from './claim.ts';
import { type Arrived, isLineFull, refuseWhereFull } from './limits.ts';
import type { LockCall, MarkWritten } from './lock.ts';
import { extendPlace, putPlace, type Sleeper } from './place.ts';
import {
  deleteWaiter,
  getWaiter,
  isTask,
  newTicket,
  parkedAtOf,
  placeOf,
  putWaiter,
  queueFull,
  type WaitingCall,
  withdrawn,
} from './waiters.ts';
import { deleteOwnUnlessWithdrawn, KEEP_POSITION_MS, keepPosition } from './waiting-calls.ts';

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

/** A call that joins the line of a lock. */
export interface Joining {
  /** The ticket of an earlier call of the request, if the caller asks again. */
  ticket?: string | undefined;
  /** When it stops waiting, in epoch milliseconds. */
  deadline: number;
  /** Until when its row counts as present. Later than the deadline if its caller asks again at once. */
  presentUntil?: number | undefined;
  /** The number of its arrival, if that is known. */
  number?: number | undefined;
  /** What the caller has in line: a place if it has slept, and a row if its last call was held. */
  hasPlace?: boolean | undefined;
  hasRow?: boolean | undefined;
  /** One try, without waiting. Only of a call that has joined without a first try, because the key had a line a moment ago. */
  attempt?: (() => Promise<TryOutcome>) | undefined;
  /** How long a call that came after the key was free leaves the key to callers that sleep (docs/protocols/places.md#take-a-free-key). */
  patience?: { freeSince: number; until: number } | undefined;
  /** Called every few seconds. Puts the caller to sleep if its turn has moved away, and then throws LeaseHeld. */
  sleepIfFar?: ((record: KeyRecord, held: Joining & { ticket: string }) => Promise<Granted | undefined>) | undefined;
}

export interface Joined {
  ticket: string;
  /** Whether the caller has a place beside its row. */
  hasPlace?: boolean;
  /** The record after the mark was raised, or the record that did not allow the mark. */
  record: KeyRecord;
  /** The grant of a call that joined without a first try, and then found the line gone. */
  granted?: Granted | undefined;
}

/**
 * Keeps the row of a call that asks again in time, puts the row of a caller that has slept, or adds a new waiter.
 * @throws HoldfastError LeaseLost (`cancelled`), Superseded, QueueFull, Throttled, Unavailable, OutcomeUnknown
 */
async function takePosition(
  at: LockCall,
  joining: Joining,
): Promise<{ ticket: string; how: 'new' | 'again' | 'counted' | 'back' }> {
  const {
    dependencies,
    lock: { asked },
    call,
  } = at;
  const { clock, clockSkewMs, ids } = dependencies;
  const { ticket, number, deadline, presentUntil = deadline } = joining;
  const hasPlace = joining.hasPlace && !joining.hasRow;
  const keepUntil = presentUntil + KEEP_POSITION_MS;
  if (ticket !== undefined && !Number.isNaN(parkedAtOf(ticket))) {
    const keeping = { asker: asked, ticket, deadline: presentUntil };
    const kept = hasPlace ? undefined : await keepPosition(dependencies, keeping, call);
    if (kept?.cancelledAt !== undefined) throw withdrawn(kept);
    // A call with a faster clock may have counted the line without this row, if the row may have expired by that clock.
    if (kept) return { ticket, how: kept.keepUntil > clock.now() + clockSkewMs ? 'counted' : 'again' };
    const place = hasPlace ? { number } : await ownPlace(at, ticket);
    const row = {
      ...asked,
      ticket,
      number: place?.number,
      parkedAt: parkedAtOf(ticket),
      deadline: presentUntil,
      keepUntil,
    };
    if (place && (await putRowBack(dependencies, row, call))) return { ticket, how: 'back' };
  }
  await refuseWhereFull(dependencies, asked.key, call);
  const now = clock.now();
  const name = newTicket(now, ids.uuid());
  await putWaiter(
    dependencies,
    { ...asked, ticket: name, number, parkedAt: now, deadline: presentUntil, keepUntil },
    call,
  );
  return { ticket: name, how: 'new' };
}

/** The place of the caller. Tickets can be read and guessed, and with an early ticket of another a caller would pass the whole line. */
async function ownPlace({ dependencies, lock, call }: LockCall, ticket: string): Promise<WaitingCall | undefined> {
  if (!canSleep(dependencies)) return undefined;
  const place = await getWaiter(dependencies, { key: lock.asked.key, ticket: placeOf(ticket) }, call);
  return place && !isTask(place) && lock.isOwnRow(place) ? place : undefined;
}

/**
 * Puts the row of a call whose caller has slept, and then extends its place. A withdrawal flags the place first, and the row second, so one of the two
 * sees the other.
 * @returns false if the place is gone. The row is then deleted, because the request may have had its grant
 */
async function putRowBack(dependencies: LeaseDependencies, row: WaitingCall, call: Call): Promise<boolean> {
  await putWaiter(dependencies, row, call);
  const sleeper = { asked: row, ticket: row.ticket, sleepMs: row.deadline - dependencies.clock.now(), isNear: true };
  const kept = await extendPlace(dependencies, sleeper, call);
  if (kept === 'kept') return true;
  const own = { ticket: row.ticket, asker: row };
  const { cancelled } = await deleteOwnUnlessWithdrawn(dependencies, own, call);
  const flagged = kept === 'gone' ? cancelled : kept;
  if (flagged) throw withdrawn(flagged);
  return false;
}

/**
 * Adds a call to the line: the waiter first, then the mark (docs/protocols/queue.md#join).
 * @throws HoldfastError LeaseLost (`cancelled`), QueueFull, Throttled, Unavailable, OutcomeUnknown
 */
export async function join(at: LockCall, joining: Joining): Promise<Joined> {
  const { dependencies, lock, call } = at;
  const { key } = lock.asked;
  const { ticket, how } = await takePosition(at, joining);
  // A live place has kept the mark, so the call does not raise the mark again.
  if (how === 'back') return { ticket, hasPlace: true, record: await lock.read() };
  const { attempt } = joining;
  const tried = attempt && how === 'new' ? await markOrTry(at, { ticket, attempt }) : undefined;
  if (tried?.granted) return { ticket, record: tried.granted.record, granted: tried.granted };
  const marked = tried?.marked ?? (await lock.mark(ticket, how === 'counted' ? 'again' : 'first'));
  const { won, record, arrivals, lineOut } = marked;
  const correct = async (inLine: number) => lock.correct(arrivals, inLine);
  // A call that asks again keeps its position, even in a line that is too long.
  if (won && how === 'new') await refuseWhereLong(dependencies, { key, ticket, arrivals, lineOut, correct }, call);
  noteMark(dependencies, record);
  return { ticket, record, hasPlace: how !== 'new' && joining.hasPlace === true };
}

/** Raises the mark if the key still has one. Otherwise makes the try that the call left out. @returns neither if the try was refused too */
async function markOrTry(
  at: LockCall,
  { ticket, attempt }: { ticket: string; attempt: () => Promise<TryOutcome> },
): Promise<{ marked?: MarkWritten; granted?: Granted }> {
  const marked = await at.lock.mark(ticket, 'first', { isMarked: true });
  if (marked.won || at.lock.isMarked(marked.record) || at.lock.own(marked.record) !== undefined) return { marked };
  const outcome = await attempt();
  if (!outcome.won) return {};
  await leaveAfterGrant(at, { granted: outcome, ticket });
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
  const { asked } = lock;
  const { key } = asked;
  await refuseWhereFull(dependencies, key, call);
  const ticket = newTicket(dependencies.clock.now(), dependencies.ids.uuid());
  await putPlace(dependencies, { asked, ticket, ...sleeping }, call);
  const { won, record, arrivals, lineOut } = await lock.mark(ticket, 'first', { isAsleep: true });
  const correct = async (inLine: number) => lock.correct(arrivals, inLine);
  const arrived = { key, ticket: placeOf(ticket), arrivals, lineOut, correct };
  if (won) await refuseWhereLong(dependencies, arrived, call);
  return { ticket, record };
}
