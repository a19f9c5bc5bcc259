import { beforeEach, describe, expect, it } from 'vitest';
import { capKey } from '../../shared/locks/calls/cap.ts';
import { capInput } from '../../shared/locks/calls/inputs.ts';
import { call } from '../support/emulators/aws.ts';
import { expiryWorld, newLocations } from '../support/worlds/expiry.ts';
import { failure } from '../support/worlds/leases.ts';
import { onceWorld } from '../support/worlds/once.ts';

// What callers of `once` meet while an operator has paused the key (docs/protocols/once.md#pause).

const locations = await newLocations();
const expiry = await expiryWorld({ locations });
const { clock } = expiry;
const world = await onceWorld({ table: locations.leasesTable, clock });
const { begin, run, complete, heartbeat, forget, readOnce, readKey, rawRow, requests, dependencies } = world;
const { clockSkewMs } = dependencies;

const input = capInput();
const command = (asked: object) => capKey(dependencies)(input.parse({ kind: 'once', ...asked }), call());
const reason = 'vendor is down';
const pause = (key: string, more: object = {}) => command({ key, limit: 0, reason, ...more });
const lift = (key: string) => command({ key, limit: null });
const DAYS = 86_400;
const ttlOf = async (key: string) => Number((await rawRow(key))?.lease_expiry?.N) - Math.ceil(clock.now() / 1000);

beforeEach(() => {
  requests.faultsOf = {};
  requests.sent.length = 0;
});

describe('paused keys', () => {
  it('a paused key of once does not let a caller begin, and says why', async () => {
    const key = 'paused';
    await pause(key);
    const before = await rawRow(key);
    const { code, context, message } = await failure(begin({ key, slot: '1' }));
    expect([code, message]).toEqual(['LeaseHeld', `${key} is paused by an operator: ${reason}`]);
    expect(context).toMatchObject({ key, holder: null, retryAfterMs: 60_000, cap: { limit: 0, reason, until: null } });
    expect((await failure(begin({ key, per: '1d' }))).context).toMatchObject({
      retryWith: { slot: expect.any(String) },
    });
    expect(await rawRow(key)).toEqual(before);
    await lift(key);
    expect(await begin({ key, slot: '1' })).toMatchObject({ outcome: 'run', previous: null });
  });

  it('a paused key of once lets its worker complete, and gives the result', async () => {
    const key = 'works';
    const { leaseId, fence } = await run({ key, slot: '1', requestId: 'r' });
    await pause(key);
    expect(await begin({ key, slot: '1', requestId: 'r' })).toMatchObject({ outcome: 'run', repeated: true });
    expect(await heartbeat({ key, leaseId })).toMatchObject({ fence });
    expect(await complete({ key, leaseId, result: 7 })).toMatchObject({ completed: true });
    expect(await begin({ key, slot: '1' })).toMatchObject({ outcome: 'done', result: 7 });
    expect((await failure(begin({ key, slot: '2' }))).context).toMatchObject({ cap: { limit: 0 } });
    await forget({ key, fence });
    expect((await failure(begin({ key, slot: '1' }))).code).toBe('LeaseHeld');
  });

  it('a paused key of once is not taken over from an expired worker', async () => {
    const key = 'expired';
    const { leaseId } = await run({ key, slot: '1', ttlSeconds: 10 });
    await pause(key);
    clock.advance(60_000);
    expect((await failure(begin({ key, slot: '1' }))).context).toMatchObject({ cap: { limit: 0 } });
    expect(await complete({ key, leaseId, result: 1 })).toMatchObject({ completed: true });
  });

  it('a paused key of once lets callers begin again after the pause', async () => {
    const key = 'ends';
    await pause(key, { forSeconds: 60 });
    clock.advance(60_000 + clockSkewMs);
    expect((await failure(begin({ key, slot: '1' }))).context.retryAfterMs).toBe(1);
    clock.advance(1);
    requests.sent.length = 0;
    expect(await begin({ key, slot: '1' })).toMatchObject({ outcome: 'run' });
    expect(requests.sent).toEqual(['UpdateItem']);
  });

  it('a paused key of once is listed, and an unused lifted one is not', async () => {
    for (const key of ['list/a', 'list/b']) await pause(key);
    await lift('list/b');
    expect(await readKey('list/a')).toMatchObject({ state: 'free', slot: null, cap: { limit: 0, reason } });
    const page = await readOnce({ prefix: 'list/' });
    expect('keys' in page && page.keys.map(({ key }) => key)).toEqual(['list/a']);
    await run({ key: 'list/b' });
    expect(await readKey('list/b')).not.toHaveProperty('cap');
  });

  it('TTL keeps a paused key of once as long as its result', async () => {
    const key = 'ttl';
    const keepSeconds = 732 * DAYS;
    const { leaseId } = await run({ key, slot: '1', keepSeconds });
    await pause(key);
    expect(await ttlOf(key)).toBeGreaterThanOrEqual(keepSeconds + 400 * DAYS);
    await heartbeat({ key, leaseId, ttlSeconds: 60 });
    await complete({ key, leaseId });
    expect(await ttlOf(key)).toBeGreaterThanOrEqual(keepSeconds + 400 * DAYS);
    await lift(key);
    expect(await ttlOf(key)).toBeGreaterThanOrEqual(keepSeconds);
  });
});

describe('clean-up', () => {
  const clean = async () => {
    const { reportId } = await expiry.report();
    const rows = await expiry.rows();
    await expiry.clean({ reportId, dryRun: false });
    return rows.map(({ key }) => key.key);
  };

  it('the clean-up leaves the records of dead holders whose key is paused or capped', async () => {
    await run({ key: 'left' });
    await world.acquire({ key: 'left' });
    await pause('left');
    await capKey(dependencies)(input.parse({ key: 'left', limit: 1, reason }), call());
    clock.advance(500 * DAYS * 1000);
    expect(await clean()).toContain('left');
    expect([(await rawRow('left'))?.cap, (await world.rawItem('left'))?.cap]).toEqual([{ N: '0' }, { N: '1' }]);
  });

  it('the clean-up spares a key that was capped since, even of a third-party client', async () => {
    clock.advance(DAYS * 1000);
    await world.putRaw({ key: { S: 'theirs' }, lease_version: { S: 'v' }, lease_expiry: { N: '1700000000' } });
    const { reportId } = await expiry.report();
    expect((await expiry.rows()).map(({ key }) => key.key)).toContain('theirs');
    await capKey(dependencies)(input.parse({ key: 'theirs', limit: 1, reason }), call());
    await expiry.clean({ reportId, dryRun: false });
    expect(await world.rawItem('theirs')).toMatchObject({ cap: { N: '1' } });
  });
});
