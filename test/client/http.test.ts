import type { IncomingMessage, ServerResponse } from 'node:http';
import { SignatureV4 } from '@smithy/signature-v4';
import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { Holdfast } from '../../clients/typescript/src/index.ts';
import { queryOf } from '../../clients/typescript/src/query.ts';
import { signed } from '../../clients/typescript/src/sigv4.ts';
import { type Listening, listen } from '../../local/listen.ts';
import { freePort } from '../../local/ports.ts';
import { Sha256 } from '../../shared/aws/sha256.ts';
import { anyText, testSeed } from '../support/chance/seed.ts';
import { rounds } from '../support/time/rounds.ts';

let site: Listening;
let seen: string[] = [];
let answer: (response: ServerResponse, request: IncomingMessage) => void;

beforeAll(async () => {
  site = await listen((request, response) => {
    seen.push(`${request.method} ${request.url}`);
    answer(response, request);
  });
});
beforeEach(() => {
  seen = [];
});
afterAll(() => site.stop());

const read = (timeoutMs = 0) =>
  new Holdfast({ endpoint: `${site.url}/stage/`, token: 'secret', holder: 'x' })
    .readLease('a b~ü', {}, { timeoutMs })
    .catch((error) => error);

const says =
  (status: number, text: string, headers: Record<string, string> = {}) =>
  (response: ServerResponse) => {
    response.writeHead(status, headers);
    response.end(text);
  };

it.each([
  'http://192.0.2.1',
  'http://api.example',
  'http://127.evil.example',
  'http://notlocalhost:3000',
  'http://localhost.evil.example:3000',
  'http://127.0.0.1.evil.example:3000',
  'http://0.0.0.0',
])('the client never sends a token or signature over http to another machine: %s', (endpoint) => {
  const of = (more: object) => () => new Holdfast({ endpoint, holder: 'x', ...more });
  const error = 'endpoint must be https with a token or credentials';
  expect(of({ token: 'secret' })).toThrow(new TypeError(error));
  expect(of({ token: () => 'secret' })).toThrow(error);
  const credentials = () => ({ accessKeyId: 'ID', secretAccessKey: 'secret' });
  expect(of({ credentials, region: 'eu-west-1' })).toThrow(error);
  expect(of({})).not.toThrow();
});

it.each(['http://127.0.0.1:1', 'http://127.1', 'http://[::1]', 'http://localhost', 'https://api.example'])(
  'the client accepts a token for %s',
  (endpoint) => {
    expect(() => new Holdfast({ endpoint, token: 'secret', holder: 'x' })).not.toThrow();
  },
);

it('the client sends only a signature over http to a name below localhost', () => {
  const to = { endpoint: 'http://abc.execute-api.localhost', region: 'eu-west-1', holder: 'x' };
  const credentials = () => ({ accessKeyId: 'ID', secretAccessKey: 'secret' });
  expect(() => new Holdfast({ ...to, credentials })).not.toThrow();
  expect(() => new Holdfast({ ...to, token: 'secret' })).toThrow('endpoint must be https');
});

it.each([undefined, '', '127.0.0.1:3000', 'localhost:3000', 'ftp://127.0.0.1', 'https://'])(
  'the client refuses the endpoint %s, and says what it expects',
  (endpoint) => {
    const said = `endpoint must be a URL such as http://127.0.0.1:3000, not ${endpoint}`;
    expect(() => new Holdfast({ endpoint: endpoint as string, holder: 'x' })).toThrow(new TypeError(said));
  },
);

it('the client without options misses its endpoint', () => {
  const Untyped = Holdfast as unknown as new () => Holdfast;
  expect(() => new Untyped()).toThrow('endpoint must be a URL');
});

