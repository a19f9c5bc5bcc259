import type { Json } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import type { Acquired, AcquireInput, Parked } from '../line/calls.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { ANY_EXECUTION, refuseForeignExecutions } from '../line/executions/allowed.ts';
import { DEFAULT_PARK_SECONDS } from '../line/times.ts';
import { acquireLease } from './acquire.ts';

/**
 * Takes a lease for the caller. With a `taskToken`, grants it to that task, or parks the task.
 * @throws HoldfastError InvalidRequest (line/executions/allowed.ts), and as acquire.ts and line/park.ts
 */
export function acquireOrParkLease(dependencies: LeaseDependencies) {
  const acquire = acquireLease(dependencies);
  return async (input: AcquireInput, call: Call): Promise<Acquired | Parked> => {
    const { execution, target } = input;
    refuseForeignExecutions(dependencies.executions ?? ANY_EXECUTION, { execution, target }, call);
    const { taskToken, parkSeconds = DEFAULT_PARK_SECONDS, ...plain } = input;
    if (taskToken === undefined) return acquire(plain, call);
    const { waitSeconds: _, fair: __, ticket: ___, requestId = dependencies.ids.uuid(), data, ...waiter } = plain;
    // The schema has checked that data is JSON.
    const request = { ...waiter, requestId, principal: call.principal, data: data as Json | undefined };
    const [{ park }, { leaseLock }] = [await import('../line/park.ts'), await import('./lock.ts')];
    return park(dependencies, { lock: leaseLock(dependencies, request, call), taskToken, parkSeconds }, call);
  };
}
