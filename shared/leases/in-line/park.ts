import type { Call } from '../../aws/call.ts';
import type { Parked } from '../../line/calls.ts';
import type { LeaseDependencies } from '../../line/dependencies.ts';
import { isQueueFull } from '../../line/limits/full-lines.ts';
import { refuseWhereFull } from '../../line/limits/full-namespaces.ts';
import { DEFAULT_QUOTAS } from '../../line/limits/quotas.ts';
import { failTask } from '../../line/notify.ts';
import { type ParkOutcome, refuseTask, repeated } from '../../line/park.ts';
import { isOwnOf } from '../../line/request.ts';
import { getTicket, putTicket, type TaskTicket, ticketName } from '../../line/waiters.ts';
import { grantUnchanged, isHeldByAnother } from '../conditions.ts';
import type { Leased, LeaseRecord } from '../record.ts';
import { endReason, isEnding, isLeased, isRepeatable, takeoverAt } from '../rules.ts';
import { leaseLost } from '../views.ts';
import { notifyGranted } from './deliver.ts';
import { handOff, UNREAD } from './hand-off.ts';
import { mark, passToTask } from './marks.ts';
import { readRecord } from './read-record.ts';
import { repairAtTheEnd } from './watch.ts';

export type ParkRequest = Omit<TaskTicket, 'ticket' | 'parkedAt' | 'deadline'> & { parkSeconds: number };

/**
 * Parks a task for a lease (docs/protocols/queue.md#park). Writes its row first, even if the lease looks free: if this call
 * dies, the schedule finds the row and goes on.
 * @throws HoldfastError QueueFull, Throttled, Unavailable, OutcomeUnknown
 */
export async function park(
  dependencies: LeaseDependencies,
  { parkSeconds, ...request }: ParkRequest,
  call: Call,
): Promise<Parked> {
  await refuseWhereFull(dependencies, request.key, call);
  const now = dependencies.clock.now();
  const ticket: TaskTicket = {
    ...request,
    ticket: ticketName(now, dependencies.ids.uuid()),
    parkedAt: now,
    deadline: now + parkSeconds * 1000,
  };
  await putTicket(dependencies, ticket, call);
  const parked = await queueUp(dependencies, ticket, call);
  return { key: ticket.key, holder: ticket.holder, ticket: ticket.ticket, parked };
}

/** @returns whether the task still waits */
async function queueUp(dependencies: LeaseDependencies, ticket: TaskTicket, call: Call): Promise<boolean> {
  for (;;) {
    const raising = { key: ticket.key, condition: isHeldByAnother(ticket), ticket: ticket.ticket };
    const marked = await mark(dependencies, raising, call);
    const outcome = marked.won
      ? await behind(dependencies, { ticket, standing: marked.standing }, call)
      : await before(dependencies, { ticket, standing: marked.standing }, call);
    if (outcome !== 'again') return outcome === 'waits';
  }
}

/** A task that comes to the queue, and the record that it meets. */
interface Arrival {
  ticket: TaskTicket;
  standing: LeaseRecord;
}

/** The lease is held and marked: the call that ends it finds the ticket. */
async function behind(
  dependencies: LeaseDependencies,
  { ticket, standing }: Arrival,
  call: Call,
): Promise<ParkOutcome> {
  const expired = takeoverAt(standing, dependencies.clockSkewMs) <= dependencies.clock.now();
  if (expired) return handOffToSelf(dependencies, { ticket, standing, ending: 'expired' }, call);
  // The mark counts arrivals since the queue was last empty, so a queue that empties now and then is never counted.
  const { waitersPerKey } = dependencies.quotas ?? DEFAULT_QUOTAS;
  const isLong = Number(standing.waiters?.N) > waitersPerKey;
  const isGranted = async () => {
    const record = await readRecord(dependencies, ticket.key, call);
    return record.ticket === ticket.ticket && isLeased(record);
  };
  if (isLong && (await isQueueFull(dependencies, ticket.key, call)))
    return refuseTask(dependencies, { ticket, isGranted }, call);
  // The holder may be dead, and no other call looks. The first in line sends the message for all. A later grant in front of a task has its own.
  const isFirst = Number(standing.waiters?.N) === 1;
  if (isFirst || standing.claimTtlMs !== undefined) await repairAtTheEnd(dependencies, standing, { call });
  return 'waits';
}

/** The lease is free, or this request has or had it. */
async function before(
  dependencies: LeaseDependencies,
  { ticket, standing }: Arrival,
  call: Call,
): Promise<ParkOutcome> {
  if (!isOwnOf(standing, ticket)) return handOffToSelf(dependencies, { ticket, standing, ending: 'free' }, call);
  const isGranted = isLeased(standing) && standing.ticket === ticket.ticket;
  if (isGranted) return 'notified'; // the call that granted it notifies the task
  if (!isLeased(standing) || isEnding(standing)) {
    const lost = leaseLost(ticket.key, endReason(standing), standing);
    await failTask(dependencies, { ticket, error: lost }, call);
    return 'notified';
  }
  if (isRepeatable(standing, ticket, dependencies.clock.now()))
    return (standing.claimTtlMs === undefined ? repeat : takeUnclaimed)(dependencies, { ticket, standing }, call);
  // Its time is over.
  const raising = { key: ticket.key, condition: grantUnchanged(standing), ticket: ticket.ticket };
  const marked = await mark(dependencies, raising, call);
  return marked.won ? behind(dependencies, { ticket, standing: marked.standing }, call) : 'again';
}

/** The task came again with a new token, which gets the grant that the request has. */
async function repeat(
  dependencies: LeaseDependencies,
  { ticket, standing }: { ticket: TaskTicket; standing: Leased },
  call: Call,
): Promise<ParkOutcome> {
  const grant = { ticket, record: standing, repeated: true, isOurs: false };
  const { outcome } = await notifyGranted(dependencies, grant, call);
  return repeated(dependencies, { ticket, outcome }, call);
}

/** The grant is that of a call in line which has not claimed it yet, and perhaps never will. */
async function takeUnclaimed(
  dependencies: LeaseDependencies,
  { ticket, standing }: { ticket: TaskTicket; standing: Leased },
  call: Call,
): Promise<ParkOutcome> {
  const passed = await passToTask(dependencies, { record: standing, ticket }, call);
  if (!passed.won) return 'again';
  const transferred = { ...UNREAD, oldest: ticket };
  const { moved } = await handOff(dependencies, { record: passed.standing, ending: 'released', transferred }, call);
  return moved.includes(ticket.ticket) ? 'notified' : 'waits';
}

async function handOffToSelf(
  dependencies: LeaseDependencies,
  { ticket, standing, ending }: Arrival & { ending: 'expired' | 'free' },
  call: Call,
): Promise<ParkOutcome> {
  const { moved, end } = await handOff(dependencies, { record: standing, ending }, call);
  if (end === 'overtaken') return 'again';
  if (moved.includes(ticket.ticket)) return 'notified';
  // A hand-off that stopped at a pile of rows that are over has not seen the ticket.
  return end === 'empty' && !(await getTicket(dependencies, ticket, call)) ? 'notified' : 'waits';
}
