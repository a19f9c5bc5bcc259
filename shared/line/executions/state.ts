import { DescribeExecutionCommand } from '@aws-sdk/client-sfn';
import type { Call } from '../../aws/call.ts';
import { attempt, reading, toHoldfastError } from '../../aws/send.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import { ANY_EXECUTION, isDescribed, isDurable } from './allowed.ts';
import { askAgain } from './ask-again.ts';
import type { Described, ExecutionState } from './described.ts';
import { describeDurableExecution } from './durable-execution.ts';

/** An execution in either state may go on: Step Functions itself continues one with PENDING_REDRIVE. */
const RUNNING = new Set(['RUNNING', 'PENDING_REDRIVE']);

/**
 * Describes an execution of Step Functions or of a durable function. Eventually consistent: the last moments of the execution may not show yet.
 * @throws HoldfastError Throttled, Unavailable (also if access to an execution of our own is denied: freeing the lease
 * of an execution that runs would be worse than waiting for the permission)
 */
export async function describeExecution(
  dependencies: LeaseDependencies,
  executionArn: string,
  call: Call,
): Promise<Described> {
  if (isDurable(executionArn)) return describeDurableExecution(dependencies, executionArn, call);
  const { executions = ANY_EXECUTION, stepFunctions } = dependencies;
  const client = await stepFunctions();
  const send = () => attempt(client, { command: new DescribeExecutionCommand({ executionArn }) }, call);
  const tried = await askAgain(dependencies, send, call);
  if ('output' in tried) {
    const { status = '', stopDate, redriveDate } = tried.output;
    const state = RUNNING.has(status) ? 'running' : 'ended';
    return { state, status, stoppedAt: stopDate?.getTime(), redrivenAt: redriveDate?.getTime() };
  }
  const { name } = tried.error;
  if (name === 'ExecutionDoesNotExist') return { state: 'missing' };
  const isDenied = name === 'AccessDeniedException' && !isDescribed(executions, executionArn, call);
  if (isDenied || name === 'InvalidArn') return { state: 'foreign' };
  throw toHoldfastError(tried.error, reading('Step Functions'), tried.unanswered);
}

/** As `describeExecution`, the state alone. */
export const executionState = async (...asked: Parameters<typeof describeExecution>): Promise<ExecutionState> =>
  (await describeExecution(...asked)).state;

/** How an execution ended. `failed`: with any status but SUCCEEDED, or with one that is not known. Functions that it started may still work. */
export type End = 'succeeded' | 'failed';

export const endBy = (status: string | undefined): End => (status === 'SUCCEEDED' ? 'succeeded' : 'failed');

/** What became of the work under a grant. `none`: its target never started. `unknown`: the start of its target may be on the way. */
export type Work = End | 'none' | 'running' | 'unknown';

/**
 * What became of the work under a grant whose execution has ended. If the grant has a target, the target is the work.
 * @throws HoldfastError as `describeExecution`
 */
export async function workOf(
  dependencies: LeaseDependencies,
  { target, end, settled }: { target: string | undefined; end: End; settled: boolean },
  call: Call,
): Promise<Work> {
  if (target === undefined) return end;
  const { state, status } = await describeExecution(dependencies, target, call);
  if (state === 'running') return state;
  if (state === 'ended') return endBy(status);
  if (!settled) return 'unknown';
  return state === 'missing' ? 'none' : 'failed';
}

/** After this time every call of an ended execution has ended, and a target that does not exist will never start. SQS delays the second pass by as much. */
export const SETTLED_MS = 90_000;
