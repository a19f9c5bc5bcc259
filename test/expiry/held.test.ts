import { expect, it } from 'vitest';
import { readExpired } from '../../functions/expiry/read.ts';
import { MAX_NAMED_NAMESPACES } from '../../shared/expiry/checkpoint.ts';
import { call } from '../support/emulators/aws.ts';
import { httpEvent, lambdaContext } from '../support/stack/adapters.ts';
import { expiryWorld, lease, newLocations, releasedLease, rustLease } from '../support/worlds/expiry.ts';
import { permitsWorld } from '../support/worlds/permits.ts';

/** A world with a lease of each of these keys, for another hour. */
async function worldWith(keys: string[], overrides: Parameters<typeof expiryWorld>[0] = {}) {
  const world = await expiryWorld(overrides);
  const inAnHour = world.clock.now() + 3_600_000;
  for (const key of keys) await world.putLease(lease(key, inAnHour));
  return world;
}

it('a report counts the leases that each namespace holds, and no others', async () => {
  const world = await worldWith(['team-a/1', 'team-a/2', 'team-a/deep/3', 'team-b/1', 'plain', 'Upper/case', '-x/1'], {
    pageRows: 2,
  });
  const now = world.clock.now();
  await world.putLease(lease('team-a/expired', now - 60_000));
  // in the last millisecond of the clock skew margin, so others may not take it over yet
  await world.putLease(lease('team-b/margin', now - 500));
  await world.putLease(lease('team-b/past the margin', now - 501));
  await world.putLease(releasedLease('team-a/released', Math.floor(now / 1000) + 600));
  await world.putLease(releasedLease('team-a/old', Math.floor(now / 1000) - 600));
  await world.putLease(rustLease('team-a/rust', Math.floor(now / 1000) + 600));
  const report = await world.report();
  expect(report.complete).toBe(true);
  expect(report.heldByNamespace).toEqual([
    { namespace: 'team-a', leases: 3 },
    { namespace: 'team-b', leases: 2 },
  ]);
  expect(report.expired).toMatchObject({ abandonedLease: { count: 2 }, releasedLease: { count: 1 } });
  expect(world.measured).toMatchObject([{ heldByNamespace: report.heldByNamespace }]);
  expect((await world.rows()).map(({ key }) => key.key).sort()).toEqual([
    'team-a/expired',
    'team-a/old',
    'team-b/past the margin',
  ]);
});

it('a report counts the permits that each namespace holds, each as one lease', async () => {
  const permits = await permitsWorld();
  const { clock, dependencies } = permits;
  const locations = { ...(await newLocations()), leasesTable: dependencies.table };
  const world = await expiryWorld({ clock, locations, pageRows: 1 });
  for (const holder of ['a', 'b']) await permits.acquire({ key: 'team-a/gpus', holder, limit: 8, weight: 4 });
  await permits.acquire({ key: 'team-a/catalog', mode: 'exclusive' });
  await permits.acquire({ key: 'plain', limit: 2 });
  await permits.release(await permits.acquire({ key: 'team-b/done', limit: 2 }));
  await permits.acquire({ key: 'team-b/dead', limit: 2, ttlSeconds: 2 });
  await world.putLease(lease('team-a/1', clock.now() + 3_600_000));
  clock.advance(2500);
  expect((await world.report()).heldByNamespace).toEqual([
    { namespace: 'team-a', leases: 4 },
    { namespace: 'team-b', leases: 1 }, // within the margin for clocks
  ]);
  clock.advance(1);
  expect((await world.report()).heldByNamespace).toEqual([{ namespace: 'team-a', leases: 4 }]);
  const own = await world.report(call({ namespace: 'team-b' }));
  expect([own.heldByNamespace, own.expired.abandonedPermit.count]).toEqual([[], 1]);
});

it('a report counts each lease once, wherever its runs end', async () => {
  const keys = Array.from({ length: 30 }, (_, at) => `team-${at % 3}/${at}`);
  const world = await worldWith(keys, { pageRows: 1, segments: 3 });
  let runs = 0;
  for (let complete = false; !complete; runs++) {
    let checks = 0;
    // Each run has time for some pages.
    ({ complete } = await world.report(call({ timeLeftMs: () => (checks++ < 12 ? 10_000 : 0) })));
  }
  expect(runs).toBeGreaterThan(2);
  expect((await world.read()).heldByNamespace).toEqual(
    ['team-0', 'team-1', 'team-2'].map((namespace) => ({ namespace, leases: 10 })),
  );
});

it('a report shows callers of a namespace only their own leases', async () => {
  const many = Array.from({ length: MAX_NAMED_NAMESPACES + 1 }, (_, at) => [`n${at}/1`, `n${at}/2`]).flat();
  const world = await worldWith([...many, 'team-z/1'], { pageRows: 1000 });
  await world.report();
  const whole = await world.read();
  expect(whole.heldByNamespace).toHaveLength(MAX_NAMED_NAMESPACES);
  expect(whole.heldByNamespace).not.toContainEqual({ namespace: 'team-z', leases: 1 });
  const handler = readExpired({ s3: world.dependencies.s3, locations: world.locations });
  const heldIn = async (namespace: string) => {
    const path = `/v1/ns/${namespace}/expired`;
    const event = { ...httpEvent('GET', {}), routeKey: 'GET /v1/ns/{ns}/expired', rawPath: path };
    const context = lambdaContext();
    const invokedFunctionArn = `${context.invokedFunctionArn}:HTTP`;
    const { body } = (await handler(event, { ...context, invokedFunctionArn })) as { body: string };
    return JSON.parse(body).heldByNamespace;
  };
  expect(await heldIn('team-z')).toEqual([{ namespace: 'team-z', leases: 1 }]);
  expect(await heldIn('team-none')).toEqual([]);
});
