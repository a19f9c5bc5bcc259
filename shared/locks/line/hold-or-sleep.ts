import { BatchGetItemCommand } from '@aws-sdk/client-dynamodb';
import { text } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import { reading, send } from '../../aws/send.ts';
import { HoldfastError } from '../../errors.ts';
import { canSleep, type LeaseDependencies } from '../dependencies.ts';
import { isAloneIn, type KeyRecord, parseKey } from '../record/record.ts';
import { readKey } from '../record/requests.ts';
import { type Granted, roomAt, type TryOutcome } from '../record/room.ts';
import { claim, heldAt, isAlive, leaveAfterGrant, refuseCall, refuseEnded } from './claim.ts';
import { type Expected, expectedTurn, hasMovedAway, heldFor, patienceOf, sleepFor, type Turn } from './expected.ts';
import { inSlot } from './held-calls.ts';
import { type Joining, joinAsleep } from './join.ts';
import { type LinePosition, readPosition } from './listed-waiters.ts';
import type { LockCall } from './lock.ts';
import { newGrantOf } from './next.ts';
import { EXACT, extendPlace, isLive, isTooShort, keptMsOf, type Place, putPlace } from './place.ts';
import { waitInLine } from './wait.ts';
import {
  deleteWaiter,
  getWaiter,
  isPlace,
  isTask,
  parseWaiter,
  placeOf,
  type Waiter,
  type WaitingCall,
  withdrawn,
} from './waiters.ts';
import { deleteUnlessWithdrawn } from './waiting-calls.ts';

// Holds a call that wants to wait in line if its turn is near. Otherwise ends the call at once, and its caller sleeps (docs/protocols/places.md).

/** A caller of acquire that wants to wait in line. */
export interface WaitingCaller {
  ticket: string | undefined;
  /** When the call stops waiting, in epoch milliseconds. */
  deadline: number;
  /** How long the caller can stay away. 0 for a caller that does not sleep. */
  sleepMs: number;
  /** One try, without waiting. */
  attempt(): Promise<TryOutcome>;
  /** The record after a first try. Undefined if the call has not tried. */
  record: KeyRecord | undefined;
}

/** What a caller has in line. */
interface KnownInLine {
  ticket: string | undefined;
  number: number | undefined;
  place: Place | undefined;
  hasRow: boolean;
}

/** A call that finds the key free needs no longer than this to take the key, unless another call takes it first. */
const TAKE_MS = 1000;
/** After its call was held to the end, a caller asks again within this time. So its row counts as present until then. */
const PRESENT_MS = 2000;
/** How soon a caller that does not sleep asks again if its call is not held: the shortest and the longest pause. */
const ASK_AGAIN_MS = [1000, 3000] as const;

/**
 * Holds the call until its grant or its deadline, or puts its caller to sleep.
 * @throws HoldfastError LeaseHeld, LeaseLost, QueueFull, Throttled, Unavailable, OutcomeUnknown
 */
export async function holdOrSleep(at: LockCall, asking: WaitingCaller): Promise<Granted> {
  if (canSleep(at.dependencies)) return asking.sleepMs > 0 ? ofSleeper(at, asking) : ofOther(at, asking);
  return waitInLine(at, joiningOf(asking));
}

/** A call without a first try joins at once, because the key had a line a moment ago, and makes the try if the line has gone. */
const joiningOf = ({ ticket, deadline, attempt, record }: WaitingCaller): Joining => ({
  ...{ ticket, deadline, number: numberAfter(record, ticket) },
  ...(record === undefined && { attempt }),
});

/** The call of a caller that does not sleep, such as curl. */
async function ofOther(at: LockCall, asking: WaitingCaller): Promise<Granted> {
  const { dependencies, lock, call } = at;
  const { record, deadline, ticket } = asking;
  const isFree = record !== undefined && lock.isMarked(record) && lock.freeAt(record) <= dependencies.clock.now();
  const turn = isFree ? await turnFrom(at, record, { ticket, number: numberAfter(record, ticket) }) : undefined;
  const joining = { ...joiningOf(asking), patience: turn && patienceIn(turn) };
  const holding = { heldFor: 'plain', deadline } as const;
  const got = await inSlot(dependencies, holding, { wait: () => waitInLine(at, joining), call });
  if (got) return got.result;
  const back = ticket === undefined ? undefined : await readBack(at, asking);
  const current = back?.record ?? record ?? (await lock.read());
  const known = back ?? newTo(current);
  const ofNow = await turnFrom(at, current, known);
  return sleep(at, asking, { record: current, turn: ofNow, expected: expectedTurn(ofNow), known });
}

