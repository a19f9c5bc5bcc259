/** Invokes the handlers as Lambda does, against `npm start`: node examples/handlers/invoke.ts */
import type { APIGatewayProxyEventV2, Context, SQSRecord } from 'aws-lambda';
import { handler as order } from './order.ts';
import { handler as queue } from './queue.ts';

const context = () => ({ getRemainingTimeInMillis: () => 30_000 }) as Context;

const request = (id: string) => order({ pathParameters: { id } } as unknown as APIGatewayProxyEventV2, context());

/** A message of a FIFO queue if it has a message group, and of a standard queue otherwise. */
const record = (messageId: string, booking: object, MessageGroupId?: string) =>
  ({
    ...{ messageId, receiptHandle: messageId, body: JSON.stringify(booking) },
    eventSourceARN: `arn:aws:sqs:us-east-1:000000000000:bookings${MessageGroupId ? '.fifo' : ''}`,
    attributes: { MessageGroupId },
  }) as unknown as SQSRecord;

const batch = (...Records: SQSRecord[]) => queue({ Records }, context());

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

const first = request('7');
await pause(200);
const second = await request('7');
console.log(`the second request: ${second.statusCode}, retry-after: ${'headers' in second}`);
console.log(`the first request: ${(await first).statusCode}`);

console.log('a standard queue, with two invocations at once');
const one = batch(
  record('1', { account: 'a', amount: 10 }),
  record('2', { account: 'b', amount: -1 }),
  record('3', { account: 'a', amount: 20 }),
);
await pause(200);
const two = batch(record('4', { account: 'a', amount: 30 }), record('5', { account: 'c', amount: 40 }));
for (const answer of await Promise.all([one, two])) console.log(JSON.stringify(answer));

console.log('a FIFO queue, whose message group keeps its order');
console.log(
  JSON.stringify(
    await batch(
      record('6', { account: 'a', amount: 1 }, 'g'),
      record('7', { account: 'a', amount: -1 }, 'g'),
      record('8', { account: 'a', amount: 3 }, 'g'),
    ),
  ),
);
