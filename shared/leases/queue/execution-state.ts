import { DescribeExecutionCommand, type DescribeExecutionCommandOutput } from '@aws-sdk/client-sfn';
import { isServerError, isThrottlingError, isTransientError } from '@smithy/core/retry';
import type { Call } from '../../aws/call.ts';
import { type Attempt, attempt, reading, type SdkError, toHoldfastError } from '../../aws/send.ts';
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

/** DescribeExecution is sent again after each of these pauses, in milliseconds: an account may call it some fifteen times a second. */
const PAUSES_MS = [400, 1200];

/**
 * Eventually consistent: the last moments of the execution may not show yet.
 * @returns the state, and whether the execution had ended before and was redriven
 * @throws HoldfastError Throttled, Unavailable (also if access to an execution of our own is denied: freeing the lease
 * of an execution that runs would be worse than waiting for the permission)
 */
export async function describeExecution(
  dependencies: LeaseDependencies,
  executionArn: string,
  call: Call,
): Promise<{ state: ExecutionState; redriven: boolean }> {
  const { executions = ANY_EXECUTION } = dependencies;
  const tried = await ask(dependencies, executionArn, call);
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

/** A read may be sent again, unlike a message to a task, for which the client has a single try. */
async function ask(
  { stepFunctions, clock, ids }: LeaseDependencies,
  executionArn: string,
  call: Call,
): Promise<Attempt<DescribeExecutionCommandOutput>> {
  const client = await stepFunctions();
  const pauses = PAUSES_MS.values();
  for (;;) {
    const tried = await attempt(client, { command: new DescribeExecutionCommand({ executionArn }) }, call);
    if ('output' in tried || !mayPass(tried.error)) return tried;
    const { value: mostMs } = pauses.next();
    if (mostMs === undefined || call.timeLeftMs() <= mostMs) return tried;
    await clock.sleep(Math.round(mostMs * (0.5 + ids.random() / 2)));
  }
}

const mayPass = (error: SdkError): boolean =>
  [isThrottlingError, isTransientError, isServerError].some((isSuch) => isSuch(error as never));

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
