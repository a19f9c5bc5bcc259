import type { Call } from '../aws/call.ts';
import type { Acquired, AcquireInput, Parked } from '../line/calls.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { acquireOrParkPermit } from '../permits/acquire.ts';

/**
 * Acquires a lease, or a permit if the request names a limit or the mode `shared`.
 * @throws HoldfastError InvalidRequest (a callback, and the deployment serves no durable functions), and as permits/acquire.ts and line/park.ts
 */
export function acquire(dependencies: LeaseDependencies) {
  const run = acquireOrParkPermit(dependencies);
  return async (given: AcquireInput, call: Call): Promise<Acquired | Parked> => {
    const input =
      given.callbackId === undefined ? given : (await import('../line/callback.ts')).ofCallback(dependencies, given);
    return run(input, call);
  };
}
