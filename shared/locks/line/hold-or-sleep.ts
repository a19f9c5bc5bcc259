import { BatchGetItemCommand } from '@aws-sdk/client-dynamodb';
import { text } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import { reading, send } from '../../aws/send.ts';
import { HoldfastError } from '../../errors.ts';
import { canSleep, type LeaseDependencies } from '../dependencies.ts';
import { isExclusiveGrant, type KeyRecord, parseKey } from '../record/record.ts';
import { readKey } from '../record/requests.ts';
import { type GrantOnRecord, roomFreeFrom, type TryOutcome } from '../record/room.ts';
import { claim, heldAt, isAlive, leaveAfterGrant, refuseCall, refuseEnded } from './claim.ts';
import {
  type Expected,
  expectedTurn,
  holdReasonOf,
  isFarAgain,
  patienceOf,
  sleepMsOf,
  type WaitState,
} from './expected.ts';
import { inSeat } from './held-calls.ts';
import { type JoinOptions, joinAsleep } from './join.ts';
import { type LinePosition, readPosition } from './listed-waiters.ts';
import type { LockCall } from './lock.ts';
import { newGrantOf } from './next.ts';
import { EXACT_POSITIONS, extendPlace, isLive, keptMsOf, mustExtend, type Place, putPlace } from './place.ts';
import { waitInLine } from './wait.ts';
import {
  deleteWaiter,
  errorOfFlagged,
  getWaiter,
  isPlace,
  isTask,
  parseWaiter,
  placeKeyOf,
  type Waiter,
  type WaitingCall,
} from './waiters.ts';
import { deleteUnlessFlagged } from './waiting-calls.ts';

// Holds a call that wants to wait in line if its turn is near. Otherwise ends the call at once, and its caller sleeps
// (docs/protocols/places.md).

/** A caller of acquire that wants to wait in line. */
export interface WaitingCaller {
  /** The ticket of an earlier call, if the caller asks again. */
  ticket: string | undefined;
  /** When the call stops waiting, in epoch milliseconds. */
  deadline: number;
  /** How long the caller can stay away. 0 for a caller that does not sleep. */
  sleepMs: number;
  attempt(): Promise<TryOutcome>;
  /** The record after a first try. Undefined if the call has not tried. */
  record: KeyRecord | undefined;
}

interface KnownInLine {
  ticket: string | undefined;
  number: number | undefined;
  place: Place | undefined;
  hasRow: boolean;
}

/** How long a call that finds the key free may take to get it. If it needs longer, another call was first. */
const TAKE_MS = 1000;
/** A caller asks again within this time after its held call has ended. Until then its row can be served. */
const PRESENT_MS = 2000;
/** How soon a caller that does not sleep asks again if its call is not held: the shortest and the longest pause. */
const ASK_AGAIN_MS = [1000, 3000] as const;

/**
 * Holds the call until its grant or its deadline, or puts its caller to sleep.
 * @throws HoldfastError LeaseHeld, LeaseLost, QueueFull, Throttled, Unavailable, OutcomeUnknown
 */
export async function holdOrSleep(lockCall: LockCall, asking: WaitingCaller): Promise<GrantOnRecord> {
  if (canSleep(lockCall.dependencies))
    return asking.sleepMs > 0 ? answerSleeper(lockCall, asking) : answerNonSleeper(lockCall, asking);
  return waitInLine(lockCall, joinOptionsOf(asking));
}

/**
 * A call without a first try joins at once, because the key had a line a moment ago. If the line has gone, it makes the
 * try then.
 */
const joinOptionsOf = ({ ticket, deadline, attempt, record }: WaitingCaller): JoinOptions => ({
  ...{ ticket, deadline, number: numberAfter(record, ticket) },
  ...(record === undefined && { attempt }),
});

/** The call of a caller that does not sleep, such as curl. */
async function answerNonSleeper(lockCall: LockCall, asking: WaitingCaller): Promise<GrantOnRecord> {
  const { dependencies, lock, call } = lockCall;
  const { record, deadline, ticket } = asking;
  const hasRoom = record !== undefined && lock.isMarked(record) && lock.roomAt(record) <= dependencies.clock.now();
  const waitState = hasRoom
    ? await waitStateFrom(lockCall, record, { ticket, number: numberAfter(record, ticket) })
    : undefined;
  const joining = { ...joinOptionsOf(asking), patience: waitState && patienceIn(waitState) };
  const holding = { reason: 'cannotSleep', deadline } as const;
  const held = await inSeat(dependencies, holding, { wait: () => waitInLine(lockCall, joining), call });
  if (held) return held.result;
  const returned = ticket === undefined ? undefined : await readCaller(lockCall, asking);
  const current = returned?.record ?? record ?? (await lock.read());
  const known = returned ?? newcomerTo(current);
  const currentState = await waitStateFrom(lockCall, current, known);
  return sleep(lockCall, asking, {
    record: current,
    waitState: currentState,
    expected: expectedTurn(currentState),
    known,
  });
}

