import { beforeEach, describe, expect, it } from 'vitest';
import { failure } from '../support/worlds/leases.ts';
import { rateWorld } from '../support/worlds/rates.ts';

const world = await rateWorld();
const { capRate, reserve, clock, requests, rawRate } = world;

const slow = [{ name: 'requests', limit: 20, per: '1m' }];
const reason = 'quota is shared';
const DAYS = 86_400;

beforeEach(() => {
  requests.faultsOf = {};
  requests.sent.length = 0;
});

describe('caps', () => {
  it('a cap takes one read and one write, and names its operator', async () => {
    const [now, until] = [clock.now(), clock.now() + 7_200_000];
    const capped = { limit: 0, at: now, by: 'ann', reason, until, rates: slow };
    const written = await capRate({ key: 'new', change: { rates: slow }, reason, by: 'ann', until });
    expect(written).toEqual({ cap: { capped, at: now } });
    expect(requests.sent).toEqual(['GetItem', 'UpdateItem']);
    expect(await rawRate('new')).toEqual({
      ...{ key: { S: 'holdfast:rate:new' }, cap: { S: JSON.stringify({ capped }) }, cap_at: { N: `${now}` } },
      cap_until: { N: `${until}` },
      lease_expiry: { N: `${Math.ceil(now / 1000) + 400 * DAYS}` },
    });
  });

  it('a pause keeps the capped rates, and its lift leaves them', async () => {
    const { cap: capped } = await capRate({ key: 'both', change: { rates: slow }, reason });
    const { cap: paused, before } = await capRate({ key: 'both', change: { paused: true }, reason: 'it is down' });
    expect(before).toEqual(capped);
    expect(paused).toMatchObject({ pause: { reason: 'it is down' }, capped: { rates: slow, reason } });
    expect(await capRate({ key: 'both', change: { paused: false } })).toMatchObject({
      cap: { pause: undefined, capped: { rates: slow, reason } },
    });
    const { cap, before: left } = await capRate({ key: 'both', change: { rates: null } });
    expect([cap, left?.capped?.rates]).toEqual([undefined, slow]);
  });

  it.each([
    ['a pause', { paused: true }, { rates: slow }],
    ['a capped rate', { rates: slow }, { paused: true }],
  ])('%s without an end outlasts a later command with one', async (what, first, second) => {
    const key = `ends: ${what}`;
    await capRate({ key, change: first, reason });
    await capRate({ key, change: second, reason: 'for a second', until: clock.now() + 1000 });
    clock.advance(2000);
    const { before } = await capRate({ key, change: {} });
    expect(before && { paused: before.pause !== undefined, rates: before.capped?.rates }).toEqual(
      'paused' in first ? { paused: true, rates: undefined } : { paused: false, rates: slow },
    );
  });

  it('a lift keeps `cap_at`, and a later command has a later one', async () => {
    const key = 'number';
    const now = clock.now();
    await capRate({ key, change: { paused: true }, reason, by: 'ann', until: now + 1000 });
    await capRate({ key, change: { paused: false } });
    const raw = await rawRate(key);
    expect([Object.keys(raw ?? {}).toSorted(), raw?.cap_at]).toEqual([
      ['cap_at', 'key', 'lease_expiry'],
      { N: `${now + 1}` },
    ]);
    const { cap } = await capRate({ key, change: { paused: true }, reason, now: now - 400 });
    expect(cap?.at).toBe(now + 2);
  });

  it('a cap that has ended counts as none for the next command', async () => {
    const key = 'over';
    await capRate({ key, change: { rates: slow }, reason, until: clock.now() + 1000 });
    clock.advance(1000 + world.dependencies.clockSkewMs);
    expect((await capRate({ key, change: { paused: false } })).before).toBeDefined();
    await capRate({ key, change: { rates: slow }, reason, until: clock.now() + 1000 });
    clock.advance(1001 + world.dependencies.clockSkewMs);
    const { before, cap } = await capRate({ key, change: { paused: true }, reason });
    expect([before, cap]).toEqual([undefined, expect.objectContaining({ capped: undefined })]);
  });

  it('a cap keeps the row for 400 days after all that is paid', async () => {
    await reserve({ key: 'long', rates: [{ limit: 1, per: '31d', units: 10 }] });
    await capRate({ key: 'long', change: { paused: true }, reason });
    const expiry = Number((await rawRate('long'))?.lease_expiry?.N);
    expect(expiry).toBe(Math.ceil(clock.now() / 1000) + (310 + 400) * DAYS);
    await capRate({ key: 'long', change: { paused: false } });
    expect(Number((await rawRate('long'))?.lease_expiry?.N)).toBe(expiry);
  });

  it('a cap that cannot be read pauses the key', async () => {
    await world.putRaw({ key: { S: 'holdfast:rate:strange' }, cap: { S: '{"tokens":3}' }, cap_at: { N: '1' } });
    const { before } = await capRate({ key: 'strange', change: { paused: false } });
    expect(before).toMatchObject({ pause: { limit: 0 } });
  });
});

describe('unanswered caps', () => {
  const key = 'lost';
  const command = { key, change: { paused: true }, reason };

  it.each(['pause', 'lift'])('a %s that had landed is answered as done', async (what) => {
    const change = { paused: what === 'pause' };
    if (!change.paused) await capRate(command);
    requests.faultsOf.UpdateItem = ['lostReply'];
    const number = Number((await rawRate(key))?.cap_at?.N ?? clock.now() - 1);
    const { cap } = await capRate({ key, change, reason });
    expect([cap?.pause !== undefined, (await rawRate(key))?.cap_at]).toEqual([change.paused, { N: `${number + 1}` }]);
  });

  it('a cap that landed late, after its lift, changes nothing', async () => {
    const late = 'late';
    let land = async (): Promise<unknown> => undefined;
    requests.faultsOf.UpdateItem = [
      (send) => {
        land = send;
        throw Object.assign(new Error('reset'), { code: 'ECONNRESET', syscall: 'read' });
      },
    ];
    await capRate({ ...command, key: late });
    await capRate({ key: late, change: { paused: false } });
    const lifted = await rawRate(late);
    expect(await land()).toMatchObject({ response: { statusCode: 400 } });
    expect(await rawRate(late)).toEqual(lifted);
  });

  it('a cap that loses to five other commands fails with Conflict', async () => {
    let at = 1_000_000_000_000;
    const other = async (send: () => Promise<unknown>) => {
      await world.putRaw({ key: { S: 'holdfast:rate:foiled' }, cap_at: { N: `${++at}` } });
      return send();
    };
    requests.faultsOf.UpdateItem = [other, other, other, other, other];
    expect((await failure(capRate({ ...command, key: 'foiled' }))).code).toBe('Conflict');
    expect((await capRate({ ...command, key: 'foiled' })).cap?.pause).toBeDefined();
  });
});
