import type { Call } from '../aws/call.ts';
import { extendLease } from '../leases/heartbeat.ts';
import { leaseLost } from '../leases/views.ts';
import type { HeartbeatInput } from '../line/calls.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { OtherKind } from '../line/kind.ts';
import { byLeaseId, byRequest, hasPermitId } from './route.ts';

/** Extends a lease, a permit or a run of `once`, by its lease id. @throws HoldfastError LeaseLost, Throttled, Unavailable, OutcomeUnknown */
export function heartbeat(dependencies: LeaseDependencies) {
  const run = byRequest(dependencies, {
    isForPermit: hasPermitId,
    lease: extendLease,
    permit: async () => (await import('../permits/heartbeat.ts')).extendPermit,
  });
  const routed = byLeaseId(extendLease(dependencies), run);
  return (input: HeartbeatInput, call: Call) =>
    routed(input, call).catch((error) => {
      throw error instanceof OtherKind ? leaseLost(input.key, 'taken', undefined) : error;
    });
}
