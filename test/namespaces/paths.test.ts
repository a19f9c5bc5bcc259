import { afterAll, describe, expect, it } from 'vitest';
import { type Answer, httpEvent, throughHttp } from '../support/stack/adapters.ts';
import { leaseWorld } from '../support/worlds/leases.ts';
import { namespaceWorld } from '../support/worlds/namespaces.ts';

const world = await namespaceWorld();
afterAll(() => world.stop());
const body = JSON.stringify({ key: 'k', holder: 'h' });

it.each(['a', 'team-a', '0', 'a'.repeat(32), 'a-', '9-a'])('the name %s is a namespace', async (namespace) => {
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
  ...['team-a%2F..%2Fteam-b', 'team-a%5C'],
])('the name %s is not a namespace, and nothing is written', async (namespace) => {
  const before = await world.expiry.itemsOf(world.locations.leasesTable);
  const { status, body: answer } = await world.send(
    'POST',
    `/v1/ns/${encodeURI(namespace).replaceAll('%25', '%')}/leases/acquire`,
    body,
  );
  expect([400, 404]).toContain(status);
  if (status === 400) expect(answer).toMatchObject({ code: 'InvalidRequest', issues: [{ path: 'path' }] });
  expect(await world.expiry.itemsOf(world.locations.leasesTable)).toEqual(before);
});

describe('behind an HTTP API', () => {
  const acquire = async (path: string) => {
    const key = `key-${path}`;
    const sent = JSON.stringify({ key, holder: 'h' });
    return { key, ...(await world.send('POST', path, sent)) };
  };

  it.each([
    ['/v1/ns/team%2Da/leases/acquire', 'team-a'],
    ['/v1/ns/%74eam-a/leases/acquire', 'team-a'],
    ['/v1/ns/team-a%2Fleases%2Facquire', 'team-a'],
    ['/v1/ns/team-a/leases/acquire%3F', 'team-a'],
    // Only IAM can refuse this call to a caller of team-a: the function receives the path after the cut.
    ['/v1/ns/team-b/leases/acquire%3F/v1/ns/team-a/leases/acquire', 'team-b'],
  ])('the path %s is a call of %s', async (path, namespace) => {
    const { key, status } = await acquire(path);
    expect(status).toBe(201);
    expect(await world.leases.rawItem(`${namespace}/${key}`)).toBeDefined();
  });

  it.each([
    ['/v1/ns/team-a/leases/acquire%23/v1/ns/team-b', 404],
    ['/v1/ns/team-a%23/leases/acquire', 400],
    ['/v1/ns/team-a/%2e%2e/team-b/leases/acquire', 404],
    ['/v1/ns/%2e%2e/leases/acquire', 400],
    ['/v1/ns/%2e/leases/acquire', 400],
    ['/v1/ns%2F%2Fleases/acquire', 404],
    ['/v1/ns/team%252Da/leases/acquire', 400],
    ['/v1/ns/team-a%25/leases/acquire', 400],
    ['/v1/ns/team-a%2F%3F/leases/acquire', 404],
    ['/v1/leases%2F..%2Fns%2Fteam-a%2Fleases/acquire', 404],
    ['/v1/ns/team-a%/leases/acquire', 400],
    ['/v1/ns/team-a%C3/leases/acquire', 400],
    ['/v1/ns/%/leases/acquire', 400],
  ])('a path %s behind an HTTP API is refused with %i, without a write', async (path, expected) => {
    const before = await world.expiry.itemsOf(world.locations.leasesTable);
    const { status, body: answer } = await acquire(path);
    expect(status).toBe(expected);
    if (answer.code) expect(answer).toMatchObject({ code: 'InvalidRequest', issues: [{ path: 'path' }] });
    expect(await world.expiry.itemsOf(world.locations.leasesTable)).toEqual(before);
  });

  it.each(['?/v1/ns/team-b/leases/acquire', '?key=other'])('a POST with the query %s is refused', async (query) => {
    const { status, body: answer } = await acquire(`/v1/ns/team-a/leases/acquire${query}`);
    expect(status).toBe(400);
    expect(answer).toMatchObject({ code: 'InvalidRequest', issues: [{ path: 'query' }] });
  });
});

/** Events as a gateway might send them if it reads a path otherwise than IAM. */
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
