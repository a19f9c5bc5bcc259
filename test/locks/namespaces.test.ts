import { afterAll, expect, it } from 'vitest';
import { namespaceWorld } from '../support/worlds/namespaces.ts';

const world = await namespaceWorld();
afterAll(() => world.stop());
const [a, b, all] = [world.of('team-a'), world.of('team-b'), world.of()];

it('a key of a namespace is another one than the key of that name elsewhere, and is shown as its callers write it', async () => {
  const asked = { key: 'render', holder: 'worker', limit: 1 };
  const granted = await a.post('leases/acquire', asked);
  expect(granted).toMatchObject({ status: 201, body: { key: 'render', used: 1 } });
  expect(await a.post('leases/acquire', asked)).toMatchObject({ status: 409, body: { key: 'render', used: 1 } });
  expect(await b.post('leases/acquire', asked)).toMatchObject({ status: 201, body: { used: 1 } });
  const { leaseId, fence } = granted.body;
  const permit = { key: 'render', leaseId };
  expect((await b.post('leases/heartbeat', permit)).body).toMatchObject({ code: 'LeaseLost', key: 'render' });
  expect((await b.post('leases/release', permit)).body).toMatchObject({ key: 'render', released: false });
  expect((await a.get('leases', { key: 'render' })).body).toMatchObject({
    key: 'render',
    holders: [{ fence }],
  });
  expect((await all.get('leases', { key: 'team-a/render' })).body).toMatchObject({
    key: 'team-a/render',
    holders: [{ fence }],
  });
  expect((await a.post('leases/break', { key: 'render', fence })).body).toMatchObject({
    key: 'render',
    broken: true,
  });
  expect((await a.post('leases/release', permit)).body).toEqual({ key: 'render', released: false, reason: 'broken' });
});
