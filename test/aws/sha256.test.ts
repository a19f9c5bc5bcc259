import { createHash, createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { GetItemCommand } from '@aws-sdk/client-dynamodb';
import { SignatureV4 } from '@smithy/signature-v4';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { dynamodbClient } from '../../shared/aws/dynamodb.ts';
import { Sha256 } from '../../shared/aws/sha256.ts';
import { anyText, testSeed } from '../support/chance/seed.ts';

/** The hash as the specification of SigV4 describes it, to compare with. */
class Plain {
  #hash;
  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    this.#hash = secret === undefined ? createHash('sha256') : createHmac('sha256', secret as never);
  }
  update(data: string | ArrayBuffer | ArrayBufferView): void {
    this.#hash.update(data as never);
  }
  digest = async () => new Uint8Array(this.#hash.digest());
  reset(): void {}
}

/** The last request that arrived, with its body. */
let received: { request: IncomingMessage; body: string };
const server = createServer(async (request, response) => {
  const chunks = await request.toArray();
  received = { request, body: Buffer.concat(chunks).toString() };
  response.setHeader('content-type', 'application/x-amz-json-1.0').end('{}');
});
let endpoint: string;
beforeAll(async () => {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as { port: number };
  endpoint = `http://127.0.0.1:${port}`;
});
afterAll(() => server.close());

const secrets = fc.record(
  {
    accessKeyId: fc.stringMatching(/^[A-Z0-9]{16,20}$/),
    secretAccessKey: anyText({ minLength: 1, maxLength: 100 }),
    sessionToken: fc.stringMatching(/^[!-~]{1,200}$/),
  },
  { requiredKeys: ['accessKeyId', 'secretAccessKey'] },
);

it('the signer signs the first and each later request as SigV4 says', async () => {
  await fc.assert(
    fc.asyncProperty(secrets, fc.constantFrom('us-east-1', 'cn-north-1'), async (credentials, region) => {
      const client = dynamodbClient({ endpoint, region, credentials });
      for (const key of ['one', 'two', 'drei €']) {
        await client.send(new GetItemCommand({ TableName: 'leases', Key: { key: { S: key } } }));
        const { request, body } = received;
        const { authorization = '', ...headers } = request.headers as Record<string, string>;
        const signedNames = /SignedHeaders=([^,]*)/.exec(authorization)?.[1]?.split(';') ?? [];
        const [, year, month, day, hour, minute, second] =
          /^(....)(..)(..)T(..)(..)(..)Z$/.exec(headers['x-amz-date'] ?? '') ?? [];
        const signer = new SignatureV4({ credentials, region, service: 'dynamodb', sha256: Plain });
        const signed = await signer.sign(
          {
            ...{ method: 'POST', protocol: 'http:', hostname: '127.0.0.1', path: '/', query: {}, body },
            headers: Object.fromEntries(signedNames.map((name) => [name, headers[name] ?? ''])),
          },
          { signingDate: new Date(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`) },
        );
        expect(authorization).toBe(signed.headers.authorization);
      }
      client.destroy();
    }),
    { seed: testSeed(), numRuns: 30 },
  );
});

it('the DynamoDB client does not log requests', () => {
  expect(dynamodbClient({ region: 'us-east-1' }).middlewareStack.identify().join()).not.toContain('loggerMiddleware');
});

it('the hash accepts text and bytes in every form, and the same key again', async () => {
  const forms = (text: string) => {
    const bytes = new TextEncoder().encode(`[${text}]`);
    const within = bytes.subarray(1, -1); // a part of a larger buffer
    return [text, within, new DataView(bytes.buffer, 1, within.length), within.slice().buffer];
  };
  const hashed = (hash: Sha256, data: string | ArrayBuffer | ArrayBufferView) => {
    hash.update(data);
    return hash.digest();
  };
  const plain = new Uint8Array(createHash('sha256').update('data €').digest());
  const keyed = new Uint8Array(createHmac('sha256', 'key €').update('data €').digest());
  for (const data of forms('data €')) {
    expect(new Uint8Array(await hashed(new Sha256(), data))).toEqual(plain);
    for (const key of forms('key €'))
      for (let time = 1; time <= 2; time++) expect(new Uint8Array(await hashed(new Sha256(key), data))).toEqual(keyed);
  }
});
