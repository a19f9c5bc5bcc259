import type { Call } from '../aws/call.ts';
import { releaseLease } from '../leases/release.ts';
import type { Released, ReleaseInput } from '../line/calls.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { OtherKind } from '../line/kind.ts';
import { byLeaseId, byRequest, hasPermitId } from './route.ts';

/** Releases a lease, a permit or a run of `once`, by its lease id. @throws HoldfastError Throttled, Unavailable, OutcomeUnknown */
export function release(dependencies: LeaseDependencies) {
  const run = byRequest<ReleaseInput, Released, Released>(dependencies, {
    isForPermit: hasPermitId,
    lease: releaseLease,
    permit: async () => (await import('../permits/release.ts')).releasePermit,
  });
  const routed = byLeaseId(releaseLease(dependencies), run);
  return (input: ReleaseInput, call: Call): Promise<Released> =>
    routed(input, call).catch((error) => {
      if (!(error instanceof OtherKind)) throw error;
      return { key: input.key, released: false, reason: error.unanswered ? 'unknown' : 'taken' };
    });
}
