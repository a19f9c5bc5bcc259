import { describe, expect, it } from 'vitest';
import { failure, leaseWorld } from '../support/leases.ts';
import { rustClient } from '../support/rust-lease.ts';

const world = await leaseWorld();
const { acquire, heartbeat, release, breakLease, clock, rawItem, requests } = world;
const rust = rustClient(world.dynamodb, world.table, clock);

/** The start of a whole second, where the crate's arithmetic is easiest to follow. */
function onTheSecond(): number {
  clock.set(Math.ceil(clock.now() / 1000) * 1000);
  return clock.now();
}

describe('records of the Rust crate', () => {
  it('are respected: held by a client that leaves no name', async () => {
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
    });
    expect(await world.read({ key: 'rust-held' })).toMatchObject({
      state: 'held',
      holder: null,
      fence: null,
      data: null,
    });
  });

  it('are taken over when the crate itself would, plus the skew margin, and not a millisecond before', async () => {
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
    expect(requests.sent).toEqual(['PutItem']);
  });

  it('that the crate extended are respected to the new expiry', async () => {
    const now = onTheSecond();
    const version = await rust.tryAcquire('rust-extended', 2);
    clock.set(now + 2000);
    await rust.extend('rust-extended', version ?? '', 2);
    clock.set(now + 3500);
    expect((await failure(acquire({ key: 'rust-extended' }))).code).toBe('LeaseHeld');
  });

  it('cannot be heartbeaten, released or broken by guessing', async () => {
    onTheSecond();
    const version = (await rust.tryAcquire('rust-guess', 60)) ?? '';
    expect((await failure(heartbeat({ key: 'rust-guess', leaseId: version }))).context.reason).toBe('taken');
    expect(await release({ key: 'rust-guess', leaseId: version })).toMatchObject({ released: false, reason: 'taken' });
    expect((await failure(breakLease({ key: 'rust-guess', fence: 0 }))).context).toMatchObject({
      actual: { fence: null },
    });
    expect((await rawItem('rust-guess'))?.lease_version).toEqual({ S: version });
  });

  it('are gone when the crate drops the lease, and the key is free', async () => {
    const version = (await rust.tryAcquire('rust-drop', 60)) ?? '';
    expect(await rust.release('rust-drop', version)).toBe(true);
    expect((await acquire({ key: 'rust-drop' })).repeated).toBe(false);
  });
});

describe('our records, to the Rust crate', () => {
  it('have its three attributes in its types, and a version that rotates', async () => {
    const grant = await acquire({ key: 'ours', ttlSeconds: 60 });
    const item = await rawItem('ours');
    expect(item).toMatchObject({
      key: { S: 'ours' },
      lease_version: { S: expect.stringMatching(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/) },
      lease_expiry: { N: String(Math.ceil((clock.now() + 60_000) / 1000)) },
    });
    const beat = await heartbeat(grant);
    expect(beat.version).toBe(grant.version); // within the millisecond nothing is extended
    clock.advance(1);
    expect((await heartbeat(grant)).version).not.toBe(grant.version);
  });

  it('are held until their last millisecond by any clock that agrees with ours', async () => {
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

  it('are free once released, and our late calls do not touch the crate’s lease', async () => {
    const grant = await acquire({ key: 'ours-released' });
    await release(grant);
    const version = await rust.tryAcquire('ours-released', 60);
    expect(version).toBeDefined();
    expect((await failure(heartbeat(grant))).context.reason).toBe('taken');
    expect(await release(grant)).toMatchObject({ released: false, reason: 'taken' });
    expect((await rawItem('ours-released'))?.lease_version).toEqual({ S: version });
  });

  it('cannot be extended or dropped by a crate that lost its lease to us', async () => {
    onTheSecond();
    const version = (await rust.tryAcquire('ours-now', 2)) ?? '';
    clock.advance(3500);
    const grant = await acquire({ key: 'ours-now' });
    expect(await rust.extend('ours-now', version, 60)).toBeUndefined();
    expect(await rust.release('ours-now', version)).toBe(false);
    expect((await rawItem('ours-now'))?.lease_version).toEqual({ S: grant.version });
  });
});
