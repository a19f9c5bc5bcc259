import { beforeEach, describe, expect, it } from 'vitest';
import { seededRandom, testSeed } from '../support/chance/seed.ts';
import { unitCounter } from '../support/emulators/aws.ts';
import { rounds } from '../support/time/rounds.ts';
import { failure } from '../support/worlds/leases.ts';
import { rateWorld } from '../support/worlds/rates.ts';

// What callers of a rate meet under the cap of an operator (docs/protocols/rates.md#cap).

const world = await rateWorld();
const { capRate, reserve, settle, forget, readRate, readRates, clock, requests, rawRate } = world;
const { clockSkewMs } = world.dependencies;

/** One start a second; `slow` allows one in three seconds. */
const rates = [{ limit: 60, per: '1m' }];
const slow = [{ name: 'requests', limit: 20, per: '1m' }];
const reason = 'quota is shared';
const pause = (key: string, more: object = {}) => capRate({ key, change: { paused: true }, reason, ...more });
const cap = (key: string, more: object = {}) => capRate({ key, change: { rates: slow }, reason, ...more });
const lift = (key: string) => capRate({ key, change: { paused: false, rates: null } });
const refusal = async (key: string, more: object = {}) => failure(reserve({ key, rates, waitSeconds: 60, ...more }));

beforeEach(() => {
  requests.faultsOf = {};
  requests.sent.length = 0;
});

describe('paused keys', () => {
  it('a paused key refuses each reservation without a write, and says why', async () => {
    const key = 'paused';
    await reserve({ key, rates });
    await pause(key, { by: 'ann' });
    const before = await rawRate(key);
    const { code, context, message } = await refusal(key);
    const since = new Date(clock.now()).toISOString();
    expect([code, context]).toEqual([
      'RateExceeded',
      {
        ...{ key, retryAfterMs: 60_000, boundBy: 'requests' },
        cap: { limit: 0, rates: null, reason, by: 'ann', since, until: null },
      },
    ]);
    expect(message).toContain(reason);
    clock.advance(3_600_000);
    expect((await refusal(key, { settle: true })).code).toBe('RateExceeded');
    expect(await rawRate(key)).toEqual(before);
  });

  it('a refusal by a paused key does not create a reservation', async () => {
    await pause('fresh');
    expect((await refusal('fresh')).code).toBe('RateExceeded');
    expect(await readRate('fresh')).toMatchObject({ paidUntil: null, rates: [], cap: { limit: 0 } });
  });

  it('a paused key lets callers through once every clock is past the pause', async () => {
    const key = 'ends';
    await pause(key, { until: clock.now() + 5000 });
    expect((await refusal(key)).context.retryAfterMs).toBe(5000 + clockSkewMs + 1);
    clock.advance(5000 + clockSkewMs);
    expect((await refusal(key)).context.retryAfterMs).toBe(1);
    clock.advance(1);
    requests.sent.length = 0;
    expect(await reserve({ key, rates })).toMatchObject({ waitMs: 0 });
    expect(requests.sent).toEqual(['UpdateItem']);
  });

  it('a paused key repeats the start of a request, but does not reserve another', async () => {
    const key = 'repeat';
    await reserve({ key, rates });
    const first = await reserve({ key, rates, requestId: 'r', waitSeconds: 60 });
    await pause(key);
    expect(await reserve({ key, rates, requestId: 'r', waitSeconds: 60 })).toEqual({ ...first, repeated: true });
    clock.advance(1001);
    expect((await refusal(key, { requestId: 'r' })).code).toBe('RateExceeded');
  });

  it('a paused key lets its callers settle and cancel', async () => {
    const key = 'settles';
    const { reservation } = await reserve({ key, rates, settle: true });
    const { reservation: other } = await reserve({ key, rates, settle: true, waitSeconds: 9 });
    await pause(key);
    expect(await settle({ key, reservation, units: { requests: 3 } })).toMatchObject({ settled: true });
    expect(await settle({ key, reservation: other, cancel: true })).toMatchObject({ cancelled: true });
    const paidUntil = new Date(clock.now() + 3000).toISOString();
    expect(await readRate(key)).toMatchObject({ paidUntil, open: 0, cap: { limit: 0 } });
  });
});

