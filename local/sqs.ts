import { createHash, randomUUID } from 'node:crypto';
import { json } from 'node:stream/consumers';
import { z } from 'zod';
import type { Events } from './events.ts';
import { type Listening, listen } from './listen.ts';

/** The URL of a queue, which ends in the id of the queue. */
const SEND_MESSAGE = z.object({
  QueueUrl: z.string(),
  MessageBody: z.string(),
  DelaySeconds: z.number().optional(),
});

/** Answers the only SQS call that the functions send: it puts a message into a queue of serverless.yml, whose functions receive it after the delay. */
export function startSqs(events: Pick<Events, 'put'>, port = 0): Promise<Listening> {
  return listen(async (request, response) => {
    const answer = (status: number, body: object) =>
      response.writeHead(status, { 'content-type': 'application/x-amz-json-1.0' }).end(JSON.stringify(body));
    const sent = SEND_MESSAGE.safeParse(await json(request).catch(() => undefined));
    if (request.headers['x-amz-target'] !== 'AmazonSQS.SendMessage')
      return answer(400, { __type: 'com.amazonaws.sqs#UnsupportedOperation', message: 'only SendMessage' });
    if (!sent.success)
      return answer(400, { __type: 'com.amazon.coral.service#SerializationException', message: sent.error.message });
    const { QueueUrl, MessageBody, DelaySeconds } = sent.data;
    const isThere = events.put(QueueUrl.split('/').at(-1) ?? '', MessageBody, DelaySeconds);
    if (!isThere) return answer(400, { __type: 'com.amazonaws.sqs#QueueDoesNotExist', message: QueueUrl });
    // The client compares this hash with the hash of its message.
    return answer(200, {
      MessageId: randomUUID(),
      MD5OfMessageBody: createHash('md5').update(MessageBody).digest('hex'),
    });
  }, port);
}
