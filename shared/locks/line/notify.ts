import { SendTaskFailureCommand, SendTaskHeartbeatCommand, SendTaskSuccessCommand } from '@aws-sdk/client-sfn';
import { isThrottlingError } from '@smithy/core/retry';
import type { Call } from '../../aws/call.ts';
import { type Attempt, attempt, type SdkError } from '../../aws/send.ts';
import { HoldfastError, type Problem } from '../../errors.ts';
import { nameWithin, withCallersKey } from '../../namespace.ts';
import { logLine } from '../../surroundings/log.ts';
import { type EndedGrant, previousView } from '../calls/types.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import { entryOf, type HolderEntry, type KeyRecord } from '../record/record.ts';
import {
  deleteWaiter,
  getWaiter,
  isTask,
  parkedAtOf,
  type Waiter,
  type WaiterKey,
  type WaitingTask,
} from './waiters.ts';

/** A call with less time left than this does not notify a task. */
export const NOTIFY_MS = 500;

/** `overtaken`: another call has changed the grant, and no message was sent. */
export interface Notified {
  outcome: NotifyOutcome | 'overtaken';
  record: KeyRecord;
}

/**
 * Measures the time from the end of a grant to the next holder, if that holder was in line. Does not measure after an expiry, because no call wrote
 * the time of the expiry. Does not measure a holder that joined after the end, because the lock was free until then.
 * @param record the grant from the line that its holder has just received
 */
export function measureHandOff(
  { previous, ticket }: { previous?: EndedGrant | undefined; ticket?: string | undefined },
  now: number,
  call: Call,
): void {
  if (!previous || previous.ended === 'expired' || ticket === undefined || previous.at < parkedAtOf(ticket)) return;
  call.measure?.('HandOffMs', Math.max(0, now - previous.at)); // the two instants may be of two clocks
}

/** Logs a grant from the line. A task sends no call that would log its grant, and a caller may be gone before it claims its own. */
export function logGrant(key: string, { holder, fence, ticket, previous }: HolderEntry, call: Call): void {
  call.log?.({ message: 'granted', key, holder, fence, ticket, previous: previousView(previous) });
}

/** Logs the grants of a hand-off to calls. Those to tasks are logged with the messages, which may come later. */
export function logGrants(
  record: KeyRecord,
  { nextGrants }: { nextGrants: readonly { waiter: Waiter; grant: { name: string } }[] },
  call: Call,
): void {
  for (const { waiter, grant } of nextGrants) {
    const entry = isTask(waiter) ? undefined : entryOf(record, grant.name);
    if (entry?.ticket === waiter.ticket) logGrant(record.key, entry, call);
  }
}

/** Ends the task with one of the documented errors. Its problem has the ticket in place of a trace id. */
export async function notifyFailed(
  dependencies: LeaseDependencies,
  { waiter, error }: { waiter: WaitingTask; error: HoldfastError },
  call: Call,
): Promise<NotifyOutcome> {
  const key = nameWithin(waiter.namespace, waiter.key);
  const problem = { ...error.problem(waiter.ticket), key, detail: withCallersKey(error.message, waiter.key, key) };
  const outcome = await sendMessage(dependencies, { waiter, message: { problem } }, call);
  return outcome === 'throttled' ? 'unanswered' : outcome;
}

/** Fails the task, and deletes its waiter. If the message is unanswered, the waiter stays, because the task might never end otherwise. */
export async function failTask(
  dependencies: LeaseDependencies,
  failing: { waiter: WaitingTask; error: HoldfastError },
  call: Call,
): Promise<NotifyOutcome> {
  const outcome = await notifyFailed(dependencies, failing, call);
  if (outcome !== 'unanswered') await deleteWaiter(dependencies, failing.waiter, call);
  return outcome;
}

/**
 * Fails a task whose grant must end before the task was notified.
 * @throws HoldfastError Throttled, OutcomeUnknown, Unavailable if the message is unanswered: the ticket stays, or the task would never end
 */
export async function endTask(
  dependencies: LeaseDependencies,
  { waiter, error }: { waiter: WaitingTask; error: HoldfastError },
  call: Call,
): Promise<NotifyOutcome> {
  const outcome = await failTask(dependencies, { waiter, error }, call);
  if (outcome === 'unanswered')
    throw new HoldfastError(
      'Unavailable',
      `the task may not have been notified that its grant was ${error.context.reason}: send the call again`,
      { retryAfterMs: 1000 },
    );
  return outcome;
}

/**
 * Ends the task of a grant that an operator breaks with this error, if its ticket is still there: that task may not have been notified
 * (docs/protocols/locks.md#break). The operator's call does not fail if the task cannot be notified.
 * @returns `accepted`: the task took this message. Then no holder works under the grant, so the grant can end at once. `gone`: it was notified before,
 * or has ended. `unanswered`: its ticket stays, and the next call or the schedule sends again. Undefined if the grant has no task to notify
 * @throws HoldfastError Throttled, OutcomeUnknown, Unavailable by DynamoDB
 */
