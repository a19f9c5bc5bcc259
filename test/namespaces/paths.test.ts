import { afterAll, expect, it } from 'vitest';
import { type Answer, httpEvent, throughHttp } from '../support/stack/adapters.ts';
import { leaseWorld } from '../support/worlds/leases.ts';
import { namespaceWorld } from '../support/worlds/namespaces.ts';

const world = await namespaceWorld();
afterAll(() => world.stop());
const body = JSON.stringify({ key: 'k', holder: 'h' });

it.each(['a', 'team-a', '0', 'a'.repeat(32), 'a-', '9-a'])('%s is a namespace', async (namespace) => {
  expect((await world.send('POST', `/v1/ns/${namespace}/leases/acquire`, body)).status).toBe(201);
  expect(await world.leases.rawItem(`${namespace}/k`)).toBeDefined();
});

it.each([
  ...[
    'A',
    '-a',
    'a'.repeat(33),
    'a_b',
    'a.b',
    'é',
    '%61',
    'a%2Fb',
    '..',
    '.',
    '%2e%2e',
    'a%00',
    '{ns}',
    'a;b',
    'a,b',
    '*',
    '$',
  ],
  ...['team-a%2F..%2Fteam-b', 'team-a%5C', 'team-a%', '%'],
])('%s is none: nothing is written', async (namespace) => {
  const before = await world.expiry.itemsOf(world.places.leasesTable);
  const { status, body: answer } = await world.send(
    'POST',
    `/v1/ns/${encodeURI(namespace).replaceAll('%25', '%')}/leases/acquire`,
    body,
  );
  expect([400, 404]).toContain(status);
  if (status === 400) expect(answer).toMatchObject({ code: 'InvalidRequest', issues: [{ path: 'path' }] });
  expect(await world.expiry.itemsOf(world.places.leasesTable)).toEqual(before);
});

/** What a gateway might make of a path that it reads otherwise than IAM did. */
it.each<[routeKey: string, rawPath: string]>([
  ['POST /v1/ns/{ns}/leases/acquire', '/v1/ns/a/../b/leases/acquire'],
  ['POST /v1/ns/{ns}/leases/acquire', '/v1/ns/a//leases/acquire'],
  ['POST /v1/ns/{ns}/leases/acquire', '/v1/ns/a/./leases/acquire'],
  ['POST /v1/ns/{ns}/leases/acquire', '/v1/ns/a/leases/%61cquire'],
  ['POST /v1/ns/{ns}/leases/acquire', '/v1/leases/acquire'],
  ['POST /v1/ns/{ns}/leases/acquire', '/prod/v1/ns/a/leases/acquire'],
  ['POST /v1/ns/{ns}/leases/acquire', '/v1/ns/a/leases/release'],
  ['POST /v1/ns/{ns}/leases/acquire', '/v1/ns/a/leases/acquire/'],
  ['POST /v1/ns/{ns}/leases/acquire', '/v1/ns/a/b/leases/acquire'],
  ['POST /v1/ns/{ns}/leases/acquire', ''],
  ['POST /v1/leases/acquire', '/v1/ns/a/leases/acquire'],
  ['POST /v1/leases/acquire', '/v1/leases/../ns/a/leases/acquire'],
  ['POST /v1/leases/acquire', '/v1//leases/acquire'],
  ['$default', '/v1/ns/a/leases/acquire'],
])('the route %s at the path %s is refused', async (routeKey, rawPath) => {
  const { handlers, requests } = await leaseWorld();
  const answer: Answer = await throughHttp(handlers.acquire, { ...httpEvent('POST', { body }), routeKey, rawPath });
  expect(answer).toMatchObject({ status: 400, outcome: 'InvalidRequest', body: { issues: [{ path: 'path' }] } });
  expect([...requests.sent, ...handlers.acquire.requests.sent]).toEqual([]);
});
