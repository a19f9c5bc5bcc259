import { afterAll, beforeEach, expect, it } from 'vitest';
import { call } from '../support/aws.ts';
import { failure } from '../support/leases.ts';
import { queueWorld } from '../support/queue.ts';
import { rustClient } from '../support/rust-lease.ts';

const world = await queueWorld();
const { acquire, release, park, rawItem, grantOf, clock, requests, steps, table } = world;
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

it('a key that a client holds that knows nothing of the queue is looked at every five seconds while tickets are young', async () => {
  const version = (await rust.tryAcquire('shared', 60)) ?? '';
  const { task } = await park({ key: 'shared' });
  const startedAt = clock.now();
  clock.at(startedAt + 12_000, () => rust.release('shared', version));
  expect(await repair()).toMatchObject({ granted: 1, complete: true });
  expect(Date.parse((grantOf(task) as unknown as { acquiredAt: string }).acquiredAt) - startedAt).toBe(15_000);
  expect(clock.now() - startedAt).toBe(15_000); // and the run is over
});

it('its mark is put back where such a client dropped it, so that a plain caller does not overtake', async () => {
  const version = (await rust.tryAcquire('barged', 60)) ?? '';
  const { task } = await park({ key: 'barged', ttlSeconds: 300 });
  clock.at(clock.now() + 7000, async () => {
    await rust.release('barged', version);
    await rust.tryAcquire('barged', 15);
    expect(await rawItem('barged')).not.toHaveProperty('waiters');
  });
  clock.at(clock.now() + 11_000, async () => expect(await rawItem('barged')).toHaveProperty('waiters'));
  clock.at(clock.now() + 24_000, async () => {
    expect((await failure(acquire({ key: 'barged', holder: 'barger' }))).code).toBe('LeaseHeld');
    expect(task.state).toBe('succeeded');
  });
  await repair();
  expect(task.state).toBe('succeeded');
});

it('a run ends in time, and tickets that are no longer young wait for the next one', async () => {
  const version = (await rust.tryAcquire('busy', 7200)) ?? '';
  const { task } = await park({ key: 'busy' });
  const startedAt = clock.now();
  await repair();
  expect(clock.now() - startedAt).toBe(40_000);
  expect(requests.sent.filter((sent) => sent === 'GetItem')).toHaveLength(9); // the first look and eight more
  clock.advance(600_000);
  const later = clock.now();
  await repair();
  expect(clock.now()).toBe(later);
  await rust.release('busy', version);
  await repair();
  expect(task.state).toBe('succeeded');
});

it('a key that this service holds is looked at once: its release hands the lease on', async () => {
  const first = await acquire({ key: 'own', ttlSeconds: 600 });
  const { task } = await park({ key: 'own' });
  const startedAt = clock.now();
  await repair();
  expect(clock.now()).toBe(startedAt);
  await release(first);
  expect(task.state).toBe('succeeded');
});

it('what fails while a key is watched is reported, and the run has done the rest', async () => {
  await rust.tryAcquire('failing', 60);
  await park({ key: 'failing' });
  clock.at(clock.now() + 3000, () => {
    requests.faultsOf.GetItem = [{ name: 'AccessDeniedException', status: 400 }];
  });
  expect((await failure(repair())).code).toBe('Unavailable');
});