describe('capped rates', () => {
  it('capped rates count as if each call had named them', async () => {
    const key = 'capped';
    await cap(key);
    const burst = [{ limit: 60, per: '1m', burst: 30 }];
    const waits: number[] = [];
    for (const named of [rates, rates, burst, [{ limit: 2, per: '1m' }], rates])
      waits.push((await reserve({ key, rates: named, waitSeconds: 60 })).waitMs);
    expect(waits).toEqual([0, 3000, 6000, 9000, 39_000]);
    const { context } = await refusal(key, { waitSeconds: 0 });
    expect(context).toMatchObject({ retryAfterMs: 42_000, boundBy: 'requests', cap: { limit: null, rates: slow } });
  });

  it('a capped rate charges the units of the rate with its name, or one', async () => {
    const key = 'units';
    const two = [
      { name: 'tokens', limit: 600, per: '1m' },
      { name: 'jobs', limit: 6, per: '1m' },
    ];
    await capRate({ key, change: { rates: two }, reason });
    const tokens = (units: number) => [{ name: 'tokens', limit: 60_000, per: '1m', units }];
    expect(await reserve({ key, rates: tokens(500) })).toMatchObject({ boundBy: 'tokens', waitMs: 0 });
    expect(await reserve({ key, rates: tokens(1), waitSeconds: 99 })).toMatchObject({
      ...{ boundBy: 'jobs', waitMs: 50_000 },
    });
    expect(await reserve({ key, rates: tokens(1), waitSeconds: 99 })).toMatchObject({ waitMs: 60_000 });
  });

  it('capped rates take at most ten periods of a call', async () => {
    const key = 'ten';
    await capRate({ key, change: { rates: [{ name: 'requests', limit: 1, per: '1m' }] }, reason });
    await reserve({ key, rates: [{ limit: 60, per: '1m', units: 600 }] });
    expect(await reserve({ key, rates, waitSeconds: 3600 })).toMatchObject({ waitMs: 600_000 });
  });

  it('capped rates do not move starts that callers have, and end when lifted', async () => {
    const key = 'lifted';
    await reserve({ key, rates });
    await cap(key);
    expect(await reserve({ key, rates, waitSeconds: 60 })).toMatchObject({ waitMs: 1000 });
    await lift(key);
    expect(await reserve({ key, rates, waitSeconds: 60 })).toMatchObject({ waitMs: 4000 });
    expect(await reserve({ key, rates, waitSeconds: 60 })).toMatchObject({ waitMs: 5000 });
  });

  it('capped rates end by themselves, even in a process that knows the cap', async () => {
    const key = 'over';
    await cap(key, { until: clock.now() + 1000 });
    await reserve({ key, rates });
    clock.advance(60_000);
    await reserve({ key, rates });
    expect(await reserve({ key, rates, waitSeconds: 60 })).toMatchObject({ waitMs: 1000 });
  });

  it('capped rates hold for a process that knows an earlier, ended cap', async () => {
    const key = 'again';
    await cap(key, { until: clock.now() + 1000 });
    clock.advance(2000);
    await reserve({ key, rates });
    await cap(key, { until: clock.now() + 60_000 });
    await reserve({ key, rates, waitSeconds: 60 });
    expect(await reserve({ key, rates, waitSeconds: 60 })).toMatchObject({ waitMs: 4000 });
  });

  it('a reservation settles by the capped rates of its time, even after a lift', async () => {
    const key = 'settled';
    await cap(key);
    const { reservation } = await reserve({ key, rates, settle: true });
    await lift(key);
    expect(await settle({ key, reservation, units: { requests: 2 } })).toMatchObject({ settled: true });
    expect(await readRate(key)).toMatchObject({ paidUntil: new Date(clock.now() + 6000).toISOString(), open: 0 });
  });

  it('capped rates make another reservation of a request that paid before the cap', async () => {
    const key = 'other';
    await reserve({ key, rates, requestId: 'r' });
    await cap(key);
    expect(await reserve({ key, rates, requestId: 'r', waitSeconds: 60 })).toMatchObject({
      ...{ repeated: false, waitMs: 1000 },
    });
    expect(await reserve({ key, rates, requestId: 'r', waitSeconds: 60 })).toMatchObject({ repeated: true });
  });

  it('capped rates of eight names still fit into a reservation', async () => {
    const key = 'names';
    const four = (letter: string) =>
      Array.from({ length: 4 }, (_, at) => ({
        name: `${letter}${at}`.padEnd(32, 'x'),
        limit: 999_999_999,
        per: '31d',
      }));
    await capRate({ key, change: { rates: four('b') }, reason });
    const max = four('a').map((rate) => ({ ...rate, units: 999_999_999 }));
    const { reservation } = await reserve({ key, rates: max, settle: true });
    expect(await settle({ key, reservation, units: { [max[0]?.name ?? '']: 1 } })).toMatchObject({ settled: true });
  });

  it('capped rates cost one write for each reservation of a process that knows them', async () => {
    const unitsOf = unitCounter(world.dynamodb);
    const key = 'cost';
    await reserve({ key, rates });
    await cap(key);
    requests.sent.length = 0;
    await reserve({ key, rates, waitSeconds: 60 });
    expect(requests.sent).toHaveLength(2);
    expect(await unitsOf(() => reserve({ key, rates, waitSeconds: 60 }))).toEqual([1]);
    expect(requests.sent).toHaveLength(3);
  });

  it('random calls under changing caps get the starts that the formula gives', async () => {
    const random = seededRandom(testSeed());
    const below = (max: number) => Math.floor(random() * max);
    const key = 'random';
    let [paid, capped, until] = [0, 0, 0];
    for (let round = 0; round < rounds(1000, 80); round++) {
      clock.advance([0, 1, below(1000), below(20_000)][below(4)] ?? 0);
      const now = clock.now();
      if (below(5) === 0) {
        [capped, until] = [below(3) * 25, below(2) === 0 ? Number.POSITIVE_INFINITY : now + below(9000)];
        const change = { rates: capped > 0 ? [{ name: 'requests', limit: capped, per: '1m' }] : null };
        await capRate({ key, change, reason, ...(until < Number.POSITIVE_INFINITY && { until }) });
      }
      const isCapped = capped > 0 && until + clockSkewMs >= now;
      const [units, waitSeconds] = [1 + below(3), below(60)];
      const charge = (units * 60_000_000) / (isCapped ? capped : 50);
      const next = Math.max(paid, now * 1000) + charge;
      const start = Math.max(now * 1000, next - (isCapped ? charge : 3_600_000));
      const asked = { key, rates: [{ limit: 50, per: '1m', units, burst: 3 }], waitSeconds };
      if (start > (now + waitSeconds * 1000) * 1000) {
        const { context } = await failure(reserve(asked));
        expect(context).toMatchObject({ retryAfterMs: Math.ceil(start / 1000) - now - waitSeconds * 1000 });
        expect('cap' in context).toBe(isCapped);
      } else {
        expect(await reserve(asked)).toMatchObject({ waitMs: Math.ceil(start / 1000) - now });
        paid = next;
      }
    }
  });
});