async function ofSleeper(at: LockCall, asking: WaitingCaller): Promise<Granted> {
  const { dependencies, lock, call } = at;
  const { deadline, attempt, ticket } = asking;
  const back = asking.record ? undefined : await readBack(at, asking);
  let record = asking.record ?? back?.record;
  if (record === undefined || back?.mustTry) {
    const outcome = await attempt();
    if (outcome.won && ticket !== undefined) await leaveAfterGrant(at, { granted: outcome, ticket });
    if (outcome.won) return outcome;
    record = outcome.record;
  }
  // Only a third-party client or TTL removes a mark over a live place. Without a mark, others would pass this caller.
  if (back?.ticket !== undefined && !lock.isMarked(record)) record = (await lock.markBack(record, back.ticket)).record;
  const known = back ?? newTo(record);
  const turn = await turnFrom(at, record, known);
  const expected = expectedTurn(turn);
  const joining: Joining = {
    ...{ ticket: known.ticket, number: known.number, deadline, patience: patienceIn(turn) },
    ...{ hasPlace: known.place !== undefined, hasRow: known.hasRow, presentUntil: deadline + PRESENT_MS },
    sleepIfFar: sleepIfFar(at, asking),
  };
  if (lock.isMarked(record) && mayTake(turn, expected))
    return waitInLine(at, { ...joining, deadline: Math.min(deadline, turn.now + TAKE_MS) });
  const reason = leavesRoom(lock, turn) ? undefined : heldFor(turn, expected);
  const got =
    reason &&
    (await inSlot(dependencies, { heldFor: reason, deadline }, { wait: () => waitInLine(at, joining), call }));
  return got ? got.result : sleep(at, asking, { record, turn, expected, known });
}

/** A caller that has neither a row nor a place. */
const newTo = (record: KeyRecord): KnownInLine => ({
  ...{ ticket: undefined, number: numberAfter(record), place: undefined, hasRow: false },
});

/** The number that the arrival of a new caller will have. A caller with a ticket has arrived before. @param record from before that arrival */
function numberAfter(record: KeyRecord | undefined, ticket?: string): number | undefined {
  if (record === undefined || ticket !== undefined) return undefined;
  return record.mark === undefined ? 1 : (record.arrivals ?? 0) + 1;
}

interface Back extends KnownInLine {
  record: KeyRecord;
  /** Whether the record shows a grant of the request, or how a grant ended. A try then gives the right answer. */
  mustTry?: boolean;
}

/**
 * Reads the record and the rows of a caller that comes back.
 * @returns undefined if the rows are gone
 * @throws HoldfastError LeaseLost (`cancelled`), Throttled, Unavailable
 */
async function readBack({ dependencies, lock, call }: LockCall, { ticket }: WaitingCaller): Promise<Back | undefined> {
  if (ticket === undefined) return readLine(lock);
  const { clock, clockSkewMs } = dependencies;
  const { key } = lock.asked;
  const { record, rows } = await readOwn(dependencies, { key, ticket }, call);
  const own = rows.filter((one): one is WaitingCall => !isTask(one) && lock.isOwnRow(one));
  const flagged = own.find(({ cancelledAt }) => cancelledAt !== undefined);
  if (flagged) throw withdrawn(flagged);
  const now = clock.now();
  const place = own.find(isPlace);
  const row = own.find((one) => !isPlace(one));
  if (!row && !(place && isLive(place, { now, clockSkewMs }))) return undefined;
  const number = place?.number ?? row?.number;
  return { record, ticket, number, place, hasRow: row !== undefined, mustTry: lock.own(record) !== undefined };
}

