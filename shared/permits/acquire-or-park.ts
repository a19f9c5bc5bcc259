import type { Call } from '../aws/call.ts';
import { naming } from '../aws/send.ts';
import type { Acquired, Parked } from '../line/calls.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { ANY_EXECUTION, refuseForeignExecutions } from '../line/executions/allowed.ts';
import { DEFAULT_PARK_SECONDS } from '../line/times.ts';
import { acquirePermit, type PermitInput, permitRequest } from './acquire.ts';

interface ParkInput extends PermitInput {
  taskToken?: string | undefined;
  parkSeconds?: number | undefined;
}

/**
 * Takes a permit for the caller. With a `taskToken`, grants it to that task, or parks the task.
 * @throws HoldfastError InvalidRequest (line/executions/allowed.ts), and as acquire.ts and line/park.ts
 */
export function acquireOrParkPermit(dependencies: LeaseDependencies) {
  const acquire = acquirePermit(dependencies);
  return async (input: ParkInput, call: Call): Promise<Acquired | Parked> => {
    const { taskToken, parkSeconds = DEFAULT_PARK_SECONDS, ...asked } = input;
    const { key, execution, target, requestId = dependencies.ids.uuid(), mode = 'shared' } = asked;
    refuseForeignExecutions(dependencies.executions ?? ANY_EXECUTION, { execution, target }, call);
    if (execution !== undefined) {
      const { noteExecution } = await import('./execution-rows.ts');
      await noteExecution(dependencies, { key, execution }, call).catch(naming({ requestId }));
    }
    const plain = { ...asked, requestId };
    if (taskToken === undefined) return acquire(plain, call);
    const request = permitRequest({ ...plain, mode }, call);
    const [{ park }, { permitLock }] = [await import('../line/park.ts'), await import('./lock.ts')];
    return park(dependencies, { lock: permitLock(dependencies, request, call), taskToken, parkSeconds }, call);
  };
}
