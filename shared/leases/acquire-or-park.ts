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
    refuseForeignExecutions(dependencies, input, call);
    const { taskToken, parkSeconds = DEFAULT_PARK_SECONDS, ...plain } = input;
    if (taskToken === undefined) return acquire(plain, call);
    const { waitSeconds: _, fair: __, ticket: ___, requestId = dependencies.ids.uuid(), data, ...waiter } = plain;
    const { principal, namespace } = call;
    // The schema has checked that data is JSON.
    const request = { ...waiter, requestId, principal, namespace, data: data as Json | undefined };
    const { park } = await import('./queue/park.ts');
    const parked = await park(dependencies, { ...request, taskToken, parkSeconds }, call).catch(naming({ requestId }));
    if (parked.parked) call.measure?.('Parked', 1);
    return parked;
  };
}

/**
 * Nobody can tell whether an execution of elsewhere has ended: its lease would never be freed, or freed under a target that runs. And the end of
 * another team's execution must not free a lease, nor keep it.
 */
function refuseForeignExecutions(
  { ownExecutions = false }: LeaseDependencies,
  { execution, target }: AcquireInput,
  { regionAndAccount, namespace }: Call,
): void {
  const faultOf = (arn: string): string | undefined => {
    const [, , , region, account, , machine = ''] = arn.split(':');
    if (regionAndAccount !== undefined && `${region}:${account}` !== regionAndAccount)
      return 'must be an execution in the account and region of this deployment';
    return ownExecutions && namespace !== undefined && !machine.startsWith(`${namespace}-`)
      ? `must be an execution of a state machine whose name begins with ${namespace}-`
      : undefined;
  };
  const issues = Object.entries({ execution, target }).flatMap(([path, arn]) => {
    const message = arn === undefined ? undefined : faultOf(arn);
    return message === undefined ? [] : [{ path, message }];
  });
  if (issues.length > 0) throw invalidRequest(issues);
}
