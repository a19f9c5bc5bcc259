import { expect, it } from 'vitest';
import { failure, leaseWorld } from '../support/worlds/leases.ts';

const world = await leaseWorld();
const { acquire, breakLease, release, read, clock, requests, rawItem } = world;

it.each([
  ['a lease', {}],
  ['a permit', { limit: 1 }],
])('a release of %s frees the key by one request, and repeats', async (key, terms) => {
  const { leaseId } = await acquire({ key, ...terms, holder: 'first' });
  requests.sent.length = 0;
  for (const _ of ['at first', 'again']) expect(await release({ key, leaseId })).toEqual({ key, released: true });
  expect(requests.sent).toEqual(['UpdateItem', 'UpdateItem']);
  clock.advance(1);
  expect(await acquire({ key, ...terms, holder: 'second' })).toMatchObject({ holder: 'second' });
});

it('a release leaves the key to every client, and keeps its record', async () => {
  const { leaseId, fence } = await acquire({ key: 'kept' });
  await release({ key: 'kept', leaseId });
  const item = await rawItem('kept');
  expect(item).not.toHaveProperty('lease_version');
  expect(item).toMatchObject({
    ...{ fence: { N: String(fence) }, used: { N: '0' }, freed_at: { N: String(clock.now()) } },
    lease_expiry: { N: String(Math.ceil(clock.now() / 1000) + 3600) },
  });
  expect(JSON.stringify(item)).not.toContain(leaseId.split('.')[2]);
  expect(await read({ key: 'kept' })).toMatchObject({ state: 'released', holder: 'tester', fence, holders: [] });
});

it('a release leaves the holder of a taken lease alone', async () => {
  const first = await acquire({ key: 'gone', holder: 'first', ttlSeconds: 2 });
  clock.advance(2501);
  const second = await acquire({ key: 'gone', holder: 'second' });
  requests.sent.length = 0;
  expect(await release(first)).toEqual({ key: 'gone', released: false, reason: 'taken' });
  expect(requests.sent).toEqual(['UpdateItem']);
  expect(await read({ key: 'gone' })).toMatchObject({ state: 'held', holder: 'second', fence: second.fence });
  const never = { key: 'never', leaseId: first.leaseId };
  expect(await release(never)).toEqual({ key: 'never', released: false, reason: 'unknown' });
  expect(await rawItem('never')).toBeUndefined();
});

it('a release says that a lease was taken only if there was one', async () => {
  const { leaseId } = await acquire({ key: 'elsewhere' });
  await world.putRaw({ key: { S: 'noted' }, note: { S: 'of another client' } });
  expect(await release({ key: 'noted', leaseId })).toEqual({ key: 'noted', released: false, reason: 'unknown' });
  expect(await read({ key: 'noted' })).toMatchObject({ key: 'noted', state: 'free', holder: null });
  await world.putRaw({ key: { S: 'foreign' }, lease_version: { S: 'v' }, lease_expiry: { N: '1' } });
  expect(await release({ key: 'foreign', leaseId })).toMatchObject({ released: false, reason: 'taken' });
});

it('a release frees only the weight of its permit', async () => {
  const key = 'weights';
  const [one, other] = [
    await acquire({ key, holder: 'a', limit: 5, weight: 3 }),
    await acquire({ key, holder: 'b', limit: 5, weight: 2 }),
  ];
  await release(one);
  expect(await release(one)).toEqual({ key, released: true });
  expect(await read({ key })).toMatchObject({ used: 2, holders: [{ holder: 'b' }] });
  await release(other);
  expect(await read({ key })).toMatchObject({ state: 'free', used: 0, limit: 5, limitBy: 'b', holders: [] });
  const left = Object.keys((await rawItem(key)) ?? {});
  expect(left.filter((name) => /^[hf]/.test(name)).toSorted()).toEqual(['fence', 'freed_at', 'freed_before']);
});

it('a record remembers the last eight requests whose permits were released or broken', async () => {
  const key = 'any order';
  const permits: Awaited<ReturnType<typeof acquire>>[] = [];
  for (let n = 0; n < 17; n++) permits.push(await acquire({ key, requestId: `r${n}`, limit: 20 }));
  const [a, b, c] = [permits[0], permits[8], permits[16]];
  if (!a || !b || !c) throw new Error('seventeen were granted');
  await release(a);
  await breakLease({ key, fence: b.fence });
  await release(c);
  for (const one of [a, c]) expect(await release(one)).toEqual({ key, released: true });
  expect(await release(b)).toEqual({ key, released: false, reason: 'broken' });
  expect(await breakLease({ key, fence: b.fence })).toMatchObject({ broken: true, fence: b.fence });
  for (const [nth, reason] of [
    [0, 'released'],
    [8, 'broken'],
  ] as const)
    expect(await failure(acquire({ key, requestId: `r${nth}`, limit: 20 }))).toMatchObject({
      code: 'LeaseLost',
      context: { reason },
    });
  for (const permit of permits.slice(1, 6)) await release(permit);
  expect(await release(a)).toEqual({ key, released: true });
  for (const permit of permits.slice(6, 7)) await release(permit);
  expect(await release(a)).toEqual({ key, released: false, reason: 'unknown' });
  expect(await breakLease({ key, fence: b.fence })).toMatchObject({ broken: true });
  await release(permits[9] as (typeof permits)[0]);
  expect(await failure(breakLease({ key, fence: b.fence }))).toMatchObject({ code: 'NotFound' });
});
