import { SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs';
import type { Call } from './call.ts';
import { attempt } from './send.ts';

/** Sends a payload to a queue, which delivers it after so many seconds. */
export type DelayedSender = (payload: object, delaySeconds: number, call: Call) => Promise<void>;

/**
 * Best effort: a message only speeds up work that happens anyway. A failure is therefore ignored, and there is only one
 * short try.
 */
export function delayedSender(queueUrl: string): DelayedSender {
  const client = new SQSClient({
    maxAttempts: 1,
    // Otherwise the host of the URL replaces the endpoint that the environment names, so a local stack would send to AWS.
    useQueueUrlAsEndpoint: false,
    requestHandler: { connectionTimeout: 500, requestTimeout: 1000, throwOnRequestTimeout: true },
  });
  return async (payload, delaySeconds, call) => {
    const body = { QueueUrl: queueUrl, MessageBody: JSON.stringify(payload), DelaySeconds: delaySeconds };
    await attempt(client, { command: new SendMessageCommand(body) }, call);
  };
}
