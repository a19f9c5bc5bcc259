import { describe, expect, it } from 'vitest';
import { failure, leaseWorld } from '../support/worlds/leases.ts';

const world = await leaseWorld();
const { acquire, heartbeat, release, clock, requests, rawItem } = world;

describe('heartbeat', () => {
  it('a heartbeat extends by the current ttl with one request, and changes the version', async () => {
    const grant = await acquire({ key: 'extend', ttlSeconds: 30, data: ['d'] });
    clock.advance(20_500);
    requests.sent.length = 0;
    const beat = await heartbeat({ key: 'extend', leaseId: grant.leaseId });
    expect(requests.sent).toEqual(['UpdateItem']);
    expect(beat).toEqual({
      key: 'extend',
      holder: 'tester',
      leaseId: grant.leaseId,
      version: expect.any(String),
      fence: grant.fence,
      acquiredAt: grant.acquiredAt,
      expiresAt: new Date(clock.now() + 30_000).toISOString(),
      remainingMs: 30_000,
      data: ['d'],
    });
    expect(beat.version).not.toBe(grant.version);
    expect(await rawItem('extend')).toMatchObject({
      lease_version: { S: beat.version },
      expires_at: { N: String(clock.now() + 30_000) },
      lease_expiry: { N: String(Math.ceil((clock.now() + 30_000) / 1000)) },
    });
  });

  it('a heartbeat changes the ttl, also for the heartbeats after it', async () => {
    const { leaseId } = await acquire({ key: 'change-ttl', ttlSeconds: 10 });
    clock.advance(1000);
    expect((await heartbeat({ key: 'change-ttl', leaseId, ttlSeconds: 100 })).remainingMs).toBe(100_000);
    expect(await rawItem('change-ttl')).toMatchObject({
      lease_expiry: { N: String(Math.ceil((clock.now() + 100_000) / 1000)) },
    });
    clock.advance(1000);
    expect((await heartbeat({ key: 'change-ttl', leaseId })).remainingMs).toBe(100_000);
  });

  it('a heartbeat never shortens: the current grant is the answer', async () => {
    const grant = await acquire({ key: 'shorten', ttlSeconds: 100 });
    clock.advance(1000);
    const beat = await heartbeat({ key: 'shorten', leaseId: grant.leaseId, ttlSeconds: 10 });
    expect(beat).toMatchObject({ version: grant.version, expiresAt: grant.expiresAt, remainingMs: 99_000 });
  });

  it.each([undefined, 60])(
    'a heartbeat that arrives as a delayed duplicate of an earlier heartbeat changes no record (ttlSeconds %s)',
    async (ttlSeconds) => {
      const key = `delayed-${ttlSeconds}`;
      const { leaseId } = await acquire({ key, ttlSeconds: 60 });
      const input = { key, leaseId, ...(ttlSeconds && { ttlSeconds }) };
      clock.advance(20_000);
      const later = await heartbeat(input);
      clock.advance(-5000); // the duplicate was sent, and stamped, five seconds earlier
      expect(await heartbeat(input)).toMatchObject({ version: later.version, expiresAt: later.expiresAt });
    },
  );

  it('a heartbeat revives an expired lease that no caller took, under the same fence', async () => {
    const grant = await acquire({ key: 'revive', ttlSeconds: 2 });
    clock.advance(60_000);
    expect(await heartbeat({ key: 'revive', leaseId: grant.leaseId })).toMatchObject({
      fence: grant.fence,
      remainingMs: 2000,
    });
    expect((await failure(acquire({ key: 'revive', holder: 'other' }))).code).toBe('LeaseHeld');
  });

  it('a heartbeat says why the lease is lost, with one request and no new record', async () => {
    const lost = async (key: string, leaseId: string) => {
      requests.sent.length = 0;
      const { code, context, message } = await failure(heartbeat({ key, leaseId }));
      expect(code).toBe('LeaseLost');
      expect(message).toContain(`no longer yours (${context.reason}): stop the work`);
      expect(requests.sent).toEqual(['UpdateItem']);
      return context;
    };
    expect(await lost('never', 'x')).toEqual({ key: 'never', reason: 'unknown', holder: null });
    expect(await rawItem('never')).toBeUndefined();

    const first = await acquire({ key: 'lost', ttlSeconds: 2 });
    await release(first);
    expect(await lost('lost', first.leaseId)).toEqual({ key: 'lost', reason: 'released', holder: null });

    clock.advance(1);
    const second = await acquire({ key: 'lost', holder: 'second' });
    expect(await lost('lost', first.leaseId)).toEqual({ key: 'lost', reason: 'taken', holder: 'second' });

    await world.breakLease({ key: 'lost', fence: second.fence });
    expect(await lost('lost', second.leaseId)).toEqual({ key: 'lost', reason: 'broken', holder: null });
    expect(await lost('lost', first.leaseId)).toEqual({ key: 'lost', reason: 'taken', holder: null });
  });
});
