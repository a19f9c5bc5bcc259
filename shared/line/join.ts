import type { Call } from '../aws/call.ts';
import { isOfAnother } from '../leases/conditions.ts';
import type { GrantRequest } from '../leases/grant.ts';
import { correctLineOut, mark } from '../leases/in-line/marks.ts';
import type { LeaseRecord } from '../leases/record.ts';
import { leaseLost } from '../leases/views.ts';
import type { LeaseDependencies } from './dependencies.ts';
import { countInLine } from './limits/full-lines.ts';
import { refuseWhereFull } from './limits/full-namespaces.ts';
import { DEFAULT_QUOTAS } from './limits/quotas.ts';
import { type CallTicket, deleteTicket, nameOfLine, putTicket, queueFull, ticketName } from './waiters.ts';
import { KEEP_MS, keepPlace } from './waiting-calls.ts';

/** The record only hints at how many have left the line. The hint may be wrong, so some arrivals count the line whatever it says. */
export const countedEvery = (waitersPerKey: number): number => Math.max(1, Math.ceil(waitersPerKey / 32));

/** A call that joins the line. */
export interface Joining {
  request: GrantRequest;
  /** The place of an earlier call of the request, if it asks again. */
  ticket?: string | undefined;
  /** When it stops waiting, in epoch milliseconds. */
  deadline: number;
}

export interface Joined {
  ticket: string;
  /** How many had joined by then, with this call. Undefined if that is not known. */
  arrival: number | undefined;
  /** Whether the mark counts this call. It does not if there was no record. */
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
  const { holder, ttlSeconds, requestId, principal, execution, target, graceSeconds, data } = joining.request;
  const asked = { key, holder, ttlSeconds, requestId, principal, execution, target, graceSeconds, data };
  const { ticket, again } = await takePlace(dependencies, { ...joining, asked }, call);
  const raising = { key, condition: isOfAnother(joining.request), ticket, again };
  const { won, standing } = await mark(dependencies, raising, call);
  const arrivals = Number(standing.waiters?.N);
  // A call that has its place already stays in line.
  if (won && !again)
    await refuseWhereLong(dependencies, { key, ticket, arrivals, lineOut: standing.lineOut ?? 0 }, call);
  return { ticket, arrival: won && !again ? arrivals : undefined, isMarked: won, standing };
}

interface Arrived extends Pick<CallTicket, 'key' | 'ticket'> {
  /** How many have joined so far. */
  arrivals: number;
  /** How many of those have left the line, as far as the record tells. Undefined if it does not. */
  lineOut?: number;
}

/**
 * Takes a call that has just joined out of a line that is too long. Counts the line only if, by the record, more than the quota may be in it:
 * a crowd that comes back raises the mark quickly, and that alone is no reason to count. A count that differs corrects the record.
 * @throws HoldfastError QueueFull, Throttled, Unavailable, OutcomeUnknown
 */
export async function refuseWhereLong(
  dependencies: LeaseDependencies,
  { arrivals, lineOut, ...name }: Arrived,
  call: Call,
): Promise<void> {
  const { waitersPerKey } = dependencies.quotas ?? DEFAULT_QUOTAS;
  const seemsFull = lineOut !== undefined && arrivals - lineOut > waitersPerKey;
  const isSample = arrivals > waitersPerKey && arrivals % countedEvery(waitersPerKey) === 0;
  if (!seemsFull && !isSample) return;
  const inLine = await countInLine(dependencies, name.key, call);
  const isFull = inLine > waitersPerKey;
  if (lineOut !== undefined && isFull !== seemsFull)
    await correctLineOut(dependencies, { key: name.key, arrivals, inLine }, call);
  if (!isFull) return;
  await deleteTicket(dependencies, name, call);
  throw queueFull(name.key, waitersPerKey);
}

/** Adds a call to the mark that found no record when it joined, and finds the lease held now: the mark counts arrivals. */
export async function markLate(
  dependencies: LeaseDependencies,
  { request, ticket }: Late,
  call: Call,
): Promise<Joined> {
  const raising = { key: request.key, condition: isOfAnother(request), ticket };
  const { won, standing } = await mark(dependencies, raising, call);
  return { ticket, arrival: won ? Number(standing.waiters?.N) : undefined, isMarked: won, standing };
}

interface Late {
  request: GrantRequest;
  ticket: string;
}

/** A call that takes a place in a line, under the key of the line. */
interface Placing extends Omit<Joining, 'request'> {
  asked: Omit<CallTicket, 'ticket' | 'parkedAt' | 'deadline' | 'keepUntil'>;
}

/**
 * Keeps the place of a call that asks again in time, or takes a new one.
 * @throws HoldfastError LeaseLost (`cancelled`), QueueFull, Throttled, Unavailable, OutcomeUnknown
 */
export async function takePlace(
  dependencies: LeaseDependencies,
  { asked, ticket, deadline }: Placing,
  call: Call,
): Promise<{ ticket: string; again: boolean }> {
  const kept = ticket && (await keepPlace(dependencies, { asker: asked, ticket, deadline }, call));
  if (kept === 'cancelled') throw leaseLost(nameOfLine(asked.key), 'cancelled', undefined);
  if (kept) return { ticket: kept.ticket, again: true };
  await refuseWhereFull(dependencies, asked.key, call);
  const now = dependencies.clock.now();
  const name = ticketName(now, dependencies.ids.uuid());
  const row: CallTicket = { ...asked, ticket: name, parkedAt: now, deadline, keepUntil: deadline + KEEP_MS };
  await putTicket(dependencies, row, call);
  return { ticket: name, again: false };
}
