import type { Call } from '../../aws/call.ts';
import type { Replace } from '../calls/types.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import type { KeyRecord } from '../record/record.ts';
import { readInOrder } from './moved-row.ts';
import { EXACT, estimatedPlace, isExpected } from './place.ts';
import { AFTER_ALL_ROWS, expiredRowLimit, isInLine, isPlace, isTask, type Waiter } from './waiters.ts';

/** The fields of a waiter that every caller may see. Task token, callback id and request id are not among them. */
export interface WaiterView {
  /** A parked task, the callback of a durable function, or a call of acquire that waits. */
  kind: 'task' | 'callback' | 'caller';
  ticket: string;
  holder: string;
  execution: string | null;
  /** When the wait began. */
  parkedAt: string;
  /** When the wait ends. */
  deadline: string;
  /** When a caller that sleeps is due at the latest. Null for all other waiters. */
  dueAt: string | null;
  /** The operator that has moved it to the front, or null if the operator was not authenticated. Absent if none has. */
  movedBy?: string | null;
  /** What its request replaces. Only of a waiter that replaces others. */
  replace?: Replace;
}

/** A read of one key must not cost more with each waiter that joins. So a read counts up to this many waiters. */
const MAX_COUNTED = 100;

/**
 * The attributes that a list reads, without the task token. Only rows of callers have `keep_until`, and only those of callbacks `callback_id`. DynamoDB
 * cannot say whether an attribute exists without returning it, so this reads the id, and `waiterView` leaves it out.
 */
const LISTED =
  'ticket, holder, execution, parked_at, deadline, keep_until, callback_id, cancelled_at, awake_at, weight, #limit, replaces';

interface LineOfKey extends Pick<KeyRecord, 'key' | 'moved'> {
  /** The tickets of the waiters that have their grants already. */
  granted: ReadonlySet<string | undefined>;
}

interface AskedLine extends LineOfKey {
  /** How many waiters are listed, in the order of the line. */
  limit: number;
  movedBy?: string | undefined;
}

/**
 * Lists the tasks and callers in line, without those that have their grants. A caller between two calls is listed for as long as it may come back.
 * @returns `waiting`: the number of waiters, counted up to 100, or up to `limit` if that is more. The count stops at too many expired
 * rows
 */
export async function readWaiting(
  dependencies: LeaseDependencies,
  { limit, ...line }: AskedLine,
  call: Call,
): Promise<{ waiting: number; waiters: WaiterView[] }> {
  const counted = Math.max(MAX_COUNTED, limit);
  const waiters: WaiterView[] = [];
  let waiting = 0;
  for await (const waiter of inLine(dependencies, { ...line, counted }, call)) {
    // A caller that comes back has both a row and a place for a moment.
    if (isPlace(waiter) && waiters.some(({ ticket }) => ticket === waiter.ticket)) continue;
    if (waiters.length < limit)
      waiters.push({
        ...waiterView(waiter),
        ...(waiter.ticket === line.moved && { movedBy: line.movedBy ?? null }),
      });
    if (++waiting === counted) break;
  }
  return { waiting, waiters };
}

/** Where a caller stands in line. */
export interface LinePosition {
  /** From 1. Exact up to 20. Behind that, an estimate by the numbers of arrivals. */
  place: number;
  /** How many callers before it sleep, and are not late. */
  asleep: number;
  /** Whether one of these does not fit beside the holders, so that no caller behind it takes the free room. */
  isBlocked?: boolean;
  /** The number of waiters, without the caller. */
  waiting: number;
  /** Whether the whole line was counted. */
  isWhole: boolean;
}

interface ListedLine extends Pick<LineOfKey, 'granted'> {
  record: KeyRecord;
  /** Undefined for a call that has no ticket yet, and so comes after all others. */
  ticket: string | undefined;
  number: number | undefined;
  /** Whether the caller of a row could have the key now. */
  fits?: (waiter: Waiter) => boolean;
}

/** This many rows show the position of most callers that are near the front. */
const ROWS_AT_FRONT = 40;

