import type { Call } from '../../aws/call.ts';
import { isHeldByAnother } from '../conditions.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import type { GrantRequest } from '../grant.ts';
import { DEFAULT_QUOTAS } from '../quotas.ts';
import type { LeaseRecord } from '../record.ts';
import { leaseLost } from '../views.ts';
import { KEEP_MS, keepPlace } from './caller-tickets.ts';
import { refuseWhereFull } from './full-namespaces.ts';
import { mark } from './marks.ts';
import { type CallTicket, deleteTicket, isQueueFull, putTicket, queueFull, ticketName } from './tickets.ts';

/** A crowd that comes back raises the mark quickly, so not every call counts the line: a quota is passed by a thirtieth at most. */
const countedEvery = (waitersPerKey: number): number => Math.max(1, Math.ceil(waitersPerKey / 32));

/** A call that joins the line. */
export interface Joining {
  request: GrantRequest;
  /** The place that it had before, if it asks again. */
  ticket?: string | undefined;
  /** When it stops waiting, in epoch milliseconds. */
  deadline: number;
}

export interface Joined {
  ticket: string;
  /** How many had joined by then, itself included. Undefined if nobody knows. */
  arrival: number | undefined;
  /** Whether the mark knows of it. It does not where the lease was free. */
  isMarked: boolean;
  /** The record as it was when the mark was raised, or as it kept the mark from being raised. */
  standing: LeaseRecord;
}

/**
 * Puts a call in line: the ticket first, then the mark (docs/protocols/queue.md#join).
 * @throws HoldfastError LeaseLost (`cancelled`), QueueFull, Throttled, Unavailable, OutcomeUnknown
 */
export async function join(dependencies: LeaseDependencies, joining: Joining, call: Call): Promise<Joined> {
  const { key } = joining.request;
  const kept = await ownPlace(dependencies, joining, call);
  const ticket = kept ?? (await newPlace(dependencies, joining, call));
  const again = kept !== undefined;
  const raising = { key, condition: isHeldByAnother(joining.request), ticket, again };
  const { won, standing } = await mark(dependencies, raising, call);
  const arrivals = Number(standing.waiters?.N);
  const { waitersPerKey } = dependencies.quotas ?? DEFAULT_QUOTAS;
  const isCounted = won && arrivals > waitersPerKey && arrivals % countedEvery(waitersPerKey) === 0;
  if (isCounted && (await isQueueFull(dependencies, key, call))) {
    await deleteTicket(dependencies, { key, ticket }, call);
    throw queueFull(key, waitersPerKey);
  }
  return { ticket, arrival: won && !again ? arrivals : undefined, isMarked: won, standing };
}

/** Tells the mark of a call that found the lease free, and that another has by now: the mark counts arrivals. */
export async function markLate(
  dependencies: LeaseDependencies,
  { request, ticket }: Late,
  call: Call,
): Promise<Joined> {
  const raising = { key: request.key, condition: isHeldByAnother(request), ticket };
  const { won, standing } = await mark(dependencies, raising, call);
  return { ticket, arrival: won ? Number(standing.waiters?.N) : undefined, isMarked: won, standing };
}

interface Late {
  request: GrantRequest;
  ticket: string;
}

/** The place of a call that asks again in time. */
async function ownPlace(
  dependencies: LeaseDependencies,
  { request, ticket, deadline }: Joining,
  call: Call,
): Promise<string | undefined> {
  if (ticket === undefined) return undefined;
  const kept = await keepPlace(dependencies, { asker: request, ticket, deadline }, call);
  if (kept === 'cancelled') throw leaseLost(request.key, 'cancelled', undefined);
  return kept?.ticket;
}

async function newPlace(dependencies: LeaseDependencies, { request, deadline }: Joining, call: Call): Promise<string> {
  await refuseWhereFull(dependencies, request.key, call);
  const now = dependencies.clock.now();
  const { key, holder, ttlSeconds, requestId, principal, execution, target, data } = request;
  const asked = { key, holder, ttlSeconds, requestId, principal, execution, target, data };
  const ticket = ticketName(now, dependencies.ids.uuid());
  const row: CallTicket = { ...asked, ticket, parkedAt: now, deadline, keepUntil: deadline + KEEP_MS };
  await putTicket(dependencies, row, call);
  return ticket;
}