/** Reads the record, and the row and the place of a ticket. DynamoDB may leave out rows, which are then read one by one. */
async function readOwn(dependencies: LeaseDependencies, { key, ticket }: { key: string; ticket: string }, call: Call) {
  const { dynamodb, table, waitersTable } = dependencies;
  const names = [placeOf(ticket), ticket].map((name) => ({ key, ticket: name }));
  const keys = names.map((name) => ({ key: text(name.key), ticket: text(name.ticket) }));
  const command = new BatchGetItemCommand({
    RequestItems: { [table]: { Keys: [{ key: text(key) }] }, [waitersTable]: { Keys: keys, ConsistentRead: true } },
  });
  const operation = reading(`tables ${table} and ${waitersTable}`);
  const { Responses: found = {}, UnprocessedKeys: left = {} } = await send(dynamodb, { command, operation }, call);
  const record = left[table] ? await readKey(dependencies, key, call) : parseKey(key, found[table]?.[0]);
  if (!left[waitersTable]) return { record, rows: (found[waitersTable] ?? []).map(parseWaiter) };
  const rows = await Promise.all(names.map((name) => getWaiter(dependencies, name, call)));
  return { record, rows: rows.filter((row) => row !== undefined) };
}

/** The same for a new caller, who has no rows. @returns undefined if the key has no line, or the request has a grant: then a try comes first */
async function readLine(lock: LockCall['lock']): Promise<Back | undefined> {
  const record = await lock.read();
  return lock.isMarked(record) && lock.own(record) === undefined ? { ...newTo(record), record } : undefined;
}

async function turnFrom(
  at: LockCall,
  record: KeyRecord,
  { ticket, number }: Pick<KnownInLine, 'ticket' | 'number'>,
): Promise<Turn & LinePosition> {
  const { dependencies, lock, call } = at;
  const { clock, clockSkewMs } = dependencies;
  // A caller that has slept and waits for more room would otherwise never have it while lighter ones come.
  const fits = (waiter: Waiter) => roomAt(record, newGrantOf(waiter), clockSkewMs) <= clock.now();
  const asked = { key: lock.asked.key, granted: lock.granted(record), record, ticket, number, fits };
  const position = await readPosition(dependencies, asked, call);
  const now = clock.now();
  const freeAt = lock.freeAt(record);
  // Without room for this call, the key may come free for all of them.
  const isBlocked = freeAt <= now && position.isBlocked === true;
  const freeSince = freeAt <= now && !isBlocked ? Math.max(freeAt, record.freedAt ?? 0) : undefined;
  return { ...position, isBlocked, record, now, freeSince };
}

/**
 * Whether the call must not be held, because a writer that sleeps before it waits for room. A hand-off grants only to waiters that are awake, so
 * readers that are held one after the other would keep the key from the writer.
 */
const leavesRoom = (lock: LockCall['lock'], { record: { entries }, isBlocked }: Turn & LinePosition): boolean =>
  isBlocked === true && !lock.isAlone && !entries.some(isAloneIn);

/** Whether the key is free, and all waiters before this caller sleep and have had time to come back. */
const mayTake = ({ freeSince, place, asleep }: Turn, { inMs }: Expected): boolean =>
  freeSince !== undefined && asleep >= place - 1 && inMs <= 0;

const patienceIn = ({ record, freeSince, asleep }: Turn): Joining['patience'] =>
  freeSince === undefined ? undefined : { freeSince, until: freeSince + patienceOf(record, asleep) };

/**
 * Takes a key that was left free for callers that sleep, if they have had time to come back. For a call that does not wait, or whose caller does not
 * sleep. Otherwise sleepers that do not come back would keep such a caller out.
 * @throws HoldfastError as `holdOrSleep`, but not LeaseHeld
 */
export async function takeFromSleepers(
  at: LockCall,
  { record, ticket }: { record: KeyRecord; ticket: string | undefined },
): Promise<TryOutcome> {
  const number = numberAfter(record, ticket);
  const turn = await turnFrom(at, record, { ticket, number });
  if (!mayTake(turn, expectedTurn(turn))) return { won: false, record };
  const joining = { ticket, deadline: turn.now + TAKE_MS, number, patience: patienceIn(turn) };
  try {
    return { won: true, ...(await waitInLine(at, joining)) };
  } catch (error) {
    if (!(error instanceof HoldfastError) || error.code !== 'LeaseHeld') throw error;
    return { won: false, record: await at.lock.read() };
  }
}