async function answerSleeper(lockCall: LockCall, asking: WaitingCaller): Promise<GrantOnRecord> {
  const { dependencies, lock, call } = lockCall;
  const { deadline, attempt, ticket } = asking;
  const returned = asking.record ? undefined : await readCaller(lockCall, asking);
  let record = asking.record ?? returned?.record;
  if (record === undefined || returned?.mustTry) {
    const outcome = await attempt();
    if (outcome.won && ticket !== undefined) await leaveAfterGrant(lockCall, { granted: outcome, ticket });
    if (outcome.won) return outcome;
    record = outcome.record;
  }
  // A third-party client or TTL has removed the mark, which a live place otherwise keeps. Without a mark, others would
  // pass this caller.
  if (returned?.ticket !== undefined && !lock.isMarked(record))
    record = (await lock.restoreMark(record, returned.ticket)).record;
  const known = returned ?? newcomerTo(record);
  const waitState = await waitStateFrom(lockCall, record, known);
  const expected = expectedTurn(waitState);
  const joining: JoinOptions = {
    ...{ ticket: known.ticket, number: known.number, deadline, patience: patienceIn(waitState) },
    ...{ hasPlace: known.place !== undefined, hasRow: known.hasRow, presentUntil: deadline + PRESENT_MS },
    sleepIfFar: sleepIfFar(lockCall, asking),
  };
  if (lock.isMarked(record) && mayTake(waitState, expected))
    return waitInLine(lockCall, { ...joining, deadline: Math.min(deadline, waitState.now + TAKE_MS) });
  const reason = mustLeaveRoom(lock, waitState) ? undefined : holdReasonOf(waitState, expected);
  const held =
    reason && (await inSeat(dependencies, { reason, deadline }, { wait: () => waitInLine(lockCall, joining), call }));
  return held ? held.result : sleep(lockCall, asking, { record, waitState, expected, known });
}

/** A caller that has neither a row nor a place. */
const newcomerTo = (record: KeyRecord): KnownInLine => ({
  ...{ ticket: undefined, number: numberAfter(record), place: undefined, hasRow: false },
});

/**
 * The arrival number that a new caller will have.
 * @param record the record before it joins.
 * @returns undefined for a caller that has joined before
 */
function numberAfter(record: KeyRecord | undefined, ticket?: string): number | undefined {
  if (record === undefined || ticket !== undefined) return undefined;
  return record.mark === undefined ? 1 : (record.arrivals ?? 0) + 1;
}

interface CallerInLine extends KnownInLine {
  record: KeyRecord;
  /** Whether the record shows a grant of the request, or how a grant ended. Then a try gives the right answer. */
  mustTry?: boolean;
}

/**
 * Reads the record, and the rows of a caller that comes back.
 * @returns undefined if the rows are gone
 * @throws HoldfastError LeaseLost (`cancelled`), Throttled, Unavailable
 */
async function readCaller(
  { dependencies, lock, call }: LockCall,
  { ticket }: WaitingCaller,
): Promise<CallerInLine | undefined> {
  if (ticket === undefined) return readForNewcomer(lock);
  const { clock, clockSkewMs } = dependencies;
  const { key } = lock.request;
  const { record, rows } = await readOwn(dependencies, { key, ticket }, call);
  const own = rows.filter((row): row is WaitingCall => !isTask(row) && lock.isOwnRow(row));
  const flagged = own.find(({ cancelledAt }) => cancelledAt !== undefined);
  if (flagged) throw errorOfFlagged(flagged);
  const now = clock.now();
  const place = own.find(isPlace);
  const row = own.find((row) => !isPlace(row));
  if (!row && !(place && isLive(place, { now, clockSkewMs }))) return undefined;
  const number = place?.number ?? row?.number;
  return { record, ticket, number, place, hasRow: row !== undefined, mustTry: lock.ownGrant(record) !== undefined };
}

/**
 * Reads the record, and the row and the place of a ticket, in one request. What DynamoDB leaves out of its answer is
 * read afterwards.
 */
