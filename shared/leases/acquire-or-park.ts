import type { Call } from '../aws/call.ts';
import { naming } from '../aws/send.ts';
import { invalidRequest } from '../errors.ts';
import { type Acquired, acquirer } from './acquire.ts';
import type { LeaseDependencies } from './dependencies.ts';
import type { AcquireInput } from './inputs.ts';
import type { Parked } from './queue/park.ts';
import type { Json } from './record.ts';

/** For a task that names no `parkSeconds`. */
const DEFAULT_PARK_SECONDS = 86_400;

/**
 * Takes a lease for the caller. With a `taskToken`, grants it to that task, or parks the task.
 * @throws HoldfastError InvalidRequest (an execution of another account or region), and as acquire.ts and queue/park.ts
 */
export function acquireOrPark(dependencies: LeaseDependencies) {
  const acquire = acquirer(dependencies);
  return async (input: AcquireInput, call: Call): Promise<Acquired | Parked> => {
    refuseForeignExecutions(input, call);
    const { taskToken, parkSeconds = DEFAULT_PARK_SECONDS, ...plain } = input;
    if (taskToken === undefined) return acquire(plain, call);
    const { waitSeconds: _, fair: __, ticket: ___, requestId = dependencies.ids.uuid(), data, ...waiter } = plain;
    const { principal, namespace } = call;
    // The schema has checked that data is JSON.
    const request = { ...waiter, requestId, principal, namespace, data: data as Json | undefined };
    const { park } = await import('./queue/park.ts');
    return park(dependencies, { ...request, taskToken, parkSeconds }, call).catch(naming({ requestId }));
  };
}

/** Nobody can tell whether such an execution has ended: its lease would never be freed, or freed under a target that runs. */
function refuseForeignExecutions({ execution, target }: AcquireInput, { regionAndAccount }: Call): void {
  if (regionAndAccount === undefined) return;
  const issues = Object.entries({ execution, target })
    .filter(([, arn]) => arn !== undefined && arn.split(':').slice(3, 5).join(':') !== regionAndAccount)
    .map(([path]) => ({ path, message: 'must be an execution in the account and region of this deployment' }));
  if (issues.length > 0) throw invalidRequest(issues);
}
