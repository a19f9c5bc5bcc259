import { randomUUID } from 'node:crypto';
import type { Context } from 'aws-lambda';
import { ACCOUNT, REGION } from '../infrastructure/logical-ids.ts';

export type LambdaHandler = (event: unknown, context: Context) => Promise<unknown>;

export interface LocalFunction {
  /** The name in serverless.yml. */
  name: string;
  timeoutSeconds: number;
  /** The alias by which the function is invoked. Undefined for the function itself. */
  alias?: string;
  handler: LambdaHandler;
}

/** Lambda's report of a function that threw or timed out: the `Error` and, as JSON, the `Cause` of a task. */
export class FunctionError extends Error {
  readonly report: { errorType: string; errorMessage: string; trace?: string[] };

  constructor(report: FunctionError['report']) {
    super(`${report.errorType}: ${report.errorMessage}`);
    this.name = 'FunctionError';
    this.report = report;
  }
}

/**
 * Invokes a function as Lambda does, with JSON in both directions and within its timeout.
 * @throws FunctionError as Lambda would report it
 */
export async function invoke(lambda: LocalFunction, event: unknown): Promise<unknown> {
  const { context, timedOut, end } = invocation(lambda);
  try {
    const result = await Promise.race([lambda.handler(JSON.parse(JSON.stringify(event)), context), timedOut]);
    return JSON.parse(JSON.stringify(result ?? null));
  } catch (error) {
    if (error instanceof FunctionError) throw error;
    const { name, message, stack = '' } = error as Error;
    throw new FunctionError({ errorType: name, errorMessage: message, trace: stack.split('\n') });
  } finally {
    end();
  }
}

/** The context of one invocation, and a promise that rejects at its timeout. `end` must be called. */
export function invocation({ name, timeoutSeconds, alias }: Omit<LocalFunction, 'handler'>) {
  const endsAt = Date.now() + timeoutSeconds * 1000;
  const awsRequestId = randomUUID();
  const context = {
    functionName: name,
    functionVersion: '$LATEST',
    invokedFunctionArn: `arn:aws:lambda:${REGION}:${ACCOUNT}:function:${name}${alias === undefined ? '' : `:${alias}`}`,
    memoryLimitInMB: '512',
    awsRequestId,
    logGroupName: `/aws/lambda/${name}`,
    logStreamName: 'local',
    callbackWaitsForEmptyEventLoop: true,
    getRemainingTimeInMillis: () => Math.max(0, endsAt - Date.now()),
  } as Context;
  const { promise: timedOut, reject } = Promise.withResolvers<never>();
  timedOut.catch(() => {}); // without a handler, a rejection after a faster function would end the process
  const errorMessage = `RequestId: ${awsRequestId} Error: Task timed out after ${timeoutSeconds.toFixed(2)} seconds`;
  const timer = setTimeout(
    () => reject(new FunctionError({ errorType: 'Sandbox.Timedout', errorMessage })),
    timeoutSeconds * 1000,
  );
  return { context, timedOut, end: () => clearTimeout(timer) };
}