async function readOwn(dependencies: LeaseDependencies, { key, ticket }: { key: string; ticket: string }, call: Call) {
  const { dynamodb, table, waitersTable } = dependencies;
  const rowKeys = [placeKeyOf(ticket), ticket].map((sortKey) => ({ key, ticket: sortKey }));
  const keys = rowKeys.map((rowKey) => ({ key: text(rowKey.key), ticket: text(rowKey.ticket) }));
  const command = new BatchGetItemCommand({
    RequestItems: { [table]: { Keys: [{ key: text(key) }] }, [waitersTable]: { Keys: keys, ConsistentRead: true } },
  });
  const operation = reading(`tables ${table} and ${waitersTable}`);
  const { Responses: found = {}, UnprocessedKeys: left = {} } = await send(dynamodb, { command, operation }, call);
  const record = left[table] ? await readKey(dependencies, key, call) : parseKey(key, found[table]?.[0]);
  if (!left[waitersTable]) return { record, rows: (found[waitersTable] ?? []).map(parseWaiter) };
  const rows = await Promise.all(rowKeys.map((rowKey) => getWaiter(dependencies, rowKey, call)));
  return { record, rows: rows.filter((row) => row !== undefined) };
}

/**
 * Reads the record for a new caller.
 * @returns undefined if the call must try first: the key has no line, or the request has a grant
 */
async function readForNewcomer(lock: LockCall['lock']): Promise<CallerInLine | undefined> {
  const record = await lock.read();
  return lock.isMarked(record) && lock.ownGrant(record) === undefined ? { ...newcomerTo(record), record } : undefined;
}

async function waitStateFrom(
  lockCall: LockCall,
  record: KeyRecord,
  { ticket, number }: Pick<KnownInLine, 'ticket' | 'number'>,
): Promise<WaitState & LinePosition> {
  const { dependencies, lock, call } = lockCall;
  const { clock, clockSkewMs } = dependencies;
  // A sleeper that needs more room blocks those behind it. Otherwise lighter callers could keep the key from it for as
  // long as they come.
  const fits = (waiter: Waiter) => roomFreeFrom(record, newGrantOf(waiter), clockSkewMs) <= clock.now();
  const sought = { key: lock.request.key, granted: lock.ticketsOfHolders(record), record, ticket, number, fits };
  const position = await readPosition(dependencies, sought, call);
  const now = clock.now();
  const roomFrom = lock.roomAt(record);
  // If there is not even room for this call, the sleepers do not block it: the next end may make room for all.
  const isBlocked = roomFrom <= now && position.isBlocked === true;
  const freeSince = roomFrom <= now && !isBlocked ? Math.max(roomFrom, record.freedAt ?? 0) : undefined;
  return { ...position, isBlocked, record, now, freeSince };
}

/**
 * Whether the call must not be held, because a heavier caller sleeps before it and waits for room. A hand-off grants
 * only to waiters that are awake, so readers that are held one after the other would keep the key from a writer that
 * sleeps.
 */
const mustLeaveRoom = (lock: LockCall['lock'], { record: { entries }, isBlocked }: WaitState & LinePosition): boolean =>
  isBlocked === true && !lock.isExclusive && !entries.some(isExclusiveGrant);

/**
 * Whether the key is free, and all waiters before this caller sleep and have had time to come back:
 *
 *   the key came free                + patience for each sleeper before the caller
 *         |-- left to the sleepers ------|-- this caller may take the key
 */
const mayTake = ({ freeSince, position, asleep }: WaitState, { inMs }: Expected): boolean =>
  freeSince !== undefined && asleep >= position - 1 && inMs <= 0;

const patienceIn = ({ record, freeSince, asleep }: WaitState): JoinOptions['patience'] =>
  freeSince === undefined ? undefined : { freeSince, until: freeSince + patienceOf(record, asleep) };

/**
 * Takes a key that was left free for sleepers, if they have had time to come back. A call that does not wait needs
 * this: otherwise sleepers that have died would keep it out.
 * @throws HoldfastError as `holdOrSleep`, but not LeaseHeld
 */
export async function takeFromSleepers(
  lockCall: LockCall,
  { record, ticket }: { record: KeyRecord; ticket: string | undefined },
): Promise<TryOutcome> {
  const number = numberAfter(record, ticket);
  const waitState = await waitStateFrom(lockCall, record, { ticket, number });
  if (!mayTake(waitState, expectedTurn(waitState))) return { won: false, record };
  const joining = { ticket, deadline: waitState.now + TAKE_MS, number, patience: patienceIn(waitState) };
  try {
    return { won: true, ...(await waitInLine(lockCall, joining)) };
  } catch (error) {
    if (!(error instanceof HoldfastError) || error.code !== 'LeaseHeld') throw error;
    return { won: false, record: await lockCall.lock.read() };
  }
}

