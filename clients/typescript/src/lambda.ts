import { InvokeCommand, type LambdaClient } from '@aws-sdk/client-lambda';
import { type Operation, problemOf, refusal, type Transport, unreachable } from './index.ts';

export interface LambdaOptions {
  /** The client of the SDK, with region and credentials. Retries of the SDK are harmless. */
  client: LambdaClient;
  /** The function of each call: the prefix of the function names, such as `holdfast-prod-`, or a mapping. */
  functions: string | ((operation: Operation) => string);
}

/**
 * Calls the functions of a deployment by lambda:Invoke, without API Gateway. The caller needs that permission on each function, or on
 * the alias of the namespace.
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

/** Undefined if the function itself failed, for example by a timeout. */
function parsed(message: string | undefined): unknown {
  try {
    return JSON.parse(message ?? '');
  } catch {
    return undefined;
  }
}
