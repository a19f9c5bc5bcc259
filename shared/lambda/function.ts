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

/** The definition of a function. It is the same whether the API, a task, SQS or EventBridge calls the function. */
interface Definition<Input, Output> {
  /** The function's name in serverless.yml. */
  name: string;
  input: z.ZodMiniType<Input>;
  run(input: Input, call: Call): Promise<Output>;
  /** The fields of request and answer that hold names. A caller can name only records of its own namespace by them. */
  nameFields: NameFields;
  /** The most bytes of JSON in one call. A larger payload is refused before it is parsed. The default is 64 KiB. */
  maxBytes?: number;
  /** Whether the call created something. HTTP then answers 201. */
  created?(output: Output): boolean;
  /**
   * The fields of input, result and error context that are logged. Never a lease id, a version or a task token: a
   * reader of the log could use it.
   */
  logged: readonly string[];
  /** Further log fields, derived from the input. */
  derivedFields?(input: Input): Record<string, unknown>;
  /** Whether the log names the caller. Set for calls of operators. */
  audited?: boolean;
  events?: EventAdapter;
  queued?: boolean;
  /** Whether the function belongs to the whole deployment, so that it refuses the alias of every namespace. */
  ofDeployment?: boolean;
  /**
   * Whether the function describes the API and does not touch records, so that every caller that the API admits may
   * call it.
   */
  describesApi?: boolean;
  /** The Cache-Control header of a success over HTTP: no-store, unless the answer is the same for every caller. */
  cacheControl?: string;
}

/**
 * Builds the Lambda handler of a function. It answers an HTTP request of API Gateway (payload format 2.0) with an HTTP
 * response. It answers any other payload with the result itself, or throws an error whose name is the error code. Such
 * a payload comes from Step Functions or lambda:Invoke, and with `events` or `queued` from EventBridge or SQS.
 */
export function lambdaFunction<Input, Output>(definition: Definition<Input, Output>) {
  const { name, input, run } = definition;
  const handler = middy({ timeoutEarlyInMillis: 0 }) // deadline() keeps time for the answer instead
    .use(adapters({ maxBytes: DEFAULT_MAX_BYTES, ...definition }))
    .use(observation(definition))
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
  // Tests recognise a function by the name of its handler.
  return Object.defineProperty(handler, 'name', { value: name });
}
