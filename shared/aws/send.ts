import { isThrottlingError } from '@smithy/core/retry';
import type { Command, FinalizeHandler, MetadataBearer } from '@smithy/types';
import { HoldfastError } from '../errors.ts';
import type { Call } from './call.ts';

/** What a request does, in the words of an error. */
export interface Operation {
  kind: 'read' | 'write';
  /** For example `table holdfast-prod-leases`. */
  resource: string;
  /** Fields that the caller adds to a retry, so that the retry learns the outcome of this write. */
  retryWith?: Record<string, string>;
}

export const reading = (resource: string): Operation => ({ kind: 'read', resource });

export const writing = (resource: string, retryWith?: Record<string, string>): Operation => ({
  kind: 'write',
  resource,
  ...(retryWith && { retryWith }),
});

/** How long callers should wait before a retry if AWS is down or slow, so that retries do not add to the load. */
const RETRY_AFTER_MS = 1000;

// biome-ignore lint/suspicious/noExplicitAny: any command of any SDK client; OutputOf finds the type of its output
type SdkCommand = Command<any, any, any, any, any>;
// biome-ignore lint/suspicious/noExplicitAny: as above
type OutputOf<C extends SdkCommand> = C extends Command<any, any, any, infer Output, any> ? Output : never;
interface SdkClient {
  send(command: never, options: { abortSignal: AbortSignal; requestTimeout?: number }): Promise<unknown>;
}

export interface AwsRequest<C extends SdkCommand = SdkCommand> {
  command: C;
  operation: Operation;
}

/**
 * Sends a command without a condition. The request ends with the signal of the call.
 * @throws HoldfastError Throttled, Unavailable, or OutcomeUnknown if a write may have landed
 */
export async function send<C extends SdkCommand>(
  client: SdkClient,
  { command, operation }: AwsRequest<C>,
  call: Call,
): Promise<OutputOf<C>> {
  const tried = await attempt(client, { command }, call);
  if ('output' in tried) return tried.output;
  throw toHoldfastError(tried.error, operation, tried.unanswered);
}

/**
 * The outcome of a request. `unanswered`: a try was sent and got no answer, so the write may have landed, or may still
 * land.
 */
export type Attempt<Output> = { output: Output } | { error: SdkError; unanswered: boolean };

interface Tries<C extends SdkCommand> {
  command: C;
  /** How long each try may take, in milliseconds. By default, as long as the client allows. */
  requestTimeout?: number;
  /**
   * Called before each try, because the SDK retries by itself. If it returns true, the try is not sent, and the request
   * fails with the code TOO_LATE.
   */
  tooLate?: (() => boolean) | undefined;
}

/**
 * Sends a command like `send`, and returns an error of AWS instead of throwing it. For code that decides by the error.
 */
export async function attempt<C extends SdkCommand>(
  client: SdkClient,
  { command, tooLate, ...options }: Tries<C>,
  call: Call,
): Promise<Attempt<OutputOf<C>>> {
  const tries = watchTries({ command, tooLate }, call.signal);
  try {
    const output = await client.send(command as never, { abortSignal: call.signal, ...options });
    return { output: output as OutputOf<C> };
  } catch (error) {
    return { error: error as SdkError, unanswered: tries.unanswered };
  }
}

export interface SdkError extends Error {
  $metadata?: { httpStatusCode?: number };
  code?: string;
  /** Node's name of the system call that failed. */
  syscall?: string;
}

/** The error code of a try that was not sent because of `tooLate`. */
export const TOO_LATE = 'TOO_LATE';

/**
 * System calls that come before the request is sent: a try that failed in one of them cannot have landed. The error
 * code alone does not show this, because EHOSTUNREACH can also end a connection that is open.
 */
const BEFORE_SENDING = new Set(['getaddrinfo', 'connect']);

/**
 * What the SDK's message says if it could not connect in time. The SDK's two timeouts differ only in their messages.
 */
const NO_CONNECTION = /did not establish a connection/;

/**
 * Notes whether a try of the command was sent and got no answer. The last error does not show this: if the reply to a
 * write is lost and its retries are throttled, the request ends with a throttling error, and yet the write may have
 * landed.
 */
