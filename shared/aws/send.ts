import { isThrottlingError } from '@smithy/core/retry';
import type { Command, FinalizeHandler, MetadataBearer } from '@smithy/types';
import { HoldfastError } from '../errors.ts';
import type { Call } from './call.ts';

/** The action of a request and its resource, which an error then names. */
export interface Operation {
  kind: 'read' | 'write';
  /** For example `table holdfast-prod-leases`. */
  resource: string;
  /** For a write: what to add to the same call so that a retry learns the outcome of this one. */
  retryWith?: Record<string, string>;
}

/** @param resource for example `table holdfast-prod-leases` */
export const reading = (resource: string): Operation => ({ kind: 'read', resource });

/** @param retryWith what to add to the same call so that a retry learns the outcome of this one */
export const writing = (resource: string, retryWith?: Record<string, string>): Operation => ({
  kind: 'write',
  resource,
  ...(retryWith && { retryWith }),
});

/** How long callers should wait for a dependency that is down or slow, so that retries do not add to its load. */
const RETRY_AFTER_MS = 1000;

// biome-ignore lint/suspicious/noExplicitAny: any command of any SDK client; its own types come back in OutputOf
type SdkCommand = Command<any, any, any, any, any>;
// biome-ignore lint/suspicious/noExplicitAny: as above
type OutputOf<C extends SdkCommand> = C extends Command<any, any, any, infer Output, any> ? Output : never;
interface SdkClient {
  send(command: never, options: { abortSignal: AbortSignal; requestTimeout?: number }): Promise<unknown>;
}

/** A command with its action, which an error then names. */
export interface AwsRequest<C extends SdkCommand = SdkCommand> {
  command: C;
  operation: Operation;
}

/**
 * Sends a command without a condition under the invocation's deadline.
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

/** `unanswered` says whether any try was sent and got no answer about itself: the write may have landed, or still land. */
export type Attempt<Output> = { output: Output } | { error: SdkError; unanswered: boolean };

interface Tries<C extends SdkCommand> {
  command: C;
  /** Milliseconds for each try, instead of the client's own. */
  requestTimeout?: number;
  /** Called before each try, because the SDK retries by itself. A try that it refuses fails with the code TOO_LATE. */
  tooLate?: (() => boolean) | undefined;
}

/** As `send`, for code that handles the errors of the service itself: most errors of S3 have only a name. */
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

/** The code of the error with which a try was held back. */
export const TOO_LATE = 'TOO_LATE';

/** A try that failed in one of these calls never left the machine. An open connection can also meet an unreachable host. */
const BEFORE_SENDING = new Set(['getaddrinfo', 'connect']);

/** Only the message distinguishes the two timeouts of the SDK. This is the one before there is a connection. */
const NO_CONNECTION = /did not establish a connection/;

/**
 * Notes whether any try of the command was sent and got no answer about itself. The last error alone does not tell:
 * a lost reply followed by throttled retries ends as a throttling error, and the write may stand all the same.
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
    // Low priority puts it inside the SDK's retry loop, where it sees every try.
    { step: 'finalizeRequest', priority: 'low', name: 'watchTries' },
  );
  return tries;
}

/** A 4xx is a decision not to write, and so is S3's SlowDown. Any other 5xx is not, nor a success without a readable body. */
function isAnswer(error: SdkError): boolean {
  const status = error.$metadata?.httpStatusCode;
  if (status !== undefined) return (status >= 400 && status < 500) || isThrottlingError(error as never);
  return BEFORE_SENDING.has(error.syscall ?? '') || error.code === 'ECONNREFUSED' || NO_CONNECTION.test(error.message);
}

/** The documented error for a failure that no rule explains. A decision of the store, such as a failed condition, is its sender's to handle. */
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
 * Adds `retryWith` to an error after which a repeat of the call learns what became of it: OutcomeUnknown, and if the call has a ticket or a slot, Throttled and
 * Unavailable too. Throws every other error as it is.
 */
export const addRetryWith =
  (retryWith: { requestId: string; ticket?: string; slot?: string }) =>
  (error: unknown): never => {
    if (!(error instanceof HoldfastError)) throw error;
    const isUnsettled = error.code === 'Throttled' || error.code === 'Unavailable';
    if (error.code !== 'OutcomeUnknown' && !(isUnsettled && (retryWith.ticket ?? retryWith.slot) !== undefined))
      throw error;
    const { code, message, context, cause } = error;
    throw new HoldfastError(code, message, {
      ...context,
      retryWith: { ...(context.retryWith as object), ...retryWith },
      cause,
    });
  };

/** The service's own message can hold keys and item values, so it goes into the cause and not into the answer. */
function reason(error: SdkError, resource: string): string {
  // S3 answers a HEAD without a body, and therefore without an error name.
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
