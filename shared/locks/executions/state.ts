import { DescribeExecutionCommand } from '@aws-sdk/client-sfn';
import { isServerError, isThrottlingError, isTransientError } from '@smithy/core/retry';
import type { Call } from '../../aws/call.ts';
import { type Attempt, attempt, reading, toHoldfastError } from '../../aws/send.ts';
import { HoldfastError } from '../../errors.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import { ANY_EXECUTION, isDescribed, isDurable } from './allowed.ts';

/** The states in which an execution may go on. Step Functions itself continues an execution with PENDING_REDRIVE. */
const RUNNING = new Set(['RUNNING', 'PENDING_REDRIVE']);

const MISSING = new Set(['ExecutionDoesNotExist', 'ResourceNotFoundException']);
const FOREIGN = new Set(['InvalidArn', 'InvalidParameterValueException']);

/**
 * Describes an execution of Step Functions or of a durable function. The answer is eventually consistent, so it may not
 * show the last moments.
 * @throws HoldfastError Throttled, Unavailable (access may be denied to an execution that the deployment should be able
 * to describe: to free the lease of an execution that runs would be worse than to wait for the permission)
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

/** Asks only for the state of an execution. @throws as `describeExecution` */
export const executionState = async (...parameters: Parameters<typeof describeExecution>): Promise<ExecutionState> =>
  (await describeExecution(...parameters)).state;

/**
 * How an execution ended. `failed`: with any other status than SUCCEEDED, or with an unknown one. Functions that it
 * started may still work.
 */
export type End = 'succeeded' | 'failed';

export const endOfStatus = (status: string | undefined): End => (status === 'SUCCEEDED' ? 'succeeded' : 'failed');

/**
 * What became of the work under a grant. `none`: the target never started. `unknown`: the target may be about to start.
 */
export type Work = End | 'none' | 'running' | 'unknown';

/**
 * Finds out what became of the work under a grant whose execution has ended. If the grant has a target, the target does
 * the work.
 * @throws HoldfastError as `describeExecution`
 */
export async function workOf(
  dependencies: LeaseDependencies,
  { target, end, haveEnded }: { target: string | undefined; end: End; haveEnded: boolean },
  call: Call,
): Promise<Work> {
  if (target === undefined) return end;
  const { state, status } = await describeExecution(dependencies, target, call);
  if (state === 'running') return state;
  if (state === 'ended') return endOfStatus(status);
  if (!haveEnded) return 'unknown';
  return state === 'missing' ? 'none' : 'failed';
}

/**
 * How long after its end an execution may still have calls under way, or a target that is about to start. The second
 * pass comes after this time.
 */
export const CALLS_END_WITHIN_MS = 90_000;

/**
 * The state of an execution. `missing`: it never started, or ended longer ago than AWS remembers. `foreign`: AWS does
 * not say, because the execution belongs to another account or region, to an Express workflow, or to a state machine or
 * function that the deployment may not describe. Third-party clients may write records that name such executions.
 */
export type ExecutionState = 'running' | 'ended' | 'missing' | 'foreign';

export interface Described {
  state: ExecutionState;
  /** The status at AWS, unless the execution is missing or foreign. */
  status?: string | undefined;
  /** When the execution ended, in epoch milliseconds. */
  stoppedAt?: number | undefined;
  /** When the execution was last redriven after an end, in epoch milliseconds. */
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

/**
 * Asks GetDurableExecution, without the data of the execution. Such an execution is never redriven.
 * @throws HoldfastError Unavailable
 */
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

/**
 * The longest pauses before a question is sent again, in milliseconds. An account may ask about fifteen times a second.
 */
const ASK_PAUSES_MS = [400, 1200];

const temporaryFailures = [isThrottlingError, isTransientError, isServerError];

/**
 * Sends a question, and sends it again after temporary failures: the client itself makes a single try, because messages
 * to tasks must not be repeated.
 */
async function askAgain({ clock, ids }: LeaseDependencies, send: Ask, call: Call): Promise<Attempt<Described>> {
  const pauses = ASK_PAUSES_MS.values();
  for (;;) {
    const tried = await send();
    if ('output' in tried || !temporaryFailures.some((isFailure) => isFailure(tried.error as never))) return tried;
    const { value: maxMs } = pauses.next();
    if (maxMs === undefined || call.timeLeftMs() <= maxMs) return tried;
    await clock.sleep(Math.round(maxMs * (0.5 + ids.random() / 2)));
  }
}
