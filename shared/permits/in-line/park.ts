import type { Call } from '../../aws/call.ts';
import { all } from '../../aws/condition.ts';
import type { Parked } from '../../line/calls.ts';
import { countedEvery } from '../../line/join.ts';
import { isQueueFull } from '../../line/limits/full-lines.ts';
import { refuseWhereFull } from '../../line/limits/full-namespaces.ts';
import { DEFAULT_QUOTAS } from '../../line/limits/quotas.ts';
import { failTask } from '../../line/notify.ts';
import { type ParkOutcome, refuseTask, repeated } from '../../line/park.ts';
import { repairLater } from '../../line/repair/later.ts';
import { deleteTicket, lineOf, putTicket, type TaskTicket, ticketName } from '../../line/waiters.ts';
import { hasNoEntry, isNotRemembered, isStill } from '../conditions.ts';
import type { PoolDependencies } from '../dependencies.ts';
import { readPool } from '../read.ts';
import { ending, entryOf, type PoolEntry, type PoolRecord } from '../record.ts';
import type { PermitRequest } from '../request.ts';
import { toEnd } from '../room.ts';
import { permitLost } from '../views.ts';
import { passToTask, tellGrant } from './deliver.ts';
import { advance } from './hand-off.ts';
import { leaveForOtherWeight } from './leave.ts';
import { raiseMark } from './marks.ts';

interface Parking {
  request: PermitRequest;
  taskToken: string;
  parkSeconds: number;
}

/**
 * Parks a task for a permit (docs/protocols/pools.md#join). Writes its row first, even if there is room: if this call dies, the schedule
 * finds the row and goes on.
 * @throws HoldfastError InvalidRequest (the request has a permit of another weight), QueueFull, Throttled, Unavailable, OutcomeUnknown
 */
export async function parkForPermit(
  dependencies: PoolDependencies,
  { request, taskToken, parkSeconds }: Parking,
  call: Call,
): Promise<Parked> {
  const { key, holder, requestId, principal, ttlMs, data, execution, target, graceMs = 0, limit, weight } = request;
  const line = lineOf(key);
  await refuseWhereFull(dependencies, line, call);
  const now = dependencies.clock.now();
  const ticket: TaskTicket = {
    ...{ key: line, holder, requestId, principal, namespace: call.namespace, data },
    ...{ execution, target, taskToken, graceSeconds: graceMs / 1000 },
    ...{ ticket: ticketName(now, dependencies.ids.uuid()), ttlSeconds: ttlMs / 1000, permit: { limit, weight } },
    ...{ parkedAt: now, deadline: now + parkSeconds * 1000 },
  };
  await putTicket(dependencies, ticket, call);
  const parked = await queueUp(dependencies, { request, ticket }, call);
  return { key, holder, ticket: ticket.ticket, parked };
}

/** A task that comes to the line, and the record that it meets. */
interface Arrival {
  request: PermitRequest;
  ticket: TaskTicket;
}

/** @returns whether the task still waits */
async function queueUp(dependencies: PoolDependencies, arrival: Arrival, call: Call): Promise<boolean> {
  const { request, ticket } = arrival;
  const { key, name } = request;
  let condition = all(hasNoEntry(name, 0), isNotRemembered(name));
  for (;;) {
    const raising = { key, condition, ticket: ticket.ticket };
    const { won, standing } = await raiseMark(dependencies, raising, call);
    const own = entryOf(standing, name);
    // The call that granted it notifies the task.
    if (own?.ticket === ticket.ticket) return false;
    if (won) return behind(dependencies, { ...arrival, standing }, call);
    if (own && !own.isEnding && own.expiresAt > dependencies.clock.now()) {
      await leaveForOtherWeight(dependencies, { request, own, ticket: ticket.ticket }, call);
      const told = { ticket, standing, own };
      const outcome = await (own.claimTtlMs === undefined ? repeat : takeUnclaimed)(dependencies, told, call);
      if (outcome !== 'again') return outcome === 'waits';
    } else if (own && !own.isEnding) condition = isStill(own);
    else {
      const error = permitLost(key, ending(standing, name) ?? 'unknown');
      return (await failTask(dependencies, { ticket, error }, call)) === 'unanswered';
    }
  }
}

/** The record is marked, so the next call that ends a permit finds the ticket. */
async function behind(
  dependencies: PoolDependencies,
  { request, ticket, standing }: Arrival & { standing: PoolRecord },
  call: Call,
): Promise<boolean> {
  const { clock, clockSkewMs } = dependencies;
  if (toEnd(standing, request, { now: clock.now(), clockSkewMs })) {
    const { granted, standing: after } = await advance(dependencies, { record: standing }, call);
    if (granted.includes(ticket.ticket)) return false;
    return entryOf(after, request.name)?.ticket !== ticket.ticket;
  }
  const { waitersPerKey } = dependencies.quotas ?? DEFAULT_QUOTAS;
  const arrivals = Number(standing.waiters?.N);
  const isCounted = arrivals > waitersPerKey && arrivals % countedEvery(waitersPerKey) === 0;
  if (isCounted && (await isQueueFull(dependencies, ticket.key, call))) {
    const isGranted = async () =>
      entryOf(await readPool(dependencies, request.key, call), request.name)?.ticket === ticket.ticket;
    return (await refuseTask(dependencies, { ticket, isGranted }, call)) === 'waits';
  }
  // A caller that was granted its place may be dead, and nobody else looks.
  if (standing.entries.some(({ claimTtlMs }) => claimTtlMs !== undefined))
    await repairLater(dependencies, ticket.key, call);
  return true;
}

/** The task came again with a new token, which gets the permit that the request has. */
async function repeat(
  dependencies: PoolDependencies,
  { ticket, standing, own }: { ticket: TaskTicket; standing: PoolRecord; own: PoolEntry },
  call: Call,
): Promise<ParkOutcome> {
  const grant = { ticket, record: standing, entry: own, repeated: true, isOurs: false };
  const { outcome } = await tellGrant(dependencies, grant, call);
  return repeated(dependencies, { ticket, outcome }, call);
}

/** The permit is that of a call in line which has not claimed it yet, and perhaps never will. */
async function takeUnclaimed(
  dependencies: PoolDependencies,
  { ticket, standing: { key }, own }: { ticket: TaskTicket; standing: PoolRecord; own: PoolEntry },
  call: Call,
): Promise<ParkOutcome> {
  const { won, standing, entry } = await passToTask(dependencies, { key, entry: own, ticket }, call);
  if (!won || !entry) return 'again';
  const grant = { ticket, record: standing, entry, repeated: false, isOurs: true };
  const { outcome, standing: told } = await tellGrant(dependencies, grant, call);
  const after = entryOf(told, own.name);
  // This call wrote the permit and sent the first message about it: while that version stands, the task was not notified.
  if (outcome === 'gone' && after) {
    await deleteTicket(dependencies, ticket, call);
    await advance(dependencies, { record: told, going: [{ entry: after, how: 'undelivered' }] }, call);
    return 'notified';
  }
  return repeated(dependencies, { ticket, outcome }, call);
}
