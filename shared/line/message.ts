import { SendTaskFailureCommand, SendTaskHeartbeatCommand, SendTaskSuccessCommand } from '@aws-sdk/client-sfn';
import { isThrottlingError } from '@smithy/core/retry';
import type { Call } from '../aws/call.ts';
import { type Attempt, attempt, type SdkError } from '../aws/send.ts';
import { HoldfastError, type Problem } from '../errors.ts';
import type { LeaseDependencies } from './dependencies.ts';
import type { WaitingTask } from './waiters.ts';

/**
 * The outcome of a message to a task or a callback. `gone`: it accepts no message any more, because it timed out, ended, or was notified before.
 * `unanswered`: every other failure. The message may have been delivered.
 */
export type Delivery = 'delivered' | 'gone' | 'unanswered';

/** A grant as JSON, or the problem with which the wait ends. */
export type Message = { output: string } | { problem: Problem };

const TASK_GONE = new Set(['TaskTimedOut', 'TaskDoesNotExist', 'InvalidToken']);
const CALLBACK_GONE = new Set([
  'CallbackTimeoutException',
  'ResourceNotFoundException',
  'InvalidParameterValueException',
]);

/**
 * True if this process can notify the waiter. A process with directTransport may have no client: such a process must not grant to a waiter that it
 * cannot notify.
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
  { waiter, message }: { waiter: WaitingTask; message: Message },
  call: Call,
): Promise<Delivery | 'throttled'> {
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
): Promise<Delivery | 'throttled'> => toTask(dependencies, new SendTaskHeartbeatCommand({ taskToken }), call);

async function toTask(
  { stepFunctions }: LeaseDependencies,
  command: SendTaskSuccessCommand | SendTaskFailureCommand | SendTaskHeartbeatCommand,
  call: Call,
): Promise<Delivery | 'throttled'> {
  const tried = await attempt(await stepFunctions(), { command, tooLate: onlyOnce() }, call);
  return deliveryOf(tried, ({ name }) => TASK_GONE.has(name));
}

/** docs/protocols/tasks.md#callbacks */
async function toCallback(
  { durableFunctions }: LeaseDependencies,
  { callbackId, message }: { callbackId: string; message: Message },
  call: Call,
): Promise<Delivery | 'throttled'> {
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
  const tried = await attempt(lambda.client, { command, tooLate: onlyOnce() }, call);
  return deliveryOf(tried, ({ name, $metadata }) => CALLBACK_GONE.has(name) || $metadata?.httpStatusCode === 404);
}

function onlyOnce(): () => boolean {
  let tries = 0;
  return () => tries++ > 0;
}

function deliveryOf(tried: Attempt<unknown>, isGone: (error: SdkError) => boolean): Delivery | 'throttled' {
  if ('output' in tried) return 'delivered';
  if (isGone(tried.error)) return 'gone';
  return isThrottlingError(tried.error as never) && !tried.unanswered ? 'throttled' : 'unanswered';
}
