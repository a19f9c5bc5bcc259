import { DescribeExecutionCommand, SendTaskFailureCommand, SendTaskSuccessCommand } from '@aws-sdk/client-sfn';
import type { Call } from '../../aws/call.ts';
import { attempt, toHoldfastError } from '../../aws/send.ts';
import type { HoldfastError } from '../../errors.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import type { LeaseRecord } from '../record.ts';
import { grantView } from '../views.ts';
import type { Ticket } from './tickets.ts';

/**
 * What became of a message to a task. `gone`: the task takes none any more. It timed out, ended, or had been told
 * before. `unanswered`: all else; it may have been delivered.
 */
export type Delivery = 'delivered' | 'gone' | 'unanswered';

const GONE = new Set(['TaskTimedOut', 'TaskDoesNotExist', 'InvalidToken']);

/**
 * Wakes the task with its grant, as acquire would have answered. Sent once (aws/step-functions.ts).
 * @param record the grant, as it stands on record
 */
export function notifyGranted(
  dependencies: LeaseDependencies,
  { taskToken, parkedAt }: Ticket,
  record: LeaseRecord,
  call: Call,
  { repeated } = { repeated: false },
): Promise<Delivery> {
  const now = dependencies.clock.now();
  const waitedMs = Math.max(0, (record.acquiredAt ?? now) - parkedAt);
  const output = JSON.stringify({ ...grantView(record, now), waitedMs, repeated });
  return tell(dependencies, new SendTaskSuccessCommand({ taskToken, output }), call);
}

/** Ends the task's waiting with one of the documented errors. Its problem has the ticket in place of a trace id. */
export function notifyFailed(
  dependencies: LeaseDependencies,
  { taskToken, ticket }: Ticket,
  error: HoldfastError,
  call: Call,
): Promise<Delivery> {
  const cause = JSON.stringify(error.problem(ticket));
  return tell(dependencies, new SendTaskFailureCommand({ taskToken, error: error.code, cause }), call);
}

async function tell(
  { stepFunctions }: LeaseDependencies,
  command: SendTaskSuccessCommand | SendTaskFailureCommand,
  call: Call,
): Promise<Delivery> {
  const tried = await attempt(await stepFunctions(), command, call);
  if ('output' in tried) return 'delivered';
  return GONE.has(tried.error.name) ? 'gone' : 'unanswered';
}

/** `missing`: never started, or ended longer ago than Step Functions remembers. */
export type ExecutionState = 'running' | 'ended' | 'missing';

/** Both may go on; an execution of PENDING_REDRIVE does so by itself. */
const RUNNING = new Set(['RUNNING', 'PENDING_REDRIVE']);

/**
 * Eventually consistent: what happened in the last moments may be missing.
 * @throws HoldfastError Throttled, Unavailable
 */
export const executionState = async (...asked: Parameters<typeof describeExecution>): Promise<ExecutionState> =>
  (await describeExecution(...asked)).state;

/** As above, and whether it has ended before and was redriven. */
export async function describeExecution(
  { stepFunctions }: LeaseDependencies,
  executionArn: string,
  call: Call,
): Promise<{ state: ExecutionState; redriven: boolean }> {
  const tried = await attempt(await stepFunctions(), new DescribeExecutionCommand({ executionArn }), call);
  if ('output' in tried) {
    const { status = '', redriveCount = 0 } = tried.output;
    return { state: RUNNING.has(status) ? 'running' : 'ended', redriven: redriveCount > 0 };
  }
  if (tried.error.name === 'ExecutionDoesNotExist') return { state: 'missing', redriven: false };
  throw toHoldfastError(tried.error, { kind: 'read', resource: 'Step Functions' }, tried.unanswered);
}
