import { describe, expect, it } from 'vitest';
import { failure, leaseWorld } from '../support/worlds/leases.ts';

const world = await leaseWorld();
const { acquire, heartbeat, release, breakLease, clock, requests, rawItem } = world;

const HOUR_MS = 3_600_000;

describe.each([
  ['a lease', {}],
  ['a permit', { limit: 2 }],
])('a heartbeat of %s', (kind, terms) => {
  const take = (key: string, more: object = {}) => acquire({ key: `${kind}, ${key}`, ...terms, ...more });

  it('a heartbeat extends by the current ttl with one request, and changes the version', async () => {
    const {
      waitedMs: _,
      repeated: __,
      previous: ___,
      ...grant
    } = await take('extend', { ttlSeconds: 30, data: ['d'] });
    clock.advance(20_500);
    requests.sent.length = 0;
    const beat = await heartbeat({ key: grant.key, leaseId: grant.leaseId });
    expect(requests.sent).toEqual(['UpdateItem']);
    const { mode, limit, weight, used, ...extended } = {
      ...{ mode: '', limit: 0, weight: 0, used: 0 },
      ...grant,
      ...{ version: expect.any(String), expiresAt: new Date(clock.now() + 30_000).toISOString(), remainingMs: 30_000 },
    };
    expect(beat).toEqual(extended);
    expect(beat.version).not.toBe(grant.version);
    // The Rust crate sees when a lease ends.
    const until = kind === 'a lease' ? 30_000 : 400 * 24 * HOUR_MS;
    const seconds = Math.ceil((clock.now() + until) / 1000);
    expect(Math.abs(Number((await rawItem(grant.key))?.lease_expiry?.N) - seconds)).toBeLessThanOrEqual(1);
  });

  it('a heartbeat changes the ttl, for the heartbeats after it too', async () => {
    const { key, leaseId } = await take('change-ttl', { ttlSeconds: 10 });
    clock.advance(1000);
    expect((await heartbeat({ key, leaseId, ttlSeconds: 100 })).remainingMs).toBe(100_000);
    if (kind === 'a lease')
      expect((await rawItem(key))?.lease_expiry).toEqual({ N: `${Math.ceil((clock.now() + 100_000) / 1000)}` });
    clock.advance(1000);
    expect((await heartbeat({ key, leaseId })).remainingMs).toBe(100_000);
  });

  it('a heartbeat never shortens: the current grant is the answer', async () => {
    const { key, leaseId, version, expiresAt } = await take('shorten', { ttlSeconds: 100 });
    clock.advance(1000);
    const beat = await heartbeat({ key, leaseId, ttlSeconds: 10 });
    expect(beat).toMatchObject({ version, expiresAt, remainingMs: 99_000 });
  });

  it.each([undefined, 60])(
    'a delayed duplicate of a heartbeat does not change the record (ttlSeconds %s)',
    async (ttlSeconds) => {
      const { key, leaseId } = await take(`delayed-${ttlSeconds}`, { ttlSeconds: 60 });
      const input = { key, leaseId, ...(ttlSeconds && { ttlSeconds }) };
      clock.advance(20_000);
      const { version, expiresAt } = await heartbeat(input);
      clock.advance(-5000); // the duplicate was sent, and stamped, five seconds earlier
      expect(await heartbeat(input)).toMatchObject({ version, expiresAt });
    },
  );

  it('a heartbeat revives an expired grant under the same fence', async () => {
    const { key, leaseId, fence } = await take('revive', { ttlSeconds: 2 });
    clock.advance(60_000);
    expect(await heartbeat({ key, leaseId })).toMatchObject({ fence, remainingMs: 2000 });
    expect((await failure(acquire({ key, holder: 'other' }))).code).toBe('LeaseHeld');
  });
});

const lost = async (key: string, leaseId: string) => {
  requests.sent.length = 0;
  const { code, context, message } = await failure(heartbeat({ key, leaseId }));
  expect(code).toBe('LeaseLost');
  expect(message).toContain(`no longer yours (${context.reason}): stop the work`);
  expect(requests.sent).toEqual(['UpdateItem']);
  return context;
};

it('a heartbeat says why the lease is lost, with one request', async () => {
  const first = await acquire({ key: 'lost', ttlSeconds: 2 });
  expect(await lost('never', first.leaseId)).toEqual({ key: 'never', reason: 'unknown', holder: null });
  expect(await rawItem('never')).toBeUndefined();

  await release(first);
  expect(await lost('lost', first.leaseId)).toEqual({ key: 'lost', reason: 'released', holder: null });

  clock.advance(1);
  const second = await acquire({ key: 'lost', holder: 'second' });
  expect(await lost('lost', first.leaseId)).toEqual({ key: 'lost', reason: 'taken', holder: 'second' });

  await breakLease({ key: 'lost', fence: second.fence });
  expect(await lost('lost', second.leaseId)).toEqual({ key: 'lost', reason: 'broken', holder: null });
  expect(await lost('lost', first.leaseId)).toEqual({ key: 'lost', reason: 'taken', holder: null });
});

it('a heartbeat says why the permit is lost, as far as the record shows', async () => {
  const [gone, taken, broken] = await Promise.all(
    ['gone', 'taken', 'broken'].map((holder) => acquire({ key: 'permits', holder, limit: 3, ttlSeconds: 10 })),
  );
  if (!gone || !taken || !broken) throw new Error('three were granted');
  await release(gone);
  await breakLease({ key: 'permits', fence: broken.fence });
  clock.advance(10_501);
  await acquire({ key: 'permits', holder: 'next', limit: 1 });
  expect(await lost('permits', gone.leaseId)).toMatchObject({ reason: 'released' });
  expect(await lost('permits', broken.leaseId)).toMatchObject({ reason: 'broken' });
  expect(await lost('permits', taken.leaseId)).toMatchObject({ reason: 'unknown' });
});
