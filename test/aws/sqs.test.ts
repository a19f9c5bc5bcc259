import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, vi } from 'vitest';
import { delayedSender } from '../../shared/aws/sqs.ts';
import { call } from '../support/aws.ts';

it('a delayed message goes to the endpoint that the environment names, whatever host the URL of the queue has', async () => {
  const bodies: string[] = [];
  const server = createServer(async (request, response) => {
    bodies.push((await request.toArray()).join(''));
    response.setHeader('content-type', 'application/x-amz-json-1.0').end('{"MessageId":"m"}');
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  vi.stubEnv('AWS_ENDPOINT_URL_SQS', `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  try {
    const send = delayedSender('https://sqs.us-east-1.amazonaws.com/000000000000/RepairQueue');
    await send({ key: 'k' }, 3, call());
    expect(bodies.map((body) => JSON.parse(body))).toEqual([
      expect.objectContaining({ MessageBody: '{"key":"k"}', DelaySeconds: 3 }),
    ]);
  } finally {
    vi.unstubAllEnvs();
    server.close();
  }
});
