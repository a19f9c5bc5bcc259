import { describe, expect, it } from 'vitest';
import { failure, leaseWorld } from '../support/worlds/leases.ts';

const world = await leaseWorld();
const { acquire, breakLease, release, clock, requests, rawItem } = world;

describe('release', () => {
  it('a release frees the key at once with one request', async () => {
    const { leaseId } = await acquire({ key: 'free-again', holder: 'first' });
    requests.sent.length = 0;
    expect(await release({ key: 'free-again', leaseId })).toEqual({ key: 'free-again', released: true });
    expect(requests.sent).toEqual(['UpdateItem']);
    clock.advance(1);
    expect((await acquire({ key: 'free-again', holder: 'second' })).holder).toBe('second');
  });

  it('a release keeps the record, no longer leased, for the retention', async () => {
    const { leaseId, fence } = await acquire({ key: 'kept', requestId: 'r' });
    await release({ key: 'kept', leaseId });
    const item = await rawItem('kept');
    expect(item).not.toHaveProperty('lease_version');
    expect(item).not.toHaveProperty('expires_at');
    expect(item).toMatchObject({
      lease_id: { S: leaseId },
      request_id: { S: 'r' },
      holder: { S: 'tester' },
      fence: { N: String(fence) },
      released_at: { N: String(clock.now()) },
      lease_expiry: { N: String(Math.ceil(clock.now() / 1000) + 3600) },
    });
  });

  it('a release answers true again when repeated', async () => {
    const { leaseId } = await acquire({ key: 'twice' });
    await release({ key: 'twice', leaseId });
    requests.sent.length = 0;
    expect(await release({ key: 'twice', leaseId })).toEqual({ key: 'twice', released: true });
    expect(requests.sent).toEqual(['UpdateItem']);
  });

  it('a release is no error if another caller has the lease, and leaves the new holder alone', async () => {
    const first = await acquire({ key: 'gone', holder: 'first', ttlSeconds: 2 });
    clock.advance(2501);
    const second = await acquire({ key: 'gone', holder: 'second' });
    requests.sent.length = 0;
    expect(await release(first)).toEqual({ key: 'gone', released: false, reason: 'taken' });
    expect(requests.sent).toEqual(['UpdateItem']);
    expect(await world.read({ key: 'gone' })).toMatchObject({ state: 'held', holder: 'second', fence: second.fence });
    expect(await release({ key: 'never', leaseId: 'x' })).toEqual({ key: 'never', released: false, reason: 'unknown' });
    expect(await rawItem('never')).toBeUndefined();
  });

  it('a release does not say that a lease was taken if the record does not show that there ever was a lease', async () => {
    await world.putRaw({ key: { S: 'noted' }, note: { S: 'of another client' } });
    expect(await release({ key: 'noted', leaseId: 'x' })).toEqual({ key: 'noted', released: false, reason: 'unknown' });
    expect(await world.read({ key: 'noted' })).toMatchObject({ key: 'noted', state: 'free', holder: null });
    await world.putRaw({ key: { S: 'foreign' }, lease_version: { S: 'v' }, lease_expiry: { N: '1' } });
    expect(await release({ key: 'foreign', leaseId: 'x' })).toMatchObject({ released: false, reason: 'taken' });
  });
});

describe('break', () => {
  it('a break ends the lease that was seen, with one request, and names its holder', async () => {
    const { fence, leaseId, expiresAt } = await acquire({ key: 'stuck', holder: 'frozen' });
    requests.sent.length = 0;
    expect(await breakLease({ key: 'stuck', fence })).toEqual({
      ...{ key: 'stuck', broken: true, fence, holder: 'frozen', ended: true },
      ...{ holderUntil: expiresAt, lastHeartbeatAt: null },
    });
    expect(requests.sent).toEqual(['UpdateItem']);
    expect(await rawItem('stuck')).toMatchObject({ broken_at: { N: String(clock.now()) } });
    expect(await release({ key: 'stuck', leaseId })).toEqual({ key: 'stuck', released: false, reason: 'broken' });
    clock.advance(1);
    expect((await acquire({ key: 'stuck', holder: 'next' })).fence).toBeGreaterThan(fence);
  });

  it('a break answers a repeat the same', async () => {
    const { fence } = await acquire({ key: 'broken-twice' });
    const first = await breakLease({ key: 'broken-twice', fence });
    expect(await breakLease({ key: 'broken-twice', fence })).toEqual(first);
  });

  it('a break spares a lease under another fence, and names the current lease', async () => {
    const { fence, expiresAt } = await acquire({ key: 'moved-on', holder: 'now' });
    const { code, context } = await failure(breakLease({ key: 'moved-on', fence: fence - 1 }));
    expect(code).toBe('Conflict');
    expect(context).toMatchObject({ key: 'moved-on', actual: { state: 'held', holder: 'now', fence, expiresAt } });
  });

  it('a break finds no lease if the key is free', async () => {
    expect((await failure(breakLease({ key: 'no-such', fence: 1 }))).code).toBe('NotFound');
    const grant = await acquire({ key: 'given-back' });
    await release(grant);
    const { code, context } = await failure(breakLease({ key: 'given-back', fence: grant.fence }));
    expect([code, context]).toEqual(['NotFound', { key: 'given-back' }]);
  });

  it('a break does not take the end of another grant for the end of the grant to break', async () => {
    const { fence } = await acquire({ key: 'broken-since' });
    await breakLease({ key: 'broken-since', fence });
    for (const another of [fence - 1, fence + 1])
      expect((await failure(breakLease({ key: 'broken-since', fence: another }))).code).toBe('NotFound');
  });
});
