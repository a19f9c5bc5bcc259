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

/** How much time a call must have left to send a message. With less, it leaves the message to the schedule. */
export const NOTIFY_MS = 500;

/** What became of a message about a grant. `overtaken`: another call has changed the grant, so nothing was sent. */
export interface Notified {
  outcome: NotifyOutcome | 'overtaken';
  record: KeyRecord;
}

/**
 * Measures the time from the end of a grant until the next holder has its own. A holder that joined after that end is
 * not measured, because the key was free. The time after an expiry is not measured, because no call writes at the
 * moment when a grant expires.
 */
export function measureHandOff(
  { previous, ticket }: { previous?: EndedGrant | undefined; ticket?: string | undefined },
  now: number,
  call: Call,
): void {
  if (!previous || previous.ended === 'expired' || ticket === undefined || previous.at < parkedAtOf(ticket)) return;
  call.measure?.('HandOffMs', Math.max(0, now - previous.at)); // the two instants may be of two clocks
}

/**
 * Logs a grant from the line. Otherwise no log would show the grant of a task, or of a caller that crashed before it
 * claimed the grant.
 */
export function logGrant(key: string, { holder, fence, ticket, previous }: HolderEntry, call: Call): void {
  call.log?.({ message: 'granted', key, holder, fence, ticket, previous: previousView(previous) });
}

/** Logs the grants of a hand-off to calls. Grants to tasks are logged with the messages, which may come later. */
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

/**
 * Fails the task with one of the documented errors, and leaves its row. The problem names the ticket in place of a
 * trace id.
 */
export async function sendError(
  dependencies: LeaseDependencies,
  { waiter, error }: { waiter: WaitingTask; error: HoldfastError },
  call: Call,
): Promise<NotifyOutcome> {
  const key = nameWithin(waiter.namespace, waiter.key);
  const problem = { ...error.problem(waiter.ticket), key, detail: withCallersKey(error.message, waiter.key, key) };
  const outcome = await sendMessage(dependencies, { waiter, message: { problem } }, call);
  return outcome === 'throttled' ? 'unanswered' : outcome;
}

/**
 * Fails the task, and deletes its row. If the message is unanswered, the row stays, because the task might never end
 * otherwise.
 */
export async function failTask(
  dependencies: LeaseDependencies,
  failing: { waiter: WaitingTask; error: HoldfastError },
  call: Call,
): Promise<NotifyOutcome> {
  const outcome = await sendError(dependencies, failing, call);
  if (outcome !== 'unanswered') await deleteWaiter(dependencies, failing.waiter, call);
  return outcome;
}

/**
 * Fails a task, and throws if the message is unanswered, so that the grant of the task does not end before the task has
 * the message.
 * @throws HoldfastError Throttled, OutcomeUnknown, Unavailable if the message is unanswered. Its row then stays
 */
export async function failTaskOrThrow(
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
 * Fails the task of a grant that an operator breaks, if its row is still there: then it may not have been notified of
 * its grant (docs/protocols/locks.md#break). The operator's call does not fail if the task cannot be notified.
 * @returns `accepted`: the task has ended, so it does not work under the grant, which can end at once. `gone`: the
 * task was notified before, or has ended. `unanswered`: the row stays, and the next call or the schedule sends again.
 * Undefined if the grant has no task to notify
 * @throws HoldfastError Throttled, OutcomeUnknown, Unavailable by DynamoDB
 */
export async function failUnnotifiedTask(
  dependencies: LeaseDependencies,
  { rowKey, error }: { rowKey: WaiterKey; error: HoldfastError },
  call: Call,
): Promise<NotifyOutcome | undefined> {
  const row = await getWaiter(dependencies, rowKey, call);
  if (!row || !isTask(row)) return undefined;
  if (!(await canNotify(dependencies, row))) return 'unanswered';
  return failTask(dependencies, { waiter: row, error }, call);
}

/**
 * The outcome of a message to a task or a callback. `gone`: it does not accept a message any more, because it timed
 * out, ended, or was notified before. `unanswered`: every other failure. The message may have arrived.
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
 * Whether this process can notify the waiter. A process with directTransport may have no client for that. It must not
 * grant the key to such a waiter.
 * @throws every error that is not a HoldfastError
 */
export const canNotify = (
  dependencies: LeaseDependencies,
  { callbackId }: Pick<WaitingTask, 'callbackId'>,
): Promise<boolean> => hasClient(dependencies, callbackId !== undefined);

/**
 * Whether this process has a client for durable functions, or else for Step Functions. Creates the client.
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
 * Sends one message to a task or a callback. There is a single try, even if the client of a directTransport would
 * retry: a second try of a message that landed is answered `gone` (aws/step-functions.ts).
 * @returns `throttled`: the message has not arrived
 */
export async function sendMessage(
  dependencies: LeaseDependencies,
  { waiter, message }: { waiter: WaitingTask; message: TaskMessage },
  call: Call,
): Promise<NotifyOutcome | 'throttled'> {
  if (waiter.callbackId !== undefined)
    return completeCallback(dependencies, { callbackId: waiter.callbackId, message }, call);
  const { taskToken } = waiter;
  const command =
    'output' in message
      ? new SendTaskSuccessCommand({ taskToken, ...message })
      : new SendTaskFailureCommand({ taskToken, error: message.problem.code, cause: JSON.stringify(message.problem) });
  return sendToTask(dependencies, command, call);
}

/** Sends a heartbeat, the only message that does not end the task. */
export const sendHeartbeat = (
  dependencies: LeaseDependencies,
  taskToken: string,
  call: Call,
): Promise<NotifyOutcome | 'throttled'> => sendToTask(dependencies, new SendTaskHeartbeatCommand({ taskToken }), call);

async function sendToTask(
  { stepFunctions }: LeaseDependencies,
  command: SendTaskSuccessCommand | SendTaskFailureCommand | SendTaskHeartbeatCommand,
  call: Call,
): Promise<NotifyOutcome | 'throttled'> {
  const tried = await attempt(await stepFunctions(), { command, tooLate: singleTry() }, call);
  return notifyOutcomeOf(tried, ({ name }) => TASK_GONE.has(name));
}

/** Sends a message to a callback (docs/protocols/tasks.md#callbacks). */
async function completeCallback(
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

/**
 * Logs a failed hand-off, and leaves the line to the next call on the key or to the schedule.
 * @throws every error that is not a HoldfastError
 */
export function logFailedHandOff(error: unknown): undefined {
  if (!(error instanceof HoldfastError)) throw error;
  logLine('WARN', { message: 'the hand-off of a key failed: the schedule repeats it', cause: error.message });
}
