import { createHash, randomUUID } from 'node:crypto';
import { text } from 'node:stream/consumers';
import type { Events } from './events.ts';
import { type Listening, listen } from './listen.ts';

/** Requests name a queue by a URL that ends in its id. */
interface SendMessage {
  QueueUrl: string;
  MessageBody: string;
  DelaySeconds?: number;
}

/** The one call of SQS that functions make: puts a message into a queue of serverless.yml, whose functions get it after its delay. */
export function startSqs(events: Pick<Events, 'put'>, port = 0): Promise<Listening> {
  return listen(async (request, response) => {
    const answer = (status: number, body: object) =>
      response.writeHead(status, { 'content-type': 'application/x-amz-json-1.0' }).end(JSON.stringify(body));
    const body = await text(request);
    if (request.headers['x-amz-target'] !== 'AmazonSQS.SendMessage')
      return answer(400, { __type: 'com.amazonaws.sqs#UnsupportedOperation', message: 'only SendMessage' });
    const { QueueUrl, MessageBody, DelaySeconds } = JSON.parse(body) as SendMessage;
    const isThere = events.put(QueueUrl.split('/').at(-1) ?? '', MessageBody, DelaySeconds);
    if (!isThere) return answer(400, { __type: 'com.amazonaws.sqs#QueueDoesNotExist', message: QueueUrl });
    // The client compares the hash with what it sent.
    return answer(200, {
      MessageId: randomUUID(),
      MD5OfMessageBody: createHash('md5').update(MessageBody).digest('hex'),
    });
  }, port);
}
