import { InvokeCommand, type LambdaClient } from '@aws-sdk/client-lambda';
import { type Operation, problemOf, refusal, type Transport, unreachable } from './index.ts';

export interface LambdaOptions {
  /** Your Lambda client of the SDK, with region and credentials. It may retry. */
  client: LambdaClient;
  /** The prefix of the function names, such as `holdfast-prod-`, or a function that returns the name or ARN for a call. */
  functions: string | ((operation: Operation) => string);
}

/**
 * Calls the functions of a deployment directly, without API Gateway, which saves its latency and its price. The caller needs the permission
 * `lambda:InvokeFunction` on each function, or on the alias of its namespace.
 * @throws HoldfastError as a `Transport`
 * @example
 * const transport = lambdaTransport({ client: new LambdaClient(), functions: 'holdfast-prod-' });
 * const holdfast = new Holdfast({ transport, holder: 'worker-1' });
 */
export function lambdaTransport({ client, functions }: LambdaOptions): Transport {
  const nameOf = typeof functions === 'string' ? (operation: Operation) => functions + operation : functions;
  return async (operation, payload, signal, namespace) => {
    const command = new InvokeCommand({
      FunctionName: nameOf(operation),
      Qualifier: namespace,
      Payload: JSON.stringify(payload),
    });
    const answer = await client.send(command, { abortSignal: signal }).catch((error: SdkError) => {
      throw refusal(error.$metadata?.httpStatusCode, error.message, error);
    });
    const text = new TextDecoder().decode(answer.Payload);
    if (!answer.FunctionError) return JSON.parse(text);
    const { errorType, errorMessage } = JSON.parse(text) as { errorType?: string; errorMessage?: string };
    throw problemOf(parsed(errorMessage)) ?? unreachable(`${errorType ?? answer.FunctionError}: ${errorMessage}`);
  };
}

interface SdkError extends Error {
  $metadata?: { httpStatusCode?: number };
}

/** The problem that a function threw. Undefined if the function failed in another way, for example by a timeout. */
function parsed(message: string | undefined): unknown {
  try {
    return JSON.parse(message ?? '');
  } catch {
    return undefined;
  }
}
