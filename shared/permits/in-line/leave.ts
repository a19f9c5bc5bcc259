import type { Call } from '../../aws/call.ts';
import { deleteTicket, lineOf } from '../../line/waiters.ts';
import type { PoolDependencies } from '../dependencies.ts';
import type { PoolEntry } from '../record.ts';
import { type PermitRequest, refuseOtherWeight } from '../request.ts';

/** A place in line, and the permit that its request has. */
interface Standing {
  request: PermitRequest;
  own: PoolEntry;
  ticket: string | undefined;
}

/** The same as `refuseOtherWeight` for a call that may be in line. @throws HoldfastError InvalidRequest, Throttled, Unavailable, OutcomeUnknown */
export async function leaveForOtherWeight(
  dependencies: PoolDependencies,
  { request, own, ticket }: Standing,
  call: Call,
): Promise<void> {
  if (ticket !== undefined && own.weight !== request.weight)
    await deleteTicket(dependencies, { key: lineOf(request.key), ticket }, call);
  refuseOtherWeight(request, own);
}
