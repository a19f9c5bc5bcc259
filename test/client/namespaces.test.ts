import { readFile } from 'node:fs/promises';
import { LambdaClient } from '@aws-sdk/client-lambda';
import { afterAll, expect, it } from 'vitest';
import { directTransport } from '../../clients/typescript/src/direct.ts';
import { Holdfast, type HoldfastOptions, type Operation } from '../../clients/typescript/src/index.ts';
import { lambdaTransport } from '../../clients/typescript/src/lambda.ts';
import { ROUTES } from '../../clients/typescript/src/routes.ts';
import { testClient } from '../support/emulators/aws.ts';
import { startLambdaApi } from '../support/emulators/lambda-api.ts';
import { startApi } from '../support/stack/api.ts';
import { namespaceWorld } from '../support/worlds/namespaces.ts';

const world = await namespaceWorld();
const [api, lambda] = await Promise.all([startApi(world.handlers), startLambdaApi(world.handlers, 'test-')]);
afterAll(() => Promise.all([world.stop(), api.stop(), lambda.stop()]));

const { leasesTable, waitersTable } = world.locations;
const overLambda = lambdaTransport({ client: new LambdaClient({ endpoint: lambda.url }), functions: 'test-' });
const direct = directTransport({ client: testClient(), leasesTable, waitersTable });

const client = (options: Partial<HoldfastOptions> = {}) =>
  new Holdfast({ holder: 'x', endpoint: api.url, ...options } as HoldfastOptions);

const listed = async (rows: AsyncIterable<{ key: string }>): Promise<string[]> => {
  const keys = [];
  for await (const { key } of rows) keys.push(key);
  return keys.sort();
};

it('a client of a namespace sends each call to its route of the namespace', async () => {
  const contract = JSON.parse(await readFile('contract/openapi.json', 'utf8')) as {
    paths: Record<string, Record<string, { operationId?: string }>>;
  };
  const expected = Object.entries(contract.paths).flatMap(([path, methods]) =>
    path.startsWith('/v1/ns/')
      ? Object.entries(methods).flatMap(([method, { operationId }]) =>
          operationId ? `${method.toUpperCase()} /stage${path.replace('{ns}', 'team-a')}` : [],
        )
      : [],
  );
  const sent: string[] = [];
  const watching: typeof fetch = async (url, init) => {
    const { pathname } = new URL(String(url));
    sent.push(`${init?.method} ${pathname}`);
    return fetch(String(url).replace('/stage/', '/'), init);
  };
  const team = client({ endpoint: `${api.url}/stage/`, namespace: 'team-a', fetch: watching });
  const codes = await Promise.all(
    (Object.keys(ROUTES) as Operation[]).map((operation) =>
      team.call(operation, { surplus: 1 } as never, { timeoutMs: 0 }).then(
        () => 'ok',
        ({ code }) => code,
      ),
    ),
  );
  expect(sent.sort()).toEqual(expected.sort());
  // Each call has reached its function, which refuses the unknown field.
  expect(new Set(codes)).toEqual(new Set(['InvalidRequest']));
});

it.each([
  ['over HTTP', {}],
  ['by lambda:Invoke', { transport: overLambda }],
  ['on the table', { transport: direct }],
])('a client of a namespace, %s, touches only its namespace', async (way, options) => {
  const key = `nightly ${way}`;
  const [team, others, all] = [{ namespace: 'team-a' }, { namespace: 'team-b' }, {}].map((own) =>
    client({ ...options, ...own }),
  ) as [Holdfast, Holdfast, Holdfast];
  const lease = await team.acquire(key, { data: way });
  const other = await others.acquire(key);
  expect([lease.key, other.key]).toEqual([key, key]);
  await expect(team.acquire(key)).rejects.toMatchObject({ code: 'LeaseHeld', key });
  expect(await world.leases.rawItem(`team-a/${key}`)).toMatchObject({ h: { M: { h: { S: 'x' } } } });

  expect(await team.readLease(key)).toMatchObject({ key, state: 'held', data: way });
  expect(await all.readLease(`team-b/${key}`)).toMatchObject({ key: `team-b/${key}`, fence: other.fence });
  expect(await all.readLease(key)).toMatchObject({ state: 'free' });
  await Promise.all([1, 2, 3].map((at) => others.acquire(`${key}/${at}`)));
  expect(await listed(others.leases({ prefix: key, limit: 1 }))).toEqual(['', '/1', '/2', '/3'].map((at) => key + at));
  expect(await listed(team.leases({ prefix: key }))).toEqual([key]);

  await expect(team.breakLease({ key, fence: other.fence + 10_000_000 })).rejects.toMatchObject({ key });
  await others.breakLease({ key, fence: other.fence });
  await expect(other.release()).resolves.toBe(false);
  await expect(lease.release()).resolves.toBe(true);
  await expect(team.acquire('holdfast:report')).rejects.toMatchObject({ code: 'InvalidRequest' });
  expect(await world.leases.rawItem('team-a/holdfast:report')).toBeUndefined();
});

it('a client of a namespace by lambda:Invoke calls the alias, never a version', async () => {
  const { namespaces } = await client({ transport: overLambda, namespace: 'team-a' }).whoami();
  expect(namespaces).toEqual(['team-a']);
  const version = client({ transport: overLambda, namespace: '7' });
  await expect(version.readLease('k')).rejects.toMatchObject({ code: 'Forbidden' });
});

it.each([
  ...[
    '',
    '.',
    '..',
    '../..',
    'a/b',
    '/',
    'a/',
    'team-a/..',
    '%2e%2e',
    'a%2fb',
    'a b',
    'a\n',
    'A',
    '-a',
    'é',
    'a?b',
    'a#b',
  ],
  ...['a'.repeat(33), '{ns}', null as unknown as string],
])('a client for the namespace %j cannot be made with any transport', (namespace) => {
  const sent: unknown[] = [];
  const send = async (...call: unknown[]) => sent.push(call) as never;
  for (const way of [{ fetch: send, endpoint: api.url }, { transport: send }])
    expect(() => client({ ...way, namespace })).toThrow(/^the namespace must match \/.*\/, not '/);
  expect(sent).toEqual([]);
});

it.each(['a', '0', 'team-a', 'a-', 'a'.repeat(32)])('a client accepts the namespace %s', async (namespace) => {
  const own = client({ namespace });
  expect(await own.withLease('k', ({ key }) => key)).toBe('k');
  expect(await world.leases.rawItem(`${namespace}/k`)).toBeDefined();
});
