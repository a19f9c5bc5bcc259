import { beforeEach, describe, expect, it } from 'vitest';
import { failure } from '../support/worlds/leases.ts';
import { rateWorld } from '../support/worlds/rates.ts';

const world = await rateWorld();
const { reserve, settle, clock, requests, rawRate, putRaw } = world;
const MINUTE_MS = 60_000;

/** A hundred tokens a second. */
const tokens = (units: number) => [
  { limit: 6000, per: '1m' },
  { name: 'tokens', limit: 6000, per: '1m', units },
];
const rates = [{ limit: 60, per: '1m' }];
const estimated = (key: string, units = 1000) => reserve({ key, rates: tokens(units), waitSeconds: 60, settle: true });
/** How long a call for one token has to wait now. */
const wait = async (key: string) => (await reserve({ key, rates: tokens(1), waitSeconds: 3600 })).waitMs;

beforeEach(() => {
  requests.faultsOf = {};
  requests.sent.length = 0;
});

describe('settle', () => {
  it.each([
    ['fewer', 200, 2000],
    ['no', 0, 10],
    ['more', 1500, 15_000],
    ['as many', 1000, 10_000],
    ['too many', 1_000_000, 600_000],
  ])('a reservation that is settled with %s units pays those', async (name, units, waitMs) => {
    const { reservation } = await estimated(name);
    requests.sent.length = 0;
    expect(await settle({ key: name, reservation, units: { tokens: units } })).toEqual({ key: name, settled: true });
    expect(requests.sent).toEqual(['UpdateItem']);
    expect(await wait(name)).toBe(waitMs);
  });

  it('a reservation that is settled keeps the estimate of a rate without units', async () => {
    const { reservation } = await estimated('kept');
    expect(await settle({ key: 'kept', reservation, units: { requests: 1 } })).toMatchObject({ settled: true });
    expect(await wait('kept')).toBe(10_000);
  });

  it('a reservation that is settled again changes nothing', async () => {
    const { reservation } = await estimated('twice');
    await settle({ key: 'twice', reservation, units: { tokens: 500 } });
    expect(await settle({ key: 'twice', reservation, units: { tokens: 500 } })).toEqual({
      key: 'twice',
      settled: false,
    });
    expect(await settle({ key: 'twice', reservation, cancel: true })).toEqual({ key: 'twice', cancelled: false });
    expect(await wait('twice')).toBe(5000);
  });

  it('a reservation that is settled after others moves only those that come later', async () => {
    const { reservation } = await estimated('order');
    const second = await estimated('order');
    expect(second.waitMs).toBe(10_000);
    await settle({ key: 'order', reservation, units: { tokens: 100 } });
    expect(await wait('order')).toBe(11_000);
  });

  it('a reservation that is settled long after the key was idle still counts', async () => {
    const { reservation } = await estimated('late');
    clock.advance(MINUTE_MS);
    await settle({ key: 'late', reservation, units: { tokens: 8000 } });
    expect(await wait('late')).toBe(20_000);
  });

  it('a reservation that is settled without an answer may have counted', async () => {
    const { reservation } = await estimated('lost');
    requests.faultsOf.UpdateItem = ['lostReply'];
    expect((await failure(settle({ key: 'lost', reservation, units: { tokens: 0 } }))).code).toBe('OutcomeUnknown');
    expect(await settle({ key: 'lost', reservation, units: { tokens: 0 } })).toMatchObject({ settled: false });
    expect(await wait('lost')).toBe(10);
  });

  it('a reservation that another one of its request has replaced is not settled', async () => {
    const asked = { key: 'replaced', requestId: 'r', waitSeconds: 60, settle: true };
    const first = await reserve({ ...asked, rates: tokens(1000) });
    const second = await reserve({ ...asked, rates: tokens(500) });
    const settleIt = ({ reservation }: typeof first) => settle({ key: 'replaced', reservation, units: { tokens: 0 } });
    expect(await settleIt(first)).toMatchObject({ settled: false });
    expect(await settleIt(second)).toMatchObject({ settled: true });
    expect(await wait('replaced')).toBe(10_010);
  });

  it('a reservation without settle is not settled', async () => {
    const { reservation } = await reserve({ key: 'plain', rates });
    const { code, context } = await failure(settle({ key: 'plain', reservation, units: {} }));
    expect([code, context.issues]).toEqual(['InvalidRequest', [{ path: 'reservation', message: expect.any(String) }]]);
  });

  it('a reservation cannot settle units of a rate that it does not name', async () => {
    const { reservation } = await estimated('unknown');
    const { context } = await failure(settle({ key: 'unknown', reservation, units: { bytes: 1 } }));
    expect(context.issues).toEqual([{ path: 'units.bytes', message: 'must be the name of a rate of the reservation' }]);
  });

  it('a reservation of another key changes nothing', async () => {
    const { reservation } = await estimated('own');
    await estimated('foreign');
    expect(await settle({ key: 'foreign', reservation, cancel: true })).toMatchObject({ cancelled: false });
    expect(await settle({ key: 'absent', reservation, units: {} })).toMatchObject({ settled: false });
    expect(await rawRate('absent')).toBeUndefined();
  });
});