interface SeenInLine {
  record: KeyRecord;
  turn: Turn & LinePosition;
  expected: Expected;
  known: KnownInLine;
}

/** Puts the caller of a held call to sleep if its turn has moved away. */
const sleepIfFar =
  (at: LockCall, asking: WaitingCaller) => async (record: KeyRecord, held: Joining & { ticket: string }) => {
    const { ticket, number } = held;
    const turn = await turnFrom(at, record, { ticket, number });
    const expected = expectedTurn(turn);
    if (!hasMovedAway(turn, expected)) return undefined;
    const known = { ticket, number, place: undefined, hasRow: true };
    return sleep(at, asking, { record, turn, expected, known });
  };

/**
 * Puts the caller to sleep: puts its place first, and then deletes its row, so that the line never looks empty.
 * @returns a grant that the request has received meanwhile
 * @throws HoldfastError LeaseHeld with the time of the sleep, LeaseLost, QueueFull, Throttled, Unavailable, OutcomeUnknown
 */
async function sleep(
  at: LockCall,
  asking: WaitingCaller,
  { turn, expected, known, ...seen }: SeenInLine,
): Promise<Granted> {
  const { dependencies, lock } = at;
  const { ids } = dependencies;
  const [least, most] = ASK_AGAIN_MS;
  const doesSleep = asking.sleepMs > 0;
  const sleepMs = doesSleep
    ? sleepFor(turn, expected, { mostMs: asking.sleepMs, ids })
    : Math.round(least + (most - least) * ids.random());
  const sleeping = { sleepMs, isNear: turn.place <= EXACT };
  const laid = await layDown(at, known, sleeping);
  const { ticket, record = seen.record } = laid;
  const slept = at.hasPlace ? at : { ...at, hasPlace: true };
  const own = lock.own(record);
  if (typeof own === 'string') return refuseEnded(slept, { record, ticket, reason: own });
  const claimed = isAlive(own, dependencies.clock.now()) ? await claim(slept, { record, ticket }) : undefined;
  if (claimed) return claimed;
  // If the key came free meanwhile, the caller asks again at once.
  const isFree = turn.freeSince === undefined && !turn.isBlocked && lock.freeAt(record) <= dependencies.clock.now();
  const comeBackMs = isFree ? 0 : sleepMs;
  const { place, waiting } = turn;
  const again = doesSleep ? {} : { retryAfterMs: comeBackMs };
  throw heldAt(at, { record, ticket, place, waiting, comeBackMs, keptMs: keptMsOf(comeBackMs), ...again });
}

/** Leaves only the place of the caller in line, and deletes its row. @returns with the record as read afterwards, if a row was deleted */
async function layDown(
  at: LockCall,
  { ticket, number, place, hasRow }: KnownInLine,
  sleeping: { sleepMs: number; isNear: boolean },
): Promise<{ ticket: string; record?: KeyRecord }> {
  const { dependencies, lock, call } = at;
  const { asked } = lock;
  const { key } = asked;
  if (ticket === undefined || (!place && !hasRow)) return joinAsleep(at, { number, ...sleeping });
  const sleeper = { asked, ticket, number, hasRow, ...sleeping };
  const isKept = place && !isTooShort(place, sleeping, dependencies.clock.now());
  const kept = isKept ? 'kept' : await extendPlace(dependencies, sleeper, call);
  if (typeof kept === 'object')
    return refuseCall({ ...at, hasPlace: true }, { record: await lock.read(), ticket, reason: kept });
  if (kept === 'gone' && !hasRow) return joinAsleep(at, { number, ...sleeping });
  if (kept === 'gone') await putPlace(dependencies, sleeper, call);
  if (!hasRow) return { ticket };
  const { cancelled } = await deleteUnlessWithdrawn(dependencies, { key, ticket }, call);
  if (cancelled) {
    await deleteWaiter(dependencies, { key, ticket: placeOf(ticket) }, call);
    return refuseCall(at, { record: await lock.read(), ticket, reason: cancelled });
  }
  return { ticket, record: await lock.read() };
}
