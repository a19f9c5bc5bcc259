import type { Call } from '../aws/call.ts';
import type { Released, ReleaseInput } from '../line/calls.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { releasePermit } from '../permits/release.ts';
import { byLeaseId } from './once-grants.ts';

/** Releases a lease, a permit or a run of `once`, by its lease id. @throws HoldfastError Throttled, Unavailable, OutcomeUnknown */
export const release = (dependencies: LeaseDependencies): ((input: ReleaseInput, call: Call) => Promise<Released>) =>
  byLeaseId<ReleaseInput, Released>(releasePermit(dependencies));
