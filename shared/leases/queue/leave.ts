import type { Call } from '../../aws/call.ts';
import { HoldfastError } from '../../errors.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import type { GrantRequest } from '../grant.ts';
import type { LeaseRecord } from '../record.ts';
import { endReason, isLeased, isOwnOf } from '../rules.ts';
import { leaseHeld, leaseLost } from '../views.ts';
import { isCancelled } from './caller-tickets.ts';
import { type Claimed, claim } from './claim.ts';
import { handOff } from './hand-off.ts';
import { readRecord } from './record.ts';
import { deleteTicket, getTicket, isTask } from './tickets.ts';
import { readPlace } from './waiting.ts';

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
  if (isLeased(record) && isOwnOf(record, request)) {
    const claimed = await claim(dependencies, { asker: request, seen: record, ticket }, call);
    if (claimed) return claimed;
    record = await readRecord(dependencies, key, call);
  }
  if (row && !isTask(row) && row.cancelledAt !== undefined) {
    await deleteTicket(dependencies, name, call);
    throw leaseLost(key, 'cancelled', undefined);
  }
  if (!isLeased(record) && isOwnOf(record, request)) return refuseEnded(dependencies, { record, name }, call);
  // A call that leaves while the lease is free must hand it on, or it would take the turn of those behind it along.
  if (!isLeased(record) && record.waiters !== undefined)
    record = (await handOff(dependencies, { record, ending: 'free' }, call)).standing;
  const { code, message, context } = leaseHeld(record, clock.now(), clockSkewMs);
  const { requestId } = request;
  if (!row) throw new HoldfastError(code, message, { ...context, retryWith: { requestId } });
  const place = await readPlace(dependencies, { record, ticket }, call);
  throw new HoldfastError(code, message, { ...context, ...place, retryWith: { requestId, ticket } });
}

/**
 * Answers a call whose request has had the lease, as the record shows. Its ticket goes, so that the request does not get a second one.
 * @throws HoldfastError LeaseLost, Throttled, Unavailable, OutcomeUnknown
 */
export async function refuseEnded(
  dependencies: LeaseDependencies,
  { record, name }: { record: LeaseRecord; name: Leaving['name'] },
  call: Call,
): Promise<never> {
  // A withdrawal flags the ticket before it ends the grant, so this call sees that too.
  const isWithdrawn = await isCancelled(dependencies, name, call);
  await deleteTicket(dependencies, name, call);
  throw leaseLost(record.key, isWithdrawn ? 'cancelled' : endReason(record), record);
}
