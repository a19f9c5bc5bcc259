import type { APIGatewayProxyStructuredResultV2 } from 'aws-lambda';
import { type Received, undocumented } from '../../../contract/conformance.ts';
import type { LambdaHandler } from '../../../local/lambda.ts';
import { HoldfastError } from '../../../shared/errors.ts';

/** An answer that no caller can expect: a fault of the function, or a gap in the contract. */
export class UndocumentedAnswer extends Error {
  override name = 'UndocumentedAnswer';
}

/** A handler that also compares each answer with the contract, for every caller and adapter. */
export function checkedHandler(functionName: string, handler: LambdaHandler): LambdaHandler {
  return async (event, context) => {
    const answer = await handler(event, context).catch((error: Error) => {
      checkFailure(functionName, error.name, error.message);
      throw error;
    });
    checkAnswer(functionName, event, answer);
    return answer;
  };
}

/** A domain call that also compares each error with the contract of the function that answers with it. */
export const documented =
  <Args extends unknown[], Result>(functionName: string, act: (...args: Args) => Promise<Result>) =>
  (...args: Args): Promise<Result> =>
    act(...args).catch((error: unknown) => {
      if (error instanceof HoldfastError) check(functionName, { body: error.problem('a-trace') });
      throw error;
    });

/** @throws UndocumentedAnswer */
export function checkAnswer(functionName: string, event: unknown, answer: unknown): void {
  if (Object(event).version === '2.0') {
    const { statusCode: status = 200, headers, body = 'null' } = answer as APIGatewayProxyStructuredResultV2;
    check(functionName, { status, contentType: String(headers?.['content-type']), body: JSON.parse(body) });
  } else check(functionName, { body: answer });
}

/** Checks what Lambda reports about a function that threw. @throws UndocumentedAnswer */
export function checkFailure(functionName: string, errorType: string, errorMessage: string): void {
  if (!errorMessage.startsWith('{')) return; // a crash, which the test that causes it expects
  const problem = JSON.parse(errorMessage) as { code?: string };
  if (problem.code !== errorType) throw new UndocumentedAnswer(`${functionName}: ${errorType} with ${errorMessage}`);
  check(functionName, { body: problem });
}

function check(functionName: string, received: Received): void {
  const fault = undocumented(functionName, received);
  if (fault) throw new UndocumentedAnswer(fault);
}
