import type { Call } from '../../aws/call.ts';
import { HoldfastError } from '../../errors.ts';
import { readPlace } from '../../line/list.ts';
import { deleteTicket, lineOf } from '../../line/waiters.ts';
import type { PoolDependencies } from '../dependencies.ts';
import type { PoolEntry, PoolRecord } from '../record.ts';
import { type PermitRequest, refuseOtherWeight } from '../request.ts';
import { poolHeld } from '../views.ts';

interface Leaving {
  request: PermitRequest;
  record: PoolRecord;
  /** Its place, if it has one. That stays for a while, for the call that asks again. */
  ticket: string | undefined;
}

/** The answer of a call that leaves the line. @throws HoldfastError LeaseHeld, with the place; Throttled, Unavailable */
export async function refuseInLine(
  dependencies: PoolDependencies,
  { request, record, ticket }: Leaving,
  call: Call,
): Promise<never> {
  const { clock, clockSkewMs } = dependencies;
  const { key, requestId } = request;
  const { code, message, context } = poolHeld(record, { asked: request, now: clock.now(), clockSkewMs });
  if (ticket === undefined) throw new HoldfastError(code, message, { ...context, retryWith: { requestId } });
  const place = await readPlace(dependencies, { key: lineOf(key), granted: new Set<string>(), ticket }, call);
  throw new HoldfastError(code, message, { ...context, ...place, retryWith: { requestId, ticket } });
}

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
