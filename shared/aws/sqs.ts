import { SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs';
import type { Call } from './call.ts';
import { attempt } from './send.ts';

/** Sends a payload to an SQS queue. Its consumers receive the message after `delaySeconds`. */
export type DelayedSender = (payload: object, delaySeconds: number, call: Call) => Promise<void>;

/**
 * A sender that tries each message a single time and ignores a failure, because a message only brings forward what the
 * schedule would do anyway.
 */
export function delayedSender(queueUrl: string): DelayedSender {
  const client = new SQSClient({
    maxAttempts: 1,
    // Without this option the SDK takes the endpoint from the queue's URL and ignores the environment, so a local stack
    // would send to AWS.
    useQueueUrlAsEndpoint: false,
    requestHandler: { connectionTimeout: 500, requestTimeout: 1000, throwOnRequestTimeout: true },
  });
  return async (payload, delaySeconds, call) => {
    const body = { QueueUrl: queueUrl, MessageBody: JSON.stringify(payload), DelaySeconds: delaySeconds };
    await attempt(client, { command: new SendMessageCommand(body) }, call);
  };
}
