import middy from '@middy/core';
import type * as z from 'zod/mini';
import type { Call } from '../aws/call.ts';
import type { NameFields } from '../namespace.ts';
import { adapters, type Invocation } from './adapters.ts';
import { deadline } from './deadline.ts';
import type { EventAdapter } from './events.ts';
import { failures } from './failures.ts';
import { observation } from './observation.ts';
import { DEFAULT_MAX_BYTES } from './payload.ts';
import { validation } from './validation.ts';

/** The definition of a function, independent of the adapter through which it is called. */
interface Definition<Input, Output> {
  /** The function's name in serverless.yml. */
  name: string;
  input: z.ZodMiniType<Input>;
  run(input: Input, call: Call): Promise<Output>;
  /** The places of names in request and answer. All names must stay within the caller's namespace. */
  nameFields: NameFields;
  /** The most bytes of JSON in one call. A longer text is refused before it is parsed. The default is 64 KiB. */
  maxBytes?: number;
  /** Whether the call created something, which HTTP answers with 201. */
  created?(output: Output): boolean;
  /** The fields of input, result and error context that may be logged. Never a lease id, a version or a task token: they are proofs. */
  logged: readonly string[];
  /** Further log fields that are derived from the input. */
  loggedAs?(input: Input): Record<string, unknown>;
  /** For calls of administrators: the log names the caller. */
  audited?: boolean;
  /** Present if EventBridge starts the function too. */
  events?: EventAdapter;
  /** Whether an SQS queue starts it too. */
  queued?: boolean;
  /** Whether the function works for the whole deployment alone, and so refuses every alias. Its payload then needs no `names`. */
  ofDeployment?: boolean;
  /** Whether it answers every caller that the API lets in, because it touches nothing. */
  describesApi?: boolean;
  /** The Cache-Control header of a success over HTTP: no-store, unless the answer is the same for every caller. */
  cacheControl?: string;
}

/**
 * A Lambda handler with an adapter for each kind of event: an API Gateway HTTP request (payload format 2.0), answered with an HTTP response, and
 * any other payload, from Step Functions or lambda:Invoke, answered with the result itself or a thrown error whose
 * name is the error code. With `events` there is one for EventBridge too.
 */
export function lambdaFunction<Input, Output>({
  name,
  input,
  run,
  nameFields,
  maxBytes = DEFAULT_MAX_BYTES,
  created,
  logged,
  loggedAs,
  audited = false,
  events,
  queued = false,
  ofDeployment = false,
  describesApi = false,
  cacheControl,
}: Definition<Input, Output>) {
  const handler = middy({ timeoutEarlyInMillis: 0 }) // our own deadline leaves time to answer, and ends the AWS calls
    .use(
      adapters({
        nameFields,
        created: (output) => created?.(output as Output) ?? false,
        events,
        queued,
        ofDeployment,
        describesApi,
        maxBytes,
        cacheControl,
      }),
    )
    .use(observation(name, { logged, audited, inWords: (value) => loggedAs?.(value as Input) ?? {} }))
    .use(failures())
    .use(validation(input))
    .handler(async (event, context) => {
      const { payload, ...caller } = event as Invocation;
      const { signal, timeLeftMs, end } = deadline(context);
      try {
        const [, partition, , region, account] = context.invokedFunctionArn.split(':');
        const home = `${partition}:${region}:${account}`;
        return await run(payload as Input, { ...caller, home, signal, timeLeftMs });
      } finally {
        end();
      }
    });
  // The name of a handler tells which function it is.
  return Object.defineProperty(handler, 'name', { value: name });
}
