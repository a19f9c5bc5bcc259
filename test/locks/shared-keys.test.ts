import { afterAll, beforeEach, expect, it } from 'vitest';
import { call } from '../support/emulators/aws.ts';
import { failure } from '../support/worlds/leases.ts';
import { lineWorld } from '../support/worlds/line.ts';
import { rustClient } from '../support/worlds/rust-lease.ts';

const world = await lineWorld();
const { acquire, release, park, grantOf, clock, requests, steps, table, rows } = world;
const rust = rustClient(world.dynamodb, table, clock);
afterAll(() => steps.stop());
beforeEach(() => {
  requests.sent.length = 0;
});

/** A run of the schedule with its time, which passes. */
const repair = (ms = 49_500) => {
  const endsAt = clock.now() + ms;
  return world.repairWith(call({ timeLeftMs: () => Math.max(0, endsAt - clock.now()) }));
};

it('a key of a third-party client is read every five seconds', async () => {
  const version = (await rust.tryAcquire('shared', 60)) ?? '';
  const { task } = await park({ key: 'shared' });
  const startedAt = clock.now();
  clock.at(startedAt + 12_000, () => rust.release('shared', version));
  expect(await repair()).toMatchObject({ granted: 1, complete: true });
  expect(Date.parse((grantOf(task) as unknown as { acquiredAt: string }).acquiredAt) - startedAt).toBe(15_000);
  expect(clock.now() - startedAt).toBe(15_000); // and the run is over
});

it('a run ends in time, and watches only for young tickets', async () => {
  const version = (await rust.tryAcquire('busy', 7200)) ?? '';
  const { task } = await park({ key: 'busy' });
  const startedAt = clock.now();
  await repair();
  expect(clock.now() - startedAt).toBe(40_000);
  expect(requests.sent.filter((sent) => sent === 'GetItem')).toHaveLength(9); // the first read and eight more
  const [{ parked_at: parkedAt } = {}] = await rows('busy');
  clock.set(Number(parkedAt?.N) + 600_000);
  const later = clock.now();
  await repair();
  expect(clock.now()).toBe(later);
  const { task: young } = await park({ key: 'busy' });
  await repair();
  expect(clock.now()).toBeGreaterThan(later + 5000); // for the young one behind it
  await rust.release('busy', version);
  await repair();
  expect([task.state, young.state]).toEqual(['succeeded', 'waiting']);
  await release(grantOf(task));
  await release(grantOf(young));
});

it('a run reads for the last time while five seconds are left', async () => {
  const versions = [];
  const keys = Array.from({ length: 9 }, (_, at) => `watched ${at}`); // one more than a run works on at once
  for (const key of keys) {
    versions.push((await rust.tryAcquire(key, 7200)) ?? '');
    await park({ key });
  }
  const repairIn = async (ms: number) => {
    requests.sent.length = 0;
    const startedAt = clock.now();
    const { keys: seen, complete } = await repair(ms);
    const read = requests.sent.filter((sent) => sent === 'GetItem').length;
    return { seen, complete, read, tookMs: clock.now() - startedAt };
  };
  expect(await repairIn(4999)).toEqual({ seen: 0, complete: false, read: 0, tookMs: 0 });
  expect(await repairIn(5000)).toEqual({ seen: 9, complete: true, read: 9, tookMs: 0 });
  expect(await repairIn(9999)).toEqual({ seen: 9, complete: true, read: 9, tookMs: 0 });
  expect(await repairIn(10_000)).toEqual({ seen: 9, complete: true, read: 18, tookMs: 5000 });
  const late = async (send: () => Promise<unknown>) => {
    clock.advance(1);
    return send();
  };
  requests.faultsOf.GetItem = [...keys.map(() => 'none' as const), late];
  expect(await repairIn(10_000)).toEqual({ seen: 9, complete: true, read: 17, tookMs: 5001 });
  for (const key of keys) await rust.release(key, versions.shift() ?? '');
  await repair();
});

it('a message about one key does not watch another key', async () => {
  await rust.tryAcquire('by a message', 60);
  const { task } = await park({ key: 'by a message' });
  const startedAt = clock.now();
  expect(await world.repairKey('by a message')).toMatchObject({ keys: 1, granted: 0 });
  expect(clock.now()).toBe(startedAt);
  clock.advance(62_000);
  await world.repairKey('by a message');
  await release(grantOf(task));
});

it('a key that this service holds is read once', async () => {
  const first = await acquire({ key: 'own', ttlSeconds: 600 });
  const { task } = await park({ key: 'own' });
  const startedAt = clock.now();
  await repair();
  expect(clock.now()).toBe(startedAt);
  await release(first);
  expect(task.state).toBe('succeeded');
});

it('a key that fails while it is watched does not end the watch', async () => {
  const startedAt = clock.now();
  const tasks = [];
  for (const key of ['failing once', 'beside it']) {
    const version = (await rust.tryAcquire(key, 60)) ?? '';
    tasks.push((await park({ key })).task);
    clock.at(startedAt + 7000, () => rust.release(key, version));
  }
  clock.set(startedAt + 1000);
  clock.at(startedAt + 3000, () => {
    requests.faultsOf.GetItem = [{ name: 'AccessDeniedException', status: 400 }];
  });
  expect((await failure(repair())).code).toBe('Unavailable');
  for (const task of tasks)
    expect(Date.parse((grantOf(task) as unknown as { acquiredAt: string }).acquiredAt) - startedAt).toBe(11_000);
  expect(clock.now() - startedAt).toBe(11_000); // and the run is over
});
