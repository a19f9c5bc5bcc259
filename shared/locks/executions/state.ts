import { DescribeExecutionCommand } from '@aws-sdk/client-sfn';
import { isServerError, isThrottlingError, isTransientError } from '@smithy/core/retry';
import type { Call } from '../../aws/call.ts';
import { type Attempt, attempt, reading, toHoldfastError } from '../../aws/send.ts';
import { HoldfastError } from '../../errors.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import { ANY_EXECUTION, isDescribed, isDurable } from './allowed.ts';

/** An execution in either state may go on: Step Functions itself continues one with PENDING_REDRIVE. */
const RUNNING = new Set(['RUNNING', 'PENDING_REDRIVE']);

const MISSING = new Set(['ExecutionDoesNotExist', 'ResourceNotFoundException']);
const FOREIGN = new Set(['InvalidArn', 'InvalidParameterValueException']);

/**
 * Describes an execution of Step Functions or of a durable function. Eventually consistent: the last moments of the execution may not show yet.
 * @throws HoldfastError Throttled, Unavailable (also if access to an execution of our own is denied: freeing the lease
 * of an execution that runs would be worse than waiting for the permission)
 */
export async function describeExecution(dependencies: LeaseDependencies, arn: string, call: Call): Promise<Described> {
  const question = isDurable(arn) ? askLambda(dependencies, arn, call) : askStepFunctions(dependencies, arn, call);
  const tried = await askAgain(dependencies, await question, call);
  if ('output' in tried) return tried.output;
  const { name } = tried.error;
  if (MISSING.has(name)) return { state: 'missing' };
  const { executions = ANY_EXECUTION } = dependencies;
  const isDenied = name === 'AccessDeniedException' && !isDescribed(executions, arn, call);
  if (isDenied || FOREIGN.has(name)) return { state: 'foreign' };
  const service = isDurable(arn) ? 'Lambda' : 'Step Functions';
  throw toHoldfastError(tried.error, reading(service), tried.unanswered);
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

/**
 * `missing`: the execution never started, or ended longer ago than AWS remembers. `foreign`: AWS does not say, because the execution belongs to another
 * account or region, to an Express workflow, or to a state machine or a function that the deployment may not describe. Third-party
 * clients may write records that name such executions.
 */
export type ExecutionState = 'running' | 'ended' | 'missing' | 'foreign';

/** What AWS says about an execution. */
export interface Described {
  state: ExecutionState;
  /** Undefined if AWS says nothing about the execution. */
  status?: string | undefined;
  /** Epoch milliseconds. */
  stoppedAt?: number | undefined;
  /** When the execution was last redriven, after an earlier end. Epoch milliseconds. */
  redrivenAt?: number | undefined;
}

type Ask = () => Promise<Attempt<Described>>;

async function askStepFunctions({ stepFunctions }: LeaseDependencies, arn: string, call: Call): Promise<Ask> {
  const client = await stepFunctions();
  return async () => {
    const tried = await attempt(client, { command: new DescribeExecutionCommand({ executionArn: arn }) }, call);
    if ('error' in tried) return tried;
    const { status = '', stopDate, redriveDate } = tried.output;
    const state = RUNNING.has(status) ? 'running' : 'ended';
    return { output: { state, status, stoppedAt: stopDate?.getTime(), redrivenAt: redriveDate?.getTime() } };
  };
}

/** By GetDurableExecution without the data of the execution. Such an execution is never redriven. @throws HoldfastError Unavailable */
async function askLambda({ durableFunctions }: LeaseDependencies, arn: string, call: Call): Promise<Ask> {
  const lambda = await durableFunctions?.();
  if (!lambda)
    throw new HoldfastError('Unavailable', 'this process cannot ask Lambda about executions', { retryAfterMs: 1000 });
  return async () => {
    const tried = await attempt(lambda.client, { command: lambda.execution(arn) }, call);
    if ('error' in tried) return tried;
    const { Status: status = '', EndTimestamp: end } = tried.output;
    return { output: { state: status === 'RUNNING' ? 'running' : 'ended', status, stoppedAt: end?.getTime() } };
  };
}

/** A question about an execution is sent again after each of these pauses, in milliseconds: an account may ask some fifteen times a second. */
const ASK_PAUSES_MS = [400, 1200];

const MAY_PASS = [isThrottlingError, isTransientError, isServerError];

/** A read may be sent again, unlike a message to a task, for which the client has a single try. */
async function askAgain({ clock, ids }: LeaseDependencies, send: Ask, call: Call): Promise<Attempt<Described>> {
  const pauses = ASK_PAUSES_MS.values();
  for (;;) {
    const tried = await send();
    if ('output' in tried || !MAY_PASS.some((isSuch) => isSuch(tried.error as never))) return tried;
    const { value: mostMs } = pauses.next();
    if (mostMs === undefined || call.timeLeftMs() <= mostMs) return tried;
    await clock.sleep(Math.round(mostMs * (0.5 + ids.random() / 2)));
  }
}
