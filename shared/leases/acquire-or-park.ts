import type { Json } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { naming } from '../aws/send.ts';
import type { Acquired, AcquireInput, Parked } from '../line/calls.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { ANY_EXECUTION, refuseForeignExecutions } from '../line/executions/allowed.ts';
import { DEFAULT_PARK_SECONDS } from '../line/times.ts';
import { acquirer } from './acquire.ts';

/**
 * Takes a lease for the caller. With a `taskToken`, grants it to that task, or parks the task.
 * @throws HoldfastError InvalidRequest (line/executions/allowed.ts), and as acquire.ts and in-line/park.ts
 */
export function acquireOrPark(dependencies: LeaseDependencies) {
  const acquire = acquirer(dependencies);
  return async (input: AcquireInput, call: Call): Promise<Acquired | Parked> => {
    const { execution, target } = input;
    refuseForeignExecutions(dependencies.executions ?? ANY_EXECUTION, { execution, target }, call);
    const { taskToken, parkSeconds = DEFAULT_PARK_SECONDS, ...plain } = input;
    if (taskToken === undefined) return acquire(plain, call);
    const { waitSeconds: _, fair: __, ticket: ___, requestId = dependencies.ids.uuid(), data, ...waiter } = plain;
    const { principal, namespace } = call;
    // The schema has checked that data is JSON.
    const request = { ...waiter, requestId, principal, namespace, data: data as Json | undefined };
    const { park } = await import('./in-line/park.ts');
    const parked = await park(dependencies, { ...request, taskToken, parkSeconds }, call).catch(naming({ requestId }));
    if (parked.parked) call.measure?.('Parked', 1);
    return parked;
  };
}
