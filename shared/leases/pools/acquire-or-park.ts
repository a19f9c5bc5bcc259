import type { Call } from '../../aws/call.ts';
import { naming } from '../../aws/send.ts';
import type { Acquired } from '../acquire.ts';
import type { Parked } from '../queue/park.ts';
import { type PermitInput, permitAcquirer, permitRequest } from './acquire.ts';
import type { PoolDependencies } from './dependencies.ts';

/** For a task that names no `parkSeconds`. */
const DEFAULT_PARK_SECONDS = 86_400;

interface ParkInput extends PermitInput {
  taskToken?: string | undefined;
  parkSeconds?: number | undefined;
}

/**
 * Takes a permit for the caller. With a `taskToken`, grants it to that task, or parks the task.
 * @throws HoldfastError as acquire.ts and queue/park.ts
 */
export function permitAcquirerOrParker(dependencies: PoolDependencies) {
  const acquire = permitAcquirer(dependencies);
  return async (input: ParkInput, call: Call): Promise<Acquired | Parked> => {
    const { taskToken, parkSeconds = DEFAULT_PARK_SECONDS, ...plain } = input;
    if (taskToken === undefined) return acquire(plain, call);
    const { requestId = dependencies.ids.uuid(), mode = 'shared' } = plain;
    const request = permitRequest({ ...plain, requestId, mode }, call);
    const { parkForPermit } = await import('./queue/park.ts');
    const parking = { request, taskToken, parkSeconds };
    const parked = await parkForPermit(dependencies, parking, call).catch(naming({ requestId }));
    if (parked.parked) call.measure?.('Parked', 1);
    return parked;
  };
}
