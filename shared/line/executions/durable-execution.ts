import type { Call } from '../../aws/call.ts';
import { attempt, reading, toHoldfastError } from '../../aws/send.ts';
import { HoldfastError } from '../../errors.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import { ANY_EXECUTION, isDescribed } from './allowed.ts';
import { askAgain } from './ask-again.ts';
import type { Described } from './described.ts';

/**
 * Describes the execution of a durable function, by GetDurableExecution without the data of the execution. Such an execution is never redriven.
 * @throws HoldfastError Throttled, Unavailable, as `describeExecution`
 */
export async function describeDurableExecution(
  dependencies: LeaseDependencies,
  arn: string,
  call: Call,
): Promise<Described> {
  const { executions = ANY_EXECUTION, durableFunctions } = dependencies;
  const lambda = await durableFunctions?.();
  if (!lambda)
    throw new HoldfastError('Unavailable', 'this process cannot ask Lambda about executions', { retryAfterMs: 1000 });
  const tried = await askAgain(
    dependencies,
    () => attempt(lambda.client, { command: lambda.execution(arn) }, call),
    call,
  );
  if ('output' in tried) {
    const { Status: status = '', EndTimestamp: end } = tried.output;
    return { state: status === 'RUNNING' ? 'running' : 'ended', status, stoppedAt: end?.getTime() };
  }
  const { name } = tried.error;
  if (name === 'ResourceNotFoundException') return { state: 'missing' };
  const isDenied = name === 'AccessDeniedException' && !isDescribed(executions, arn, call);
  if (isDenied || name === 'InvalidParameterValueException') return { state: 'foreign' };
  throw toHoldfastError(tried.error, reading('Lambda'), tried.unanswered);
}