describe('rows', () => {
  const key = 'row';

  it('a row with a cap stays for 400 days after each reservation', async () => {
    await cap(key);
    clock.advance(86_400_000);
    await reserve({ key, rates });
    const days = 86_400;
    expect((await rawRate(key))?.lease_expiry?.N).toBe(`${Math.ceil(clock.now() / 1000) + 400 * days}`);
    await lift(key);
    await reserve({ key, rates, waitSeconds: 60 });
    expect(Number((await rawRate(key))?.lease_expiry?.N)).toBeLessThan(clock.now() / 1000 + 2 * days);
  });

  it('a row without a cap has the same attributes as before its first cap', async () => {
    await reserve({ key: 'plain', rates, settle: true });
    const names = Object.keys((await rawRate('plain')) ?? {}).map((name) => name.replace(/^o[\w-]{16}$/, 'o'));
    expect(names.toSorted()).toEqual(
      [
        'key',
        'paid_until',
        'last_request',
        'rates',
        'rates_before',
        'asked_by',
        'asked_at',
        'lease_expiry',
        'opens',
        'o',
      ].toSorted(),
    );
  });

  it.each(['capped', 'paused', 'lifted'])('forget removes only the reservations of a row that is %s', async (how) => {
    const one = `forget ${how}`;
    const { reservation } = await reserve({ key: one, rates, settle: true });
    await (how === 'capped' ? cap(one) : pause(one));
    if (how === 'lifted') await lift(one);
    const { cap_at: at, cap: text } = (await rawRate(one)) ?? {};
    const { paidUntil } = await readRate(one);
    expect(await forget({ key: one, paidUntil })).toEqual({ key: one, forgotten: true });
    const left = (await rawRate(one)) ?? {};
    expect([left.cap_at, left.cap, left.paid_until]).toEqual([at, text, undefined]);
    expect(Object.keys(left).filter((name) => !/^(key|cap.*|lease_expiry)$/.test(name))).toEqual([]);
    expect(await settle({ key: one, reservation, units: { requests: 1 } })).toMatchObject({ settled: false });
    expect((await failure(forget({ key: one, paidUntil }))).code).toBe('NotFound');
    if (how === 'paused') expect((await refusal(one)).code).toBe('RateExceeded');
    else expect(await reserve({ key: one, rates })).toMatchObject({ waitMs: 0 });
  });

  it('a row with a cap does not forget later reservations', async () => {
    const late = 'forget late';
    await cap(late);
    await reserve({ key: late, rates });
    const { paidUntil } = await readRate(late);
    await reserve({ key: late, rates, waitSeconds: 9 });
    expect((await failure(forget({ key: late, paidUntil }))).code).toBe('Conflict');
  });

  it('a row with a cap is listed, and an empty lifted one is not', async () => {
    for (const name of ['list/a', 'list/b', 'list/c']) await pause(name);
    await lift('list/b');
    await reserve({ key: 'list/d', rates });
    const page = await readRates({ prefix: 'list/' });
    const keys = 'keys' in page ? page.keys : [];
    expect(keys.map((view) => [view.key, view.cap?.limit]).toSorted()).toEqual([
      ['list/a', 0],
      ['list/c', 0],
      ['list/d', undefined],
    ]);
  });
});
