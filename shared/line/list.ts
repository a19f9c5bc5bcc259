import type { Call } from '../aws/call.ts';
import type { LeaseDependencies } from './dependencies.ts';
import { expiredRowLimit, isTask, isWaiting, readWaiters, type Waiter } from './waiters.ts';

/** What every caller may see of a task or a call in line. Neither the token nor the request id is in it. */
export interface WaiterView {
  /** A parked task, or a call of acquire that waits. */
  kind: 'task' | 'caller';
  ticket: string;
  holder: string;
  execution: string | null;
  /** When its wait began. */
  parkedAt: string;
  /** When it stops waiting. */
  deadline: string;
}

/** A read of one key must not cost more with each one that joins. So it does not count longer lines to their end. */
const MAX_COUNTED = 100;

/** The token is not among them. `keep_until`, which only rows of callers have, shows whether there is one. */
const LISTED = 'ticket, holder, execution, parked_at, deadline, keep_until, cancelled_at';

interface Line {
  /** The key of the line. */
  key: string;
  /** The tickets of those that have their grants already. */
  granted: ReadonlySet<string | undefined>;
}

interface Asked extends Line {
  /** How many are listed, the oldest first. */
  limit: number;
}

/**
 * Lists the tasks and callers in line, without those that have their grants.
 * @returns `waiting`: how many there are, counted up to 100, or up to `limit` where that is more; no more than those in front of too many expired
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
 * @returns `place`: how many are before it, and one. `waiting`: how many wait, itself left out
 * @throws HoldfastError Throttled, Unavailable
 */
export async function readPosition(
  dependencies: LeaseDependencies,
  { key, granted, ticket: own }: Line & { ticket: string },
  call: Call,
): Promise<{ waiting: number; place: number }> {
  let [waiting, position] = [0, 1];
  for await (const { ticket } of inLine(dependencies, { key, granted, counted: MAX_COUNTED }, call)) {
    if (ticket === own) continue;
    if (ticket < own) position++;
    if (++waiting === MAX_COUNTED) break;
  }
  return { waiting, place: position };
}

async function* inLine(
  dependencies: LeaseDependencies,
  { key, granted, counted }: Line & { counted: number },
  call: Call,
): AsyncGenerator<Waiter> {
  // It reads one more, because the ticket of the holder may be among them.
  const query = { key, firstPage: counted + 1, ProjectionExpression: LISTED };
  const now = dependencies.clock.now();
  const reachesLimit = expiredRowLimit(now);
  for await (const waiter of readWaiters(dependencies, query, call)) {
    if (!granted.has(waiter.ticket) && isWaiting(waiter, now)) yield waiter;
    if (reachesLimit(waiter)) return;
  }
}

function waiterView(row: Waiter): WaiterView {
  const { ticket, holder, execution = null, parkedAt, deadline } = row;
  const [parkedIso = '', deadlineIso = ''] = [parkedAt, deadline].map((at) => new Date(at).toISOString());
  return {
    kind: isTask(row) ? 'task' : 'caller',
    ticket,
    holder,
    execution,
    parkedAt: parkedIso,
    deadline: deadlineIso,
  };
}
