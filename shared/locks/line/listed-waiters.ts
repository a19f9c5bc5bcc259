import type { Call } from '../../aws/call.ts';
import type { Replace } from '../calls/types.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import type { KeyRecord } from '../record/record.ts';
import { readInOrder } from './moved-row.ts';
import { EXACT_POSITIONS, estimatedPosition, isExpected } from './place.ts';
import { AFTER_ALL_ROWS, expiredRowLimit, isInLine, isPlace, isTask, type Waiter } from './waiters.ts';

/** A waiter as every caller may see it: without task token, callback id and request id. */
export interface WaiterView {
  /**
   * `task`: of Step Functions. `callback`: of a durable function. `caller`: a call of acquire, or its sleeping caller.
   */
  kind: 'task' | 'callback' | 'caller';
  ticket: string;
  holder: string;
  execution: string | null;
  parkedAt: string;
  deadline: string;
  /** When a caller that sleeps is due at the latest. Null for all other waiters. */
  dueAt: string | null;
  /**
   * The operator that has moved the waiter to the front, or null if the operator was not authenticated. Absent if
   * no operator has moved it.
   */
  movedBy?: string | null;
  /** What the request replaces. Absent if it replaces nothing. */
  replace?: Replace;
}

/** How many waiters a read counts at most, because its cost must not grow with the line. */
const MAX_COUNTED = 100;

/**
 * The attributes that a list reads: no secrets, except for `callback_id`, which shows that a row is a callback, and
 * which `waiterView` leaves out. DynamoDB cannot say that an attribute exists without returning it.
 */
const LISTED =
  'ticket, holder, execution, parked_at, deadline, keep_until, callback_id, cancelled_at, awake_at, weight, #limit, replaces';

interface LineOfKey extends Pick<KeyRecord, 'key' | 'moved'> {
  /** The tickets of the waiters that have their grants. */
  granted: ReadonlySet<string | undefined>;
}

interface AskedLine extends LineOfKey {
  limit: number;
  movedBy?: string | undefined;
}

/**
 * Lists the tasks and callers in line, without those that have their grants. A caller between two calls is listed for
 * as long as it may come back.
 * @returns `waiting`: the number of waiters, counted up to 100 or `limit`, whichever is more. Too many expired rows
 * stop the count
 */
export async function readWaiting(
  dependencies: LeaseDependencies,
  { limit, ...line }: AskedLine,
  call: Call,
): Promise<{ waiting: number; waiters: WaiterView[] }> {
  const maxCounted = Math.max(MAX_COUNTED, limit);
  const waiters: WaiterView[] = [];
  let waiting = 0;
  for await (const waiter of inLine(dependencies, { ...line, maxCounted }, call)) {
    // A caller that comes back has both a row and a place. Rows sort first.
    if (isPlace(waiter) && waiters.some(({ ticket }) => ticket === waiter.ticket)) continue;
    if (waiters.length < limit)
      waiters.push({
        ...waiterView(waiter),
        ...(waiter.ticket === line.moved && { movedBy: line.movedBy ?? null }),
      });
    if (++waiting === maxCounted) break;
  }
  return { waiting, waiters };
}

export interface LinePosition {
  /** The position from 1: exact up to 20, and behind that an estimate by the numbers of arrivals. */
  position: number;
  /** How many callers before this one sleep, and are not late. */
  asleep: number;
  /** Whether one of these sleepers does not fit beside the holders. Then no caller behind it may take the free room. */
  isBlocked?: boolean;
  /** The number of waiters, without the caller. */
  waiting: number;
  /** Whether the whole line was counted. */
  isWhole: boolean;
}

interface ListedLine extends Pick<LineOfKey, 'granted'> {
  record: KeyRecord;
  /** The ticket of the call. Undefined for a call that has not joined, and so comes after all others. */
  ticket: string | undefined;
  number: number | undefined;
  /** Whether the caller of a row could have the key now. */
  fits?: (waiter: Waiter) => boolean;
}

/** How many rows are enough to count the position of most callers near the front. */
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
  const estimate = estimatedPosition(record, number);
  const inLineByHints = Math.max(0, (record.arrivals ?? 0) - (record.lineOut ?? 0));
  const isMoved = moved === ticket;
  if (isMoved) return { position: 1, asleep: 0, waiting: Math.max(0, inLineByHints - 1), isWhole: false };
  if (estimate > EXACT_POSITIONS + 1)
    return {
      position: estimate,
      asleep: estimate - 1,
      waiting: Math.max(inLineByHints - 1, estimate - 1),
      isWhole: false,
    };
  const rows = inLine(dependencies, { key, moved, granted, maxCounted: ROWS_AT_FRONT }, call);
  const [before, others] = [new Set<string>(), new Set<string>()];
  let [asleep, isBlocked] = [0, false];
  for (let [read, hasReadAllBefore] = [0, false]; ; read++) {
    const step = await rows.next();
    const position = before.size + 1;
    if (step.done) return { position, asleep, isBlocked, waiting: others.size, isWhole: step.value };
    const row = step.value;
    const isMovedRow = row.ticket === moved;
    // Places sort last and by arrival. So after a place behind this caller, all waiters before it were read.
    hasReadAllBefore ||= isPlace(row) && row.ticket >= ticket && !isMovedRow;
    if (row.ticket !== ticket) others.add(row.ticket);
    const isExpectedHere = !isPlace(row) || isExpected(row, now);
    if ((row.ticket < ticket || isMovedRow) && isExpectedHere && !before.has(row.ticket)) {
      before.add(row.ticket);
      if (isPlace(row)) asleep++;
      // A moved sleeper is served before all others, so no other caller may take the key.
      isBlocked ||= isPlace(row) && (isMovedRow || !fits(row));
    }
    if (read < ROWS_AT_FRONT) continue;
    const waiting = Math.max(others.size, inLineByHints - 1);
    if (hasReadAllBefore) return { position, asleep, isBlocked, waiting, isWhole: false };
    const least = Math.max(position, estimate);
    return { position: least, asleep: Math.max(asleep, least - 1), isBlocked, waiting, isWhole: false };
  }
}

/** Reads the rows that are in line, without those that have their grants. @returns whether the whole line was read */
async function* inLine(
  dependencies: LeaseDependencies,
  { key, moved, granted, maxCounted }: LineOfKey & { maxCounted: number },
  call: Call,
): AsyncGenerator<Waiter, boolean, void> {
  // One row more, because the row of the holder may still be there.
  const names = { ExpressionAttributeNames: { '#limit': 'limit' } };
  const query = { key, moved, firstPage: maxCounted + 1, ProjectionExpression: LISTED, ...names };
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
  // A place has the deadline 0. Its caller may come back until the place has expired.
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
