import type { Call } from '../../aws/call.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import { expiredRowLimit, isInLine, isTask, readWaiters, type Waiter } from './waiters.ts';

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
  /** When a caller that sleeps is due at the latest. Null for everybody else. */
  dueAt: string | null;
}

/** A read of one key must not cost more with each waiter that joins. So a read counts up to this many waiters. */
const MAX_COUNTED = 100;

/**
 * The attributes that a list reads, without the task token. Only rows of callers have `keep_until`, and only those of callbacks `callback_id`. DynamoDB
 * cannot say whether an attribute exists without returning it, so this reads the id, and `waiterView` leaves it out.
 */
const LISTED = 'ticket, holder, execution, parked_at, deadline, keep_until, callback_id, cancelled_at';

interface Line {
  /** The key of the line. */
  key: string;
  /** The tickets of the waiters that have their grants already. */
  granted: ReadonlySet<string | undefined>;
}

interface Asked extends Line {
  /** How many waiters are listed, in the order of the line. */
  limit: number;
}

/**
 * Lists the tasks and callers in line, without those that have their grants. A caller between two calls is listed for as long as it may come back.
 * @returns `waiting`: the number of waiters, counted up to 100, or up to `limit` if that is more. The count stops at too many expired
 * rows
 */
export async function readWaiting(
  dependencies: LeaseDependencies,
  { key, granted, limit }: Asked,
  call: Call,
): Promise<{ waiting: number; waiters: WaiterView[] }> {
  const counted = Math.max(MAX_COUNTED, limit);
  const waiters: WaiterView[] = [];
  let waiting = 0;
  for await (const waiter of inLine(dependencies, { key, granted, counted }, call)) {
    if (waiters.length < limit) waiters.push(waiterView(waiter));
    if (++waiting === counted) break;
  }
  return { waiting, waiters };
}

/**
 * The position of a call that leaves the line and may ask again. Both counts end at 100, and after too many expired rows.
 * @returns `place`: the position, from 1. `waiting`: the number of waiters, without the waiter of the call. `isWhole`: whether it counted the whole line
 * @throws HoldfastError Throttled, Unavailable
 */
export async function readPosition(
  dependencies: LeaseDependencies,
  { key, granted, ticket: own }: Line & { ticket: string },
  call: Call,
): Promise<{ waiting: number; place: number; isWhole: boolean }> {
  let [waiting, position] = [0, 1];
  const rows = inLine(dependencies, { key, granted, counted: MAX_COUNTED }, call);
  for (;;) {
    const { value, done } = await rows.next();
    if (done) return { waiting, place: position, isWhole: value };
    if (value.ticket === own) continue;
    if (value.ticket < own) position++;
    if (++waiting === MAX_COUNTED) return { waiting, place: position, isWhole: false };
  }
}

async function* inLine(
  dependencies: LeaseDependencies,
  { key, granted, counted }: Line & { counted: number },
  call: Call,
): AsyncGenerator<Waiter, boolean, void> {
  // The query reads one row more, because the ticket of the holder may be among the rows.
  const query = { key, firstPage: counted + 1, ProjectionExpression: LISTED };
  const now = dependencies.clock.now();
  const reachesLimit = expiredRowLimit(now);
  for await (const waiter of readWaiters(dependencies, query, call)) {
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
  const { ticket, holder, execution = null, parkedAt, deadline } = row;
  const [parkedIso = '', deadlineIso = ''] = [parkedAt, deadline].map((at) => new Date(at).toISOString());
  return {
    kind: kindOfWaiter(row),
    ticket,
    holder,
    execution,
    parkedAt: parkedIso,
    deadline: deadlineIso,
    dueAt: null,
  };
}
