import type { Call } from '../aws/call.ts';
import type { HeartbeatInput, LeaseGrant } from '../line/calls.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { extendPermit } from '../permits/heartbeat.ts';
import { byLeaseId } from './once-grants.ts';

/** Extends a lease, a permit or a run of `once`, by its lease id. @throws HoldfastError LeaseLost, Throttled, Unavailable, OutcomeUnknown */
export const heartbeat = (
  dependencies: LeaseDependencies,
): ((input: HeartbeatInput, call: Call) => Promise<LeaseGrant>) => byLeaseId(extendPermit(dependencies));