function watchTries({ command, tooLate }: Tries<SdkCommand>, signal: AbortSignal): { unanswered: boolean } {
  const tries = { unanswered: false };
  command.middlewareStack.add(
    (next: FinalizeHandler<object, MetadataBearer>) => async (args) => {
      if (signal.aborted) throw Object.assign(new Error('no time left'), { name: 'AbortError' });
      if (tooLate?.()) throw Object.assign(new Error('it is too late to send this'), { code: TOO_LATE });
      try {
        return await next(args);
      } catch (error) {
        if (!isAnswer(error as SdkError)) tries.unanswered = true;
        throw error;
      }
    },
    // A step of low priority runs inside the SDK's retry loop, so this code sees every try.
    { step: 'finalizeRequest', priority: 'low', name: 'watchTries' },
  );
  return tries;
}

/**
 * Whether the error shows that the try did not write: AWS answered with a 4xx or by throttling (such as S3's SlowDown,
 * a 503), or the try was never sent. After another 5xx, or a success with an unreadable body, the write may have
 * landed.
 */
function isAnswer(error: SdkError): boolean {
  const status = error.$metadata?.httpStatusCode;
  if (status !== undefined) return (status >= 400 && status < 500) || isThrottlingError(error as never);
  return BEFORE_SENDING.has(error.syscall ?? '') || error.code === 'ECONNREFUSED' || NO_CONNECTION.test(error.message);
}

/**
 * The documented error for a failed request. The sender handles failures that it expects, such as a failed condition,
 * before it calls this.
 */
export function toHoldfastError(error: SdkError, operation: Operation, unanswered: boolean): HoldfastError {
  if (unanswered && operation.kind === 'write') return outcomeUnknown(operation, error);
  const throttled = isThrottlingError(error as never) || error.name === 'TransactionConflictException';
  return new HoldfastError(
    throttled ? 'Throttled' : 'Unavailable',
    throttled
      ? `${operation.resource} throttles requests: send the call again later`
      : reason(error, operation.resource),
    { retryAfterMs: RETRY_AFTER_MS, cause: error },
  );
}

/** @param context further fields of the error */
export function outcomeUnknown(
  { resource, retryWith = {} }: Operation,
  cause: unknown,
  context: Record<string, unknown> = {},
): HoldfastError {
  return new HoldfastError(
    'OutcomeUnknown',
    `a write to ${resource} was sent and has no response: send the same call again`,
    {
      ...context,
      retryWith,
      retryAfterMs: RETRY_AFTER_MS,
      cause,
    },
  );
}

/**
 * Adds `retryWith` to an error after which the caller needs these fields to learn the outcome by a retry: to
 * OutcomeUnknown, and to Throttled and Unavailable if the call has a ticket or a slot. Throws every other error
 * unchanged.
 */
export const addRetryWith =
  (retryWith: { requestId: string; ticket?: string; slot?: string }) =>
  (error: unknown): never => {
    if (!(error instanceof HoldfastError)) throw error;
    const isRefusedForNow = error.code === 'Throttled' || error.code === 'Unavailable';
    if (error.code !== 'OutcomeUnknown' && !(isRefusedForNow && (retryWith.ticket ?? retryWith.slot) !== undefined))
      throw error;
    const { code, message, context, cause } = error;
    throw new HoldfastError(code, message, {
      ...context,
      retryWith: { ...(context.retryWith as object), ...retryWith },
      cause,
    });
  };

/**
 * Why a request failed, in words for the caller. AWS's own message can contain keys and item values, so only the log
 * shows it, as the cause.
 */
function reason(error: SdkError, resource: string): string {
  // S3's answer to a HEAD does not have a body, so only the status shows the denial.
  const isDenied = error.$metadata?.httpStatusCode === 403 || error.name === 'AccessDeniedException';
  if (isDenied) return `access to ${resource} is denied: check the IAM permissions`;
  switch (error.name) {
    case 'ResourceNotFoundException':
    case 'NoSuchBucket':
      return `${resource} does not exist in this region: check the name and the region`;
    case 'AbortError':
      return `no time is left in this invocation, and nothing was written to ${resource}: send the call again`;
    default:
      return `${resource} cannot be used (${error.code ?? error.name}): send the call again later`;
  }
}
