import { createHash, createHmac } from 'node:crypto';
import { SignatureV4 } from '@smithy/signature-v4';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { queryOf } from '../../client/src/query.ts';
import { signed } from '../../client/src/sigv4.ts';
import { testSeed } from '../support/chance/seed.ts';
import { anyText } from '../support/chance/text.ts';
import { rounds } from '../support/time/rounds.ts';

class Sha256 {
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

const text = anyText({ minLength: 1, maxLength: 12 });
const segment = text.filter((value) => !/^\.{1,2}$/.test(value));
/** The other signer keeps the query in an object, which loses this one name. */
const queryName = text.filter((name) => name !== '__proto__');
const request = fc.record({
  method: fc.constantFrom('GET', 'POST', 'PUT'),
  host: fc.constantFrom('abc123.execute-api.eu-west-1.amazonaws.com', 'api.example.org', '127.0.0.1:3000'),
  path: fc.array(segment, { maxLength: 4 }),
  query: fc.dictionary(queryName, text, { maxKeys: 6, noNullPrototype: true }),
  headers: fc.dictionary(
    fc.stringMatching(/^[A-Za-z][A-Za-z0-9-]{0,10}$/).map((name) => `X-Test-${name}`),
    fc.stringMatching(/^[!-~]+( [!-~]+){0,3}$/),
    { maxKeys: 4, noNullPrototype: true },
  ),
  body: anyText({ maxLength: 200 }),
  at: fc.date({ min: new Date('2000-01-01'), max: new Date('2099-12-31'), noInvalidDate: true }),
  credentials: fc.record(
    {
      accessKeyId: fc.stringMatching(/^[A-Z0-9]{16,20}$/),
      secretAccessKey: fc.string({ minLength: 1, maxLength: 60 }),
      sessionToken: fc.stringMatching(/^[!-~]{1,200}$/),
    },
    { requiredKeys: ['accessKeyId', 'secretAccessKey'] },
  ),
  region: fc.constantFrom('us-east-1', 'eu-central-1', 'cn-north-1'),
  service: fc.constantFrom('execute-api', 'lambda'),
});

it('the client signs as @smithy/signature-v4 does, whatever the request', async () => {
  await fc.assert(
    fc.asyncProperty(
      request,
      async ({ method, host, path, query, headers, body, at, credentials, region, service }) => {
        const unique = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
        const url = new URL(`https://${host}/${path.map(encodeURIComponent).join('/')}`);
        url.search = queryOf(query);
        const scope = { region, service, at: at.getTime() };
        const ours = await signed({ method, url, headers: unique, body }, credentials, scope);

        const signer = new SignatureV4({ credentials, region, service, sha256: Sha256, applyChecksum: false });
        const { hostname, port, pathname } = url;
        const theirs = await signer.sign(
          {
            ...{ method, protocol: 'https:', hostname, path: pathname, query, body },
            ...(port && { port: Number(port) }),
            headers: { host: url.host, ...unique },
          },
          { signingDate: at },
        );
        expect(ours.authorization).toBe(theirs.headers.authorization);
        const { host: _, ...sent } = theirs.headers;
        expect(ours).toEqual(sent);
      },
    ),
    { seed: testSeed(), numRuns: rounds(500, 40) },
  );
});

it('the code that signs is shorter than 1.5 kB', async () => {
  const { build } = await import('rolldown');
  const { output } = await build({ input: 'client/src/sigv4.ts', write: false, output: { minify: true } });
  expect(Buffer.byteLength(output[0].code)).toBeLessThan(1500);
});
