import type { Call } from '../../aws/call.ts';
import { HoldfastError } from '../../errors.ts';
import type { LeaseDependencies } from '../../line/dependencies.ts';
import { readPlace } from '../../line/list.ts';
import { isOwnOf } from '../../line/request.ts';
import { deleteTicket, getTicket, isTask } from '../../line/waiters.ts';
import { isCancelled } from '../../line/waiting-calls.ts';
import type { GrantRequest } from '../grant.ts';
import type { LeaseRecord } from '../record.ts';
import { endReason, grantedIn, isLeased, isOver } from '../rules.ts';
import { leaseHeld, leaseLost } from '../views.ts';
import { type Claimed, claim } from './claim.ts';
import { handOff } from './hand-off.ts';
import { readRecord } from './read-record.ts';

interface Leaving {
  request: GrantRequest;
  name: { key: string; ticket: string };
}

/**
 * Ends the wait of a call in line whose patience has ended, or whose ticket is gone (docs/protocols/queue.md#leave). The ticket stays for a
 * while, if it is there, for the call that asks again.
 * @returns a grant that came in the last moment
 * @throws HoldfastError LeaseHeld, with the place, if it has one; LeaseLost, Throttled, Unavailable, OutcomeUnknown
 */
export async function leave(dependencies: LeaseDependencies, { request, name }: Leaving, call: Call): Promise<Claimed> {
  const { clock, clockSkewMs } = dependencies;
  const { key, ticket } = name;
  const row = await getTicket(dependencies, name, call);
  let record = await readRecord(dependencies, key, call);
  for (let hasHandedOn = false; ; hasHandedOn = true) {
    if (isLeased(record) && isOwnOf(record, request) && !isOver(record)) {
      const claimed = await claim(dependencies, { asker: request, seen: record, ticket }, call);
      if (claimed) return claimed;
      record = await readRecord(dependencies, key, call);
    }
    if (row && !isTask(row) && row.cancelledAt !== undefined)
      return refuse(dependencies, { record, name, reason: 'cancelled' }, call);
    if (isOwnOf(record, request) && isOver(record)) return refuseEnded(dependencies, { record, name }, call);
    if (hasHandedOn || isLeased(record) || record.waiters === undefined) break;
    // A call that leaves while the lease is free must hand it on, or it would take the turn of those behind it along. What it sees then may be
    // the grant of another place of its request, or of a call whose clock is behind.
    record = (await handOff(dependencies, { record, ending: 'free' }, call)).standing;
  }
  const { code, message, context } = leaseHeld(record, clock.now(), clockSkewMs);
  const { requestId } = request;
  if (!row) throw new HoldfastError(code, message, { ...context, retryWith: { requestId } });
  const place = await readPlace(dependencies, { key, granted: grantedIn(record), ticket }, call);
  throw new HoldfastError(code, message, { ...context, ...place, retryWith: { requestId, ticket } });
}

/** Of a call in line that gets no lease any more. */
interface Refusing {
  record: LeaseRecord;
  name: Leaving['name'];
}

/**
 * Answers a call whose request has had the lease, as the record shows.
 * @throws HoldfastError LeaseLost, Throttled, Unavailable, OutcomeUnknown
 */
export async function refuseEnded(
  dependencies: LeaseDependencies,
  { record, name }: Refusing,
  call: Call,
): Promise<never> {
  // A withdrawal flags the ticket before it ends the grant, so this call sees that too.
  const isWithdrawn = await isCancelled(dependencies, name, call);
  return refuse(dependencies, { record, name, reason: isWithdrawn ? 'cancelled' : endReason(record) }, call);
}

/**
 * Deletes the ticket first, or the hand-off would grant the lease to it.
 * @throws HoldfastError as `refuseEnded`
 */
export async function refuse(
  dependencies: LeaseDependencies,
  { record, name, reason }: Refusing & { reason: 'broken' | 'cancelled' | 'released' },
  call: Call,
): Promise<never> {
  await deleteTicket(dependencies, name, call);
  if (!isLeased(record) && record.waiters !== undefined) await handOff(dependencies, { record, ending: 'free' }, call);
  throw leaseLost(record.key, reason, undefined);
}