it('a token or password with forbidden characters is refused, and not sent again', () => {
  const refused = (options: { endpoint?: string; token?: string }) => {
    try {
      return String(new Holdfast({ endpoint: 'http://127.0.0.1:3000', holder: 'x', ...options }));
    } catch (error) {
      return String(error);
    }
  };
  expect(refused({ token: 'secret\nX: y' })).toBe('TypeError: token must have no blanks, and no line breaks');
  expect(refused({ endpoint: 'https://user:secret@holdfast.invalid' })).toBe(
    'TypeError: endpoint must be a URL such as http://127.0.0.1:3000, not https://***@holdfast.invalid',
  );
});

it('the client names an address that does not answer, and the reason', async () => {
  const gone = `127.0.0.1:${await freePort()}`;
  const holdfast = new Holdfast({ endpoint: `http://${gone}`, holder: 'x' });
  const message = `the connection to http://${gone} failed: connect ECONNREFUSED ${gone}`;
  await expect(holdfast.readLease('k', {}, { timeoutMs: 0 })).rejects.toMatchObject({ code: 'Unreachable', message });
});

it('the client hints that the path of the endpoint may be wrong', async () => {
  answer = says(404, '{"message":"Not Found"}');
  const readFrom = (path: string) =>
    new Holdfast({ endpoint: site.url + path, holder: 'x' }).readLease('k').catch(({ message }: Error) => message);
  const hint = ': endpoint must have no path';
  expect(await readFrom('')).toBe(`Not Found (${site.url}/v1/leases)`);
  expect(await readFrom('/v1')).toBe(`Not Found (${site.url}/v1/v1/leases)${hint}`);
  expect(await readFrom('/stage/')).toBe(`Not Found (${site.url}/stage/v1/leases)${hint}`);
});

it('the client writes the query so that every server reads it alike', async () => {
  answer = says(200, '{"key":"k"}');
  expect(await read()).toEqual({ key: 'k' });
  expect(seen).toEqual(['GET /stage/v1/leases?key=a%20b~%C3%BC']);
});

it.each([301, 302, 303, 307, 308])(
  'the client does not follow a redirect (%s), which would carry the token away',
  async (status) => {
    answer = (response, { url }) =>
      url === '/elsewhere'
        ? says(200, '{"key":"k"}')(response)
        : says(status, '', { location: '/elsewhere' })(response);
    expect(await read()).toMatchObject({ name: 'HoldfastError', code: 'Refused', status });
    expect(seen.length).toBe(1);
  },
);

it.each([
  [503, '<html>down</html>', 'Unreachable'],
  [502, '', 'Unreachable'],
  [504, '{"message":"Endpoint request timed out"}', 'Unreachable'],
  [429, '{"message":"Too Many Requests"}', 'Throttled'],
  [403, '{"message":"Forbidden"}', 'Refused'],
  [404, '<html>', 'Refused'],
])('the client takes %s with %j from a proxy for %s', async (status, text, code) => {
  answer = says(status, text);
  expect(await read()).toMatchObject({ code, status });
});

it.each(['<html>Sign in to the network</html>', '', 'null', '"text"', '17'])(
  'the client does not take 200 with %j for an answer',
  async (text) => {
    answer = says(200, text);
    expect(await read()).toMatchObject({ code: 'Unreachable' });
  },
);

it('the client asks again if an answer is cut off', async () => {
  answer = (response) => {
    if (seen.length > 2) return says(200, '{"key":"k"}')(response);
    response.writeHead(200, { 'content-length': '100' });
    response.write('{"key":');
    setImmediate(() => response.destroy());
  };
  expect(await read(10_000)).toEqual({ key: 'k' });
  expect(seen.length).toBe(3);
});

it('the client does not take a problem of another service for one of Holdfast', async () => {
  answer = says(500, '{"type":"about:blank","code":"LeaseHeld","detail":"x"}');
  expect(await read()).toMatchObject({ code: 'Unreachable', status: 500 });
});

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
  const { output } = await build({ input: 'clients/typescript/src/sigv4.ts', write: false, output: { minify: true } });
  expect(Buffer.byteLength(output[0].code)).toBeLessThan(1500);
});
