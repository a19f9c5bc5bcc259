import { createHash } from 'node:crypto';
import { invalidRequest } from '../errors.ts';
import type { AcquireInput } from './calls.ts';
import type { LeaseDependencies } from './dependencies.ts';
import { ANY_EXECUTION } from './executions/allowed.ts';

/** A request for a grant that the callback of a durable function waits for. */
type OfCallback = AcquireInput & { callbackId: string };

/**
 * Gives the request of a callback its id. The code that submits a callback may run again with the same callback, also after its end
 * (docs/protocols/tasks.md#a-callback-is-submitted-twice), and must name the same request. The hash keeps the callback id secret in answers.
 * @throws HoldfastError InvalidRequest if the deployment serves no durable functions
 */
export function ofCallback({ executions = ANY_EXECUTION }: LeaseDependencies, input: AcquireInput): AcquireInput {
  const { callbackId, requestId } = input as OfCallback;
  if (executions.durableFunctions === undefined)
    throw invalidRequest([
      { path: 'callbackId', message: 'needs the parameter durableFunctions of the deployment, which is empty' },
    ]);
  if (requestId !== undefined) return input;
  return { ...input, requestId: `c-${createHash('sha256').update(callbackId).digest('base64url')}` };
}
