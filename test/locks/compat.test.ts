import { expect, it } from 'vitest';
import { failure, leaseWorld } from '../support/worlds/leases.ts';
import { rustClient } from '../support/worlds/rust-lease.ts';

const world = await leaseWorld();
const { acquire, heartbeat, release, breakLease, clock, rawItem, requests } = world;
const rust = rustClient(world.dynamodb, world.table, clock);

/** The start of a whole second, where the crate's arithmetic is easiest to follow. */
function onTheSecond(): number {
  clock.set(Math.ceil(clock.now() / 1000) * 1000);
  return clock.now();
}

it('records of the Rust crate are leases of a nameless holder', async () => {
  const now = onTheSecond();
  await rust.tryAcquire('rust-held', 60);
  const { code, context } = await failure(acquire({ key: 'rust-held' }));
  expect(code).toBe('LeaseHeld');
  expect(context).toEqual({
    key: 'rust-held',
    holder: null,
    fence: null,
    expiresAt: new Date(now + 61_000).toISOString(), // the crate holds to the end of the second it names
    retryAfterMs: 61_000 + 500,
    ...{ used: 1, limit: null },
    holders: [{ holder: null, fence: null, mode: 'exclusive', weight: 1, expiresAt: expect.any(String) }],
  });
  expect((await failure(acquire({ key: 'rust-held', limit: 5 }))).code).toBe('LeaseHeld');
  expect(await world.read({ key: 'rust-held' })).toMatchObject({
    state: 'held',
    holder: null,
    fence: null,
    data: null,
  });
});

it('records of the Rust crate are taken over right after the margin', async () => {
  const now = onTheSecond();
  await rust.tryAcquire('rust-expiring', 2);
  clock.set(now + 2999);
  expect(await rust.tryAcquire('rust-expiring', 2)).toBeUndefined();
  clock.set(now + 3499);
  const { context } = await failure(acquire({ key: 'rust-expiring' }));
  expect(context.retryAfterMs).toBe(1);
  clock.set(now + 3500);
  requests.sent.length = 0;
  expect((await acquire({ key: 'rust-expiring' })).repeated).toBe(false);
  expect(requests.sent).toEqual(['UpdateItem']);
});

it('records that the Rust crate extended are respected until the new expiry', async () => {
  const now = onTheSecond();
  const version = await rust.tryAcquire('rust-extended', 2);
  clock.set(now + 2000);
  await rust.extend('rust-extended', version ?? '', 2);
  clock.set(now + 3500);
  expect((await failure(acquire({ key: 'rust-extended' }))).code).toBe('LeaseHeld');
});

it('records of the Rust crate ignore the proof of another key', async () => {
  onTheSecond();
  const { leaseId } = await acquire({ key: 'own' });
  const version = (await rust.tryAcquire('rust-guess', 60)) ?? '';
  const guess = { key: 'rust-guess', leaseId };
  expect((await failure(heartbeat(guess))).context.reason).toBe('taken');
  expect(await release(guess)).toMatchObject({ released: false, reason: 'taken' });
  expect((await failure(breakLease({ key: 'rust-guess', fence: 0 }))).context).toMatchObject({
    actual: { fence: null },
  });
  expect((await rawItem('rust-guess'))?.lease_version).toEqual({ S: version });
});

it('records of Holdfast have the three attributes of the Rust crate in its types', async () => {
  const grant = await acquire({ key: 'ours', ttlSeconds: 60 });
  expect(await rawItem('ours')).toMatchObject({
    key: { S: 'ours' },
    lease_version: { S: 'holdfast' },
    lease_expiry: { N: String(Math.ceil((clock.now() + 60_000) / 1000)) },
  });
  const beat = await heartbeat(grant);
  expect(beat.version).toBe(grant.version); // within the millisecond nothing is extended
  clock.advance(1);
  expect((await heartbeat(grant)).version).not.toBe(grant.version);
});

it('records with shared holders are held for the crate until a lease was released', async () => {
  onTheSecond();
  const permits = [await acquire({ key: 'ours-shared', limit: 2 }), await acquire({ key: 'ours-shared', limit: 2 })];
  clock.advance(100_000);
  expect(await rust.tryAcquire('ours-shared', 60)).toBeUndefined();
  for (const permit of permits) await release(permit);
  expect(await rust.tryAcquire('ours-shared', 60)).toBeUndefined();
  await release(await acquire({ key: 'ours-shared' }));
  expect(await rust.tryAcquire('ours-shared', 60)).toBeDefined();
});

it('records of Holdfast are held for the crate until their last millisecond', async () => {
  onTheSecond();
  clock.advance(1); // so that rounding up has something to do
  const end = clock.now() + 2000;
  await acquire({ key: 'ours-held', ttlSeconds: 2 });
  clock.set(end);
  expect(await rust.tryAcquire('ours-held', 60)).toBeUndefined();
  clock.set(Math.ceil(end / 1000) * 1000 + 999);
  expect(await rust.tryAcquire('ours-held', 60)).toBeUndefined();
  clock.advance(1);
  expect(await rust.tryAcquire('ours-held', 60)).toBeDefined();
});

it('records of Holdfast are free for the crate once released', async () => {
  const grant = await acquire({ key: 'ours-released' });
  await release(grant);
  const version = await rust.tryAcquire('ours-released', 60);
  expect(version).toBeDefined();
  expect((await failure(heartbeat(grant))).context.reason).toBe('taken');
  expect(await release(grant)).toMatchObject({ released: false, reason: 'taken' });
  expect((await rawItem('ours-released'))?.lease_version).toEqual({ S: version });
});

it('records of Holdfast cannot be changed by a crate that lost its lease', async () => {
  onTheSecond();
  const version = (await rust.tryAcquire('ours-now', 2)) ?? '';
  clock.advance(3500);
  const grant = await acquire({ key: 'ours-now' });
  expect(await rust.extend('ours-now', version, 60)).toBeUndefined();
  expect(await rust.release('ours-now', version)).toBe(false);
  expect(await heartbeat(grant)).toMatchObject({ fence: grant.fence });
});