/**
 * The position of a call in line, or of one that is about to join.
 * @throws HoldfastError Throttled, Unavailable
 */
export async function readPosition(
  dependencies: LeaseDependencies,
  { granted, record, ticket = AFTER_ALL_ROWS, number, fits = () => true }: ListedLine,
  call: Call,
): Promise<LinePosition> {
  const now = dependencies.clock.now();
  const { key, moved } = record;
  const estimate = estimatedPlace(record, number);
  const inLineByHints = Math.max(0, (record.arrivals ?? 0) - (record.lineOut ?? 0));
  const isMoved = moved === ticket;
  if (isMoved) return { place: 1, asleep: 0, waiting: Math.max(0, inLineByHints - 1), isWhole: false };
  if (estimate > EXACT + 1)
    return {
      place: estimate,
      asleep: estimate - 1,
      waiting: Math.max(inLineByHints - 1, estimate - 1),
      isWhole: false,
    };
  const rows = inLine(dependencies, { key, moved, granted, counted: ROWS_AT_FRONT }, call);
  const [before, others] = [new Set<string>(), new Set<string>()];
  let [asleep, isBlocked] = [0, false];
  for (let [read, isCounted] = [0, false]; ; read++) {
    const { value: row, done } = await rows.next();
    const place = before.size + 1;
    if (done) return { place, asleep, isBlocked, waiting: others.size, isWhole: row };
    // Places sort last, so a page that shows one has shown all waiters that are awake.
    const isFirst = row.ticket === moved;
    isCounted ||= isPlace(row) && row.ticket >= ticket && !isFirst;
    if (row.ticket !== ticket) others.add(row.ticket);
    const isExpectedHere = !isPlace(row) || isExpected(row, now);
    if ((row.ticket < ticket || isFirst) && isExpectedHere && !before.has(row.ticket)) {
      before.add(row.ticket);
      if (isPlace(row)) asleep++;
      // A caller that an operator has moved is served first, even if it sleeps.
      isBlocked ||= isPlace(row) && (isFirst || !fits(row));
    }
    if (read < ROWS_AT_FRONT) continue;
    const waiting = Math.max(others.size, inLineByHints - 1);
    if (isCounted) return { place, asleep, isBlocked, waiting, isWhole: false };
    const least = Math.max(place, estimate);
    return { place: least, asleep: Math.max(asleep, least - 1), isBlocked, waiting, isWhole: false };
  }
}

async function* inLine(
  dependencies: LeaseDependencies,
  { key, moved, granted, counted }: LineOfKey & { counted: number },
  call: Call,
): AsyncGenerator<Waiter, boolean, void> {
  // The query reads one row more, because the ticket of the holder may be among the rows.
  const names = { ExpressionAttributeNames: { '#limit': 'limit' } };
  const query = { key, moved, firstPage: counted + 1, ProjectionExpression: LISTED, ...names };
  const now = dependencies.clock.now();
  const reachesLimit = expiredRowLimit(now);
  for await (const waiter of readInOrder(dependencies, query, call)) {
    if (!granted.has(waiter.ticket) && isInLine(waiter, now)) yield waiter;
    if (reachesLimit(waiter)) return false;
  }
  return true;
}

function kindOfWaiter(row: Waiter): WaiterView['kind'] {
  if (row.callbackId !== undefined) return 'callback';
  return isTask(row) ? 'task' : 'caller';
}

function waiterView(row: Waiter): WaiterView {
  const { ticket, holder, execution = null, parkedAt, replace } = row;
  // A place has no deadline, and its caller may come back for as long as the place is kept.
  const endsAt = isPlace(row) ? row.keepUntil : row.deadline;
  const [parkedIso = '', deadlineIso = ''] = [parkedAt, endsAt].map((at) => new Date(at).toISOString());
  return {
    kind: kindOfWaiter(row),
    ticket,
    holder,
    execution,
    parkedAt: parkedIso,
    deadline: deadlineIso,
    dueAt: isPlace(row) ? new Date(row.awakeAt).toISOString() : null,
    ...(replace !== undefined && { replace }),
  };
}