interface SeenInLine {
  record: KeyRecord;
  waitState: WaitState & LinePosition;
  expected: Expected;
  known: KnownInLine;
}

/** Puts the caller of a held call to sleep if its turn is far again. @returns undefined if the call stays held */
const sleepIfFar =
  (lockCall: LockCall, asking: WaitingCaller) => async (record: KeyRecord, held: JoinOptions & { ticket: string }) => {
    const { ticket, number } = held;
    const waitState = await waitStateFrom(lockCall, record, { ticket, number });
    const expected = expectedTurn(waitState);
    if (!isFarAgain(waitState, expected)) return undefined;
    const known = { ticket, number, place: undefined, hasRow: true };
    return sleep(lockCall, asking, { record, waitState, expected, known });
  };

/**
 * Puts the caller to sleep. Writes its place first, and then deletes its row, so that the line never looks empty.
 * @returns a grant that the request has received before its row was deleted
 * @throws HoldfastError LeaseHeld with the time of the sleep, LeaseLost, QueueFull, Throttled, Unavailable,
 * OutcomeUnknown
 */
async function sleep(
  lockCall: LockCall,
  asking: WaitingCaller,
  { waitState, expected, known, ...seen }: SeenInLine,
): Promise<GrantOnRecord> {
  const { dependencies, lock } = lockCall;
  const { ids } = dependencies;
  const [minMs, maxMs] = ASK_AGAIN_MS;
  const doesSleep = asking.sleepMs > 0;
  const sleepMs = doesSleep
    ? sleepMsOf(waitState, expected, { maxMs: asking.sleepMs, ids })
    : Math.round(minMs + (maxMs - minMs) * ids.random());
  const sleeping = { sleepMs, isNear: waitState.position <= EXACT_POSITIONS };
  const { ticket, record = seen.record } = await keepOnlyPlace(lockCall, known, sleeping);
  const withPlace = lockCall.hasPlace ? lockCall : { ...lockCall, hasPlace: true };
  const own = lock.ownGrant(record);
  if (typeof own === 'string') return refuseEnded(withPlace, { record, ticket, reason: own });
  const claimed = isAlive(own, dependencies.clock.now()) ? await claim(withPlace, { record, ticket }) : undefined;
  if (claimed) return claimed;
  // If the key came free while the place was written, the caller asks again at once.
  const hasRoom =
    waitState.freeSince === undefined && !waitState.isBlocked && lock.roomAt(record) <= dependencies.clock.now();
  const comeBackMs = hasRoom ? 0 : sleepMs;
  const { position, waiting } = waitState;
  const again = doesSleep ? {} : { retryAfterMs: comeBackMs };
  throw heldAt(lockCall, { record, ticket, position, waiting, comeBackMs, keptMs: keptMsOf(comeBackMs), ...again });
}

/**
 * Writes or extends the place of the caller, and deletes its row.
 * @returns the record as read after that, if the row was deleted, because a hand-off may have granted the key to the
 * row before it was deleted
 */
async function keepOnlyPlace(
  lockCall: LockCall,
  { ticket, number, place, hasRow }: KnownInLine,
  sleeping: { sleepMs: number; isNear: boolean },
): Promise<{ ticket: string; record?: KeyRecord }> {
  const { dependencies, lock, call } = lockCall;
  const { request } = lock;
  const { key } = request;
  if (ticket === undefined || (!place && !hasRow)) return joinAsleep(lockCall, { number, ...sleeping });
  const sleeper = { request, ticket, number, hasRow, ...sleeping };
  const isKept = place && !mustExtend(place, sleeping, dependencies.clock.now());
  const kept = isKept ? 'kept' : await extendPlace(dependencies, sleeper, call);
  if (typeof kept === 'object')
    return refuseCall({ ...lockCall, hasPlace: true }, { record: await lock.read(), ticket, reason: kept });
  if (kept === 'gone' && !hasRow) return joinAsleep(lockCall, { number, ...sleeping });
  if (kept === 'gone') await putPlace(dependencies, sleeper, call);
  if (!hasRow) return { ticket };
  const { flagged } = await deleteUnlessFlagged(dependencies, { key, ticket }, call);
  if (flagged) {
    await deleteWaiter(dependencies, { key, ticket: placeKeyOf(ticket) }, call);
    return refuseCall(lockCall, { record: await lock.read(), ticket, reason: flagged });
  }
  return { ticket, record: await lock.read() };
}