export async function endUnnotified(
  dependencies: LeaseDependencies,
  { waiter: ticket, error }: { waiter: WaiterKey; error: HoldfastError },
  call: Call,
): Promise<NotifyOutcome | undefined> {
  const row = await getWaiter(dependencies, ticket, call);
  if (!row || !isTask(row)) return undefined;
  if (!(await canNotify(dependencies, row))) return 'unanswered';
  return failTask(dependencies, { waiter: row, error }, call);
}

/**
 * The outcome of a message to a task or a callback. `gone`: it accepts no message any more, because it timed out, ended, or was notified before.
 * `unanswered`: every other failure. The message may have been delivered.
 */
export type NotifyOutcome = 'accepted' | 'gone' | 'unanswered';

/** A grant as JSON, or the problem with which the wait ends. */
type TaskMessage = { output: string } | { problem: Problem };

const TASK_GONE = new Set(['TaskTimedOut', 'TaskDoesNotExist', 'InvalidToken']);
const CALLBACK_GONE = new Set([
  'CallbackTimeoutException',
  'ResourceNotFoundException',
  'InvalidParameterValueException',
]);

/**
 * True if this process can notify the waiter. A process with directTransport may have no client, and must not grant to a waiter that it cannot notify.
 * @throws every error that is not a HoldfastError
 */
export const canNotify = (
  dependencies: LeaseDependencies,
  { callbackId }: Pick<WaitingTask, 'callbackId'>,
): Promise<boolean> => hasClient(dependencies, callbackId !== undefined);

/**
 * True if this process has a client for durable functions, or for Step Functions. Creates the client.
 * @throws every error that is not a HoldfastError
 */
export async function hasClient(
  { stepFunctions, durableFunctions }: LeaseDependencies,
  isDurable: boolean,
): Promise<boolean> {
  if (isDurable) return (await durableFunctions?.()) !== undefined;
  try {
    await stepFunctions();
    return true;
  } catch (error) {
    if (error instanceof HoldfastError) return false;
    throw error;
  }
}

/**
 * Sends one message to a task or a callback, in a single try, whatever client a caller of directTransport passes (aws/step-functions.ts).
 * @returns `throttled`: the message was not delivered
 */
export async function sendMessage(
  dependencies: LeaseDependencies,
  { waiter, message }: { waiter: WaitingTask; message: TaskMessage },
  call: Call,
): Promise<NotifyOutcome | 'throttled'> {
  if (waiter.callbackId !== undefined)
    return toCallback(dependencies, { callbackId: waiter.callbackId, message }, call);
  const { taskToken } = waiter;
  const command =
    'output' in message
      ? new SendTaskSuccessCommand({ taskToken, ...message })
      : new SendTaskFailureCommand({ taskToken, error: message.problem.code, cause: JSON.stringify(message.problem) });
  return toTask(dependencies, command, call);
}

/** Sends a heartbeat, the only message to a task that does not end the task. */
export const sendHeartbeat = (
  dependencies: LeaseDependencies,
  taskToken: string,
  call: Call,
): Promise<NotifyOutcome | 'throttled'> => toTask(dependencies, new SendTaskHeartbeatCommand({ taskToken }), call);

async function toTask(
  { stepFunctions }: LeaseDependencies,
  command: SendTaskSuccessCommand | SendTaskFailureCommand | SendTaskHeartbeatCommand,
  call: Call,
): Promise<NotifyOutcome | 'throttled'> {
  const tried = await attempt(await stepFunctions(), { command, tooLate: singleTry() }, call);
  return notifyOutcomeOf(tried, ({ name }) => TASK_GONE.has(name));
}

/** docs/protocols/tasks.md#callbacks */
async function toCallback(
  { durableFunctions }: LeaseDependencies,
  { callbackId, message }: { callbackId: string; message: TaskMessage },
  call: Call,
): Promise<NotifyOutcome | 'throttled'> {
  const lambda = await durableFunctions?.();
  if (!lambda) return 'unanswered';
  const command =
    'output' in message
      ? lambda.success(callbackId, message.output)
      : lambda.failure(callbackId, {
          ErrorType: message.problem.code,
          ErrorMessage: message.problem.detail,
          // The SDKs show neither the type of a failed callback nor the code of the error.
          ErrorData: JSON.stringify(message.problem),
        });
  const tried = await attempt(lambda.client, { command, tooLate: singleTry() }, call);
  return notifyOutcomeOf(tried, ({ name, $metadata }) => CALLBACK_GONE.has(name) || $metadata?.httpStatusCode === 404);
}

function singleTry(): () => boolean {
  let tries = 0;
  return () => tries++ > 0;
}

function notifyOutcomeOf(tried: Attempt<unknown>, isGone: (error: SdkError) => boolean): NotifyOutcome | 'throttled' {
  if ('output' in tried) return 'accepted';
  if (isGone(tried.error)) return 'gone';
  return isThrottlingError(tried.error as never) && !tried.unanswered ? 'throttled' : 'unanswered';
}

/** Leaves the line to the next call on the key, or to the schedule. @throws what is no HoldfastError */
export function leftToSchedule(error: unknown): undefined {
  if (!(error instanceof HoldfastError)) throw error;
  logLine('WARN', { message: 'the hand-off of a key failed: the schedule repeats it', cause: error.message });
}
