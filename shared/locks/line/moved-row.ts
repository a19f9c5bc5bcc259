import type { Call } from '../../aws/call.ts';
import { canSleep, type LeaseDependencies } from '../dependencies.ts';
import type { KeyRecord } from '../record/record.ts';
import { isExpected } from './place.ts';
import {
  getWaiter,
  isOverdue,
  isPlace,
  isTask,
  placeKeyOf,
  readWaiters,
  type Waiter,
  type WaiterKey,
  waiterKey,
} from './waiters.ts';

type Query = Parameters<typeof readWaiters>[1] & Pick<KeyRecord, 'moved'>;

/**
 * Reads the rows of a line in the order in which they are served: first the waiter that an operator has moved, then the
 * others by arrival (docs/protocols/queue.md#run-next).
 * @throws HoldfastError Throttled, Unavailable
 */
export async function* readInOrder(
  dependencies: LeaseDependencies,
  { moved, ...query }: Query,
  call: Call,
): AsyncGenerator<Waiter> {
  const row = moved && (await readMoved(dependencies, { key: query.key, ticket: moved }, call));
  if (row) yield row;
  const sortKey = row && waiterKey(row).ticket;
  for await (const waiter of readWaiters(dependencies, query, call))
    if (waiterKey(waiter).ticket !== sortKey) yield waiter;
}

/**
 * Reads the row of a waiter that an operator has moved. For a caller that sleeps, this is the place, as long as the
 * caller is expected back: the row of its last call may still be there, but is overdue.
 */
export async function readMoved(
  dependencies: LeaseDependencies,
  { key, ticket }: WaiterKey,
  call: Call,
): Promise<Waiter | undefined> {
  const now = dependencies.clock.now();
  const row = await getWaiter(dependencies, { key, ticket }, call);
  if ((row && (isTask(row) || !isOverdue(row, now))) || !canSleep(dependencies)) return row;
  const place = await getWaiter(dependencies, { key, ticket: placeKeyOf(ticket) }, call);
  return place && isPlace(place) && isExpected(place, now) ? place : row;
}