describe('cancel', () => {
  const plain = (key: string, more: object = {}) => reserve({ key, rates, waitSeconds: 60, ...more });

  it.each([true, false])('a reservation that is cancelled as the last pays nothing: settle %s', async (settles) => {
    const key = `last ${settles}`;
    await plain(key);
    const { reservation } = await plain(key, { settle: settles });
    expect(await settle({ key, reservation, cancel: true })).toEqual({ key, cancelled: true });
    expect(await settle({ key, reservation, cancel: true })).toEqual({ key, cancelled: false });
    expect(await plain(key)).toMatchObject({ waitMs: 1000 });
    expect((await rawRate(key))?.opens).toEqual(settles ? { N: '0' } : undefined);
  });

  it.each([false, true])('an id without its terms does not cancel a reservation: settled %s', async (isSettled) => {
    const key = `cut ${isSettled}`;
    await plain(key);
    const { reservation } = await plain(key, { settle: true });
    if (isSettled) await settle({ key, reservation, units: { requests: 1 } });
    const cut = reservation.split('.').slice(0, 4).join('.');
    expect(await settle({ key, reservation: cut, cancel: true })).toEqual({ key, cancelled: false });
    expect(await settle({ key, reservation, cancel: true })).toEqual({ key, cancelled: !isSettled });
  });

  it('a reservation is refused if its terms are those of another charge', async () => {
    const { reservation } = await plain('forged', { settle: true });
    const terms = Buffer.from(JSON.stringify([['requests', 1, '366d', 1]])).toString('base64url');
    const forged = [...reservation.split('.').slice(0, 4), terms].join('.');
    await expect(settle({ key: 'forged', reservation: forged, units: {} })).rejects.toMatchObject({
      code: 'InvalidRequest',
      context: { issues: [{ path: 'reservation' }] },
    });
  });

  it('a reservation that is cancelled before others, without settle, stays paid', async () => {
    const { reservation } = await plain('before');
    await plain('before');
    expect(await settle({ key: 'before', reservation, cancel: true })).toMatchObject({ cancelled: false });
    expect(await plain('before')).toMatchObject({ waitMs: 2000 });
  });

  it('a reservation that is cancelled before others, with settle, pays nothing', async () => {
    const { reservation } = await plain('open', { settle: true });
    await plain('open');
    expect(await settle({ key: 'open', reservation, cancel: true })).toMatchObject({ cancelled: true });
    expect(await plain('open')).toMatchObject({ waitMs: 1000 });
  });

  it.each([true, false])('a request that is sent again after its cancellation pays: settle %s', async (settles) => {
    const request = { requestId: 'r', settle: settles };
    const key = `again ${settles}`;
    await plain(key);
    const { reservation } = await plain(key, request);
    await settle({ key, reservation, cancel: true });
    expect(await plain(key, request)).toMatchObject({ waitMs: 1000, repeated: false });
    expect(await plain(key)).toMatchObject({ waitMs: 2000 });
  });

  it('a reservation that is cancelled late takes nothing from another', async () => {
    const { reservation } = await plain('taken');
    await settle({ key: 'taken', reservation, cancel: true });
    await plain('taken'); // the record has the same *paid until* again
    expect(await settle({ key: 'taken', reservation, cancel: true })).toMatchObject({ cancelled: false });
    expect(await plain('taken')).toMatchObject({ waitMs: 1000 });
  });
});

describe('open reservations', () => {
  /** A record with 200 open reservations, some of them 15 minutes old. */
  async function full(key: string, old: number) {
    const entry = (at: number): [string, { M: Record<string, { N: string }> }] => {
      const madeAt = clock.now() - (at < old ? 15 * MINUTE_MS : 14 * MINUTE_MS);
      return [`o${String(at).padStart(16, '-')}`, { M: { a: { N: '1000000' }, t: { N: String(madeAt) } } }];
    };
    const opens = Object.fromEntries(Array.from({ length: 200 }, (_, at) => entry(at)));
    await putRaw({ key: { S: `holdfast:rate:${key}` }, opens: { N: '200' }, paid_until: { N: '1' }, ...opens });
  }

  it('open reservations are at most 200, and the next call is refused', async () => {
    await full('full', 0);
    const before = await rawRate('full');
    const { code, context } = await failure(reserve({ key: 'full', rates, settle: true }));
    expect([code, context]).toEqual([
      'QueueFull',
      { key: 'full', retryAfterMs: MINUTE_MS, quota: 'openReservations', limit: 200 },
    ]);
    expect(await rawRate('full')).toEqual(before);
    expect(await reserve({ key: 'full', rates })).toMatchObject({ waitMs: 0 });
  });

  it('open reservations of 15 minutes make room, 50 at a time', async () => {
    await full('old', 70);
    requests.sent.length = 0;
    expect(await reserve({ key: 'old', rates, settle: true })).toMatchObject({ waitMs: 0 });
    expect(requests.sent).toHaveLength(3);
    const { opens, ...row } = (await rawRate('old')) ?? {};
    expect(opens).toEqual({ N: '151' });
    expect(Object.keys(row).filter((attribute) => /^o.{16}$/.test(attribute))).toHaveLength(151);
  });

  it('open reservations that were removed keep their estimate', async () => {
    const { reservation } = await estimated('removed');
    await full('removed', 200);
    expect(await settle({ key: 'removed', reservation, units: { tokens: 0 } })).toMatchObject({ settled: false });
  });
});
