import type { Call } from '../../aws/call.ts';
import type { LeaseDependencies } from '../../line/dependencies.ts';
import { refuseWhereLong, takePlace } from '../../line/join.ts';
import { isOfAnother } from '../conditions.ts';
import type { GrantRequest } from '../grant.ts';
import type { LeaseRecord } from '../record.ts';
import { correctLineOut, mark } from './marks.ts';

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
  const correct = (inLine: number) => correctLineOut(dependencies, { key, arrivals, inLine }, call);
  if (won && !again)
    await refuseWhereLong(dependencies, { key, ticket, arrivals, lineOut: standing.lineOut ?? 0, correct }, call);
  return { ticket, arrival: won && !again ? arrivals : undefined, isMarked: won, standing };
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
