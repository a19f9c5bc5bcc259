import { isThrottlingError } from '@smithy/core/retry';
import type { Command, FinalizeHandler, MetadataBearer } from '@smithy/types';
import { HoldfastError } from '../errors.ts';
import type { Call } from './call.ts';

/** What a request does and to what, for the error that names it. */
export interface Operation {
  kind: 'read' | 'write';
  /** For example `table holdfast-prod-leases`. */
  resource: string;
  /** For a write: what to add to the same call so that a retry learns the outcome of this one. */
  retryWith?: Record<string, string>;
}

/** What we tell callers to wait for a dependency that is down or slow: long enough not to add to its trouble. */
const RETRY_AFTER_MS = 1000;

// biome-ignore lint/suspicious/noExplicitAny: any command of any SDK client; its own types come back in OutputOf
type SdkCommand = Command<any, any, any, any, any>;
// biome-ignore lint/suspicious/noExplicitAny: as above
type OutputOf<C extends SdkCommand> = C extends Command<any, any, any, infer Output, any> ? Output : never;
interface SdkClient {
  send(command: never, options: { abortSignal: AbortSignal }): Promise<unknown>;
}

/**
 * Sends a command under the invocation's deadline. A failed condition passes through as the SDK's exception; every other
 * failure becomes a documented error.
 * @throws ConditionalCheckFailedException, TransactionCanceledException, IdempotentParameterMismatchException
 * @throws HoldfastError Throttled, Unavailable, or OutcomeUnknown where a write may have landed
 */
export async function send<C extends SdkCommand>(
  client: SdkClient,
  command: C,
  operation: Operation,
  call: Call,
): Promise<OutputOf<C>> {
  const tries = watchTries(command, call.signal);
  try {
    return (await client.send(command as never, { abortSignal: call.signal })) as OutputOf<C>;
  } catch (error) {
    throw documented(error as SdkError, operation, tries.unanswered);
  }
}

interface SdkError extends Error {
  $metadata?: { httpStatusCode?: number };
  code?: string;
}

/** A try that failed like this never left the machine. */
const NEVER_SENT = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH']);

/** The SDK tells its two timeouts apart by their words only: this is the one before there is a connection. */
const NO_CONNECTION = /did not establish a connection/;

/**
 * Notes whether any try of the command was sent and got no answer about itself. The last error alone does not tell:
 * a lost reply followed by throttled retries ends as a throttling error, and the write may stand all the same.
 */
function watchTries(command: SdkCommand, signal: AbortSignal): { unanswered: boolean } {
  const tries = { unanswered: false };
  command.middlewareStack.add(
    (next: FinalizeHandler<object, MetadataBearer>) => async (args) => {
      if (signal.aborted) throw Object.assign(new Error('no time left'), { name: 'AbortError' });
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

/** A 4xx is a decision not to write. A 5xx is not, nor is a success whose body could not be read. */
function isAnswer(error: SdkError): boolean {
  const status = error.$metadata?.httpStatusCode;
  if (status !== undefined) return status >= 400 && status < 500;
  return NEVER_SENT.has(error.code ?? '') || NO_CONNECTION.test(error.message);
}

/** The store's verdict on what was asked, which the caller must read; also after a try that got no answer. */
const VERDICTS = new Set([
  'ConditionalCheckFailedException',
  'TransactionCanceledException',
  'IdempotentParameterMismatchException',
]);

function documented(error: SdkError, operation: Operation, unanswered: boolean): Error {
  if (VERDICTS.has(error.name)) return error;
  if (unanswered && operation.kind === 'write') {
    return new HoldfastError(
      'OutcomeUnknown',
      `a write to ${operation.resource} was sent and its answer never came`,
      { retryWith: operation.retryWith ?? {}, retryAfterMs: RETRY_AFTER_MS },
      { cause: error },
    );
  }
  const throttled = isThrottlingError(error as never) || error.name === 'TransactionConflictException';
  return new HoldfastError(
    throttled ? 'Throttled' : 'Unavailable',
    throttled ? `${operation.resource} throttles requests` : reason(error, operation.resource),
    { retryAfterMs: RETRY_AFTER_MS },
    { cause: error },
  );
}

/** The service's own message can hold keys and item values, so it goes into the cause and not into the answer. */
function reason(error: SdkError, resource: string): string {
  switch (error.name) {
    case 'ResourceNotFoundException':
      return `${resource} does not exist in this region`;
    case 'AccessDeniedException':
      return `access to ${resource} is denied`;
    case 'AbortError':
      return `the time of this invocation is nearly up; nothing was written to ${resource}`;
    default:
      return `${resource} cannot be used (${error.code ?? error.name})`;
  }
}
