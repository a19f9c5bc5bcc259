/**
 * A fresh Node process that loads one built bundle and invokes it, as Lambda's own runtime does. It gets events by
 * IPC, so that standard output and error hold what the function writes and nothing else.
 */
import type { Context } from 'aws-lambda';

export interface InvocationMessage {
  event: unknown;
  context: Pick<Context, 'awsRequestId' | 'functionName' | 'invokedFunctionArn' | 'memoryLimitInMB'>;
}

/** What Lambda would report: the result, or the form of a thrown error. */
export type OutcomeMessage = { result: unknown } | { errorType: string; errorMessage: string };

const [bundle = ''] = process.argv.slice(2);
const { handler } = await import(bundle);

process.on('message', async ({ event, context }: InvocationMessage) => {
  process.send?.(await outcome(event, { ...context, getRemainingTimeInMillis: () => 5000 }));
});
process.send?.('ready');

async function outcome(event: unknown, context: unknown): Promise<OutcomeMessage> {
  try {
    return { result: await handler(event, context) };
  } catch (error) {
    const { name, message, stack } = error as Error;
    console.error(stack); // Lambda's runtime logs it
    return { errorType: name, errorMessage: message };
  }
}
