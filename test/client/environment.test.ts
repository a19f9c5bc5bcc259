import type { IncomingHttpHeaders } from 'node:http';
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import { Holdfast } from '../../clients/typescript/src/index.ts';
import { type Listening, listen } from '../../local/listen.ts';

let site: Listening;
let seen: { url: string | undefined; headers: IncomingHttpHeaders } | undefined;

beforeAll(async () => {
  site = await listen(({ url, headers }, response) => {
    seen = { url, headers };
    response.end('{}');
  });
});
afterEach(() => vi.unstubAllEnvs());
afterAll(() => site.stop());

const KEYS = { AWS_ACCESS_KEY_ID: 'ID', AWS_SECRET_ACCESS_KEY: 'secret', AWS_SESSION_TOKEN: 'session' };
const NONE = { HOLDFAST_ENDPOINT: '', HOLDFAST_NAMESPACE: '', HOLDFAST_TOKEN: '', HOLDFAST_HOLDER: '' };

const withEnv = (variables: Record<string, string>) => {
  for (const [name, value] of Object.entries({ ...NONE, ...variables })) vi.stubEnv(name, value);
};

it('a client from the environment uses its endpoint, namespace, token and holder', async () => {
  withEnv({ HOLDFAST_ENDPOINT: site.url, HOLDFAST_NAMESPACE: 'team-a', HOLDFAST_TOKEN: 'jwt', HOLDFAST_HOLDER: 'me' });
  const holdfast = Holdfast.fromEnv();
  await holdfast.readLease('k');
  expect(seen?.url).toBe('/v1/ns/team-a/leases?key=k');
  expect(seen?.headers.authorization).toBe('Bearer jwt');
  expect(holdfast.holder).toBe('me');
});

it('options take precedence over the environment', async () => {
  withEnv({ HOLDFAST_ENDPOINT: 'http://127.0.0.1:1', HOLDFAST_NAMESPACE: 'team-a', HOLDFAST_HOLDER: 'me' });
  const holdfast = Holdfast.fromEnv({ endpoint: site.url, namespace: 'team-b', holder: 'other' });
  await holdfast.readLease('k');
  expect([seen?.url, holdfast.holder]).toEqual(['/v1/ns/team-b/leases?key=k', 'other']);
});

it('a client from the environment signs its requests, unless the service is local', async () => {
  withEnv({ HOLDFAST_ENDPOINT: site.url, HOLDFAST_HOLDER: 'me', AWS_REGION: 'eu-west-1', ...KEYS });
  await Holdfast.fromEnv().readLease('k');
  expect(seen?.headers.authorization).toBeUndefined();
  let sent: Headers | undefined;
  const endpoint = 'https://api.example';
  const fetch: typeof globalThis.fetch = async (_, options) => {
    sent = new Headers(options?.headers);
    return new Response('{}');
  };
  await Holdfast.fromEnv({ endpoint, fetch }).readLease('k');
  expect(sent?.get('authorization')).toMatch(/^AWS4-HMAC-SHA256 Credential=ID\/\d+\/eu-west-1\/execute-api/);
  expect(sent?.get('x-amz-security-token')).toBe('session');
});

it('a client from the environment names the variable that is missing, and the option', () => {
  withEnv({ HOLDFAST_HOLDER: 'me' });
  expect(() => Holdfast.fromEnv()).toThrow(
    new TypeError('HOLDFAST_ENDPOINT is not set, and there is no option endpoint'),
  );
  withEnv({ HOLDFAST_ENDPOINT: '127.0.0.1:3000' });
  expect(() => Holdfast.fromEnv()).toThrow('HOLDFAST_HOLDER is not set, and there is no option holder');
  expect(() => Holdfast.fromEnv({ holder: 'me' })).toThrow('endpoint must be a URL');
});
