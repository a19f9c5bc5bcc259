import { DescribeExecutionCommand } from '@aws-sdk/client-sfn';
import type { Call } from '../../aws/call.ts';
import { attempt, reading, toHoldfastError } from '../../aws/send.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import { ANY_EXECUTION, isDescribed } from '../executions.ts';

/**
 * `missing`: it never started, or ended longer ago than Step Functions remembers. `foreign`: Step Functions tells us nothing
 * about it, because it belongs to another account or region, to an Express workflow, or to a state machine that the deployment may not
 * describe. Records of earlier versions and of other clients may name such executions.
 */
export type ExecutionState = 'running' | 'ended' | 'missing' | 'foreign';

/** An execution in either state may go on: Step Functions itself continues one with PENDING_REDRIVE. */
const RUNNING = new Set(['RUNNING', 'PENDING_REDRIVE']);

/**
 * Eventually consistent: the last moments of the execution may not show yet.
 * @returns the state, and whether the execution had ended before and was redriven
 * @throws HoldfastError Throttled, Unavailable (also if access to an execution of our own is denied: freeing the lease
 * of an execution that runs would be worse than waiting for the permission)
 */
export async function describeExecution(
  { stepFunctions, executions = ANY_EXECUTION }: LeaseDependencies,
  executionArn: string,
  call: Call,
): Promise<{ state: ExecutionState; redriven: boolean }> {
  const tried = await attempt(await stepFunctions(), { command: new DescribeExecutionCommand({ executionArn }) }, call);
  if ('output' in tried) {
    const { status = '', redriveCount = 0 } = tried.output;
    return { state: RUNNING.has(status) ? 'running' : 'ended', redriven: redriveCount > 0 };
  }
  const { name } = tried.error;
  if (name === 'ExecutionDoesNotExist') return { state: 'missing', redriven: false };
  const isDenied = name === 'AccessDeniedException' && !isDescribed(executions, executionArn, call);
  if (isDenied || name === 'InvalidArn') return { state: 'foreign', redriven: false };
  throw toHoldfastError(tried.error, reading('Step Functions'), tried.unanswered);
}

/** As `describeExecution`, the state alone. */
export const executionState = async (...asked: Parameters<typeof describeExecution>): Promise<ExecutionState> =>
  (await describeExecution(...asked)).state;

/**
 * Whether an execution whose end was reported goes on all the same. DescribeExecution lags, so right after its end an execution may still show as
 * running: the first pass believes the event. A redriven execution may really run, where the event is a late duplicate of an earlier end. There
 * the second pass decides.
 * @param asked `settled`: whether this is the second pass
 * @throws HoldfastError as `describeExecution`
 */
export async function goesOn(
  dependencies: LeaseDependencies,
  { execution, settled }: { execution: string; settled: boolean },
  call: Call,
): Promise<boolean> {
  const { state, redriven } = await describeExecution(dependencies, execution, call);
  return state === 'running' && (settled || redriven);
}
