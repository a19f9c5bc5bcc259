import { beforeEach, describe, expect, it } from 'vitest';
import type { Measure } from '../../shared/aws/call.ts';
import { seededRandom, testSeed } from '../support/chance/seed.ts';
import { call, type Fault } from '../support/emulators/aws.ts';
import { networkError } from '../support/faults/cuttable.ts';
import { rounds } from '../support/time/rounds.ts';
import { failure } from '../support/worlds/leases.ts';
import { rateWorld } from '../support/worlds/rates.ts';

const world = await rateWorld();
const { reserve, settle, clock, requests, rawRate, putRaw } = world;

/** A start each second. */
const rates = [{ limit: 60, per: '1m' }];
const instant = (afterMs: number) => new Date(clock.now() + afterMs).toISOString();

beforeEach(() => {
  requests.faultsOf = {};
  requests.sent.length = 0;
});

describe('reserve', () => {
  it('a call that reserves at an idle key starts now, by one write', async () => {
    expect(await reserve({ key: 'idle', rates })).toEqual({
      ...{ key: 'idle', reservation: expect.stringMatching(/^r\.[\w-]{16}\.1000000\.1000000$/) },
      ...{ startAt: instant(0), waitMs: 0, sleepSeconds: 0, boundBy: 'requests', repeated: false },
    });
    expect(requests.sent).toEqual(['UpdateItem']);
  });

  it('a call that reserves while others have paid starts after them, in order', async () => {
    await reserve({ key: 'busy', rates });
    clock.advance(300);
    for (const waitMs of [700, 1700, 2700])
      expect(await reserve({ key: 'busy', rates, waitSeconds: 60 })).toMatchObject({
        ...{ startAt: instant(waitMs), waitMs, sleepSeconds: Math.ceil(waitMs / 1000) },
      });
    expect(requests.sent).toHaveLength(5); // one more than calls: the first call did not know that the key is busy
  });

  it('a call at an idle key starts now, and idle time saves nothing', async () => {
    await reserve({ key: 'pause', rates });
    clock.advance(3_600_000);
    expect(await reserve({ key: 'pause', rates, waitSeconds: 9 })).toMatchObject({ waitMs: 0 });
    expect(await reserve({ key: 'pause', rates, waitSeconds: 9 })).toMatchObject({ waitMs: 1000 });
  });

  it('a call that reserves is refused without a write for a late start', async () => {
    await reserve({ key: 'refused', rates });
    await reserve({ key: 'refused', rates, waitSeconds: 1 });
    const before = await rawRate('refused');
    const { code, context } = await failure(reserve({ key: 'refused', rates, waitSeconds: 1 }));
    expect([code, context]).toEqual(['RateExceeded', { key: 'refused', retryAfterMs: 1000, boundBy: 'requests' }]);
    expect(await rawRate('refused')).toEqual(before);
    clock.advance(999);
    expect((await failure(reserve({ key: 'refused', rates, waitSeconds: 1 }))).context.retryAfterMs).toBe(1);
    clock.advance(1);
    expect(await reserve({ key: 'refused', rates, waitSeconds: 1 })).toMatchObject({ waitMs: 1000 });
  });

  it('a call that reserves with a burst starts at once within the burst', async () => {
    const burst = [{ limit: 60, per: '1m', burst: 3 }];
    const waits: number[] = [];
    for (let at = 0; at < 5; at++) waits.push((await reserve({ key: 'burst', rates: burst, waitSeconds: 9 })).waitMs);
    expect(waits).toEqual([0, 0, 0, 1000, 2000]);
    expect((await failure(reserve({ key: 'burst', rates: burst }))).context.retryAfterMs).toBe(3000);
  });

  it('a call that reserves at two rates is bound by the tightest', async () => {
    const two = (units: number) => [...rates, { name: 'tokens', limit: 10_000, per: '1m', units }];
    expect(await reserve({ key: 'two', rates: two(500) })).toMatchObject({ boundBy: 'tokens', waitMs: 0 });
    expect(await reserve({ key: 'two', rates: two(1), waitSeconds: 9 })).toMatchObject({
      ...{ boundBy: 'requests', waitMs: 3000 },
    });
    expect(await reserve({ key: 'two', rates: two(1), waitSeconds: 9 })).toMatchObject({ waitMs: 4000 });
  });

  it('a call that reserves at a fast rate counts each part of a millisecond', async () => {
    const fast = [{ limit: 100_000, per: '1m' }];
    let last = { startAt: '', waitMs: 0 };
    for (let at = 0; at < 6; at++) last = await reserve({ key: 'fast', rates: fast, waitSeconds: 1 });
    expect(last).toMatchObject({ waitMs: 3, startAt: instant(3) });
  });

  it('a call that reserves learns that the caller before named other rates', async () => {
    const other = [{ limit: 600, per: '1m' }];
    expect(await reserve({ key: 'other', rates })).not.toHaveProperty('rateChanged');
    expect(await reserve({ key: 'other', rates: other, waitSeconds: 9 })).toMatchObject({
      ...{
        waitMs: 1000,
        rateChanged: { from: [{ ...rates[0], name: 'requests' }], to: [{ ...other[0], name: 'requests' }] },
      },
    });
    expect(await reserve({ key: 'other', rates: other, waitSeconds: 9 })).not.toHaveProperty('rateChanged');
  });

  it('a reserved wait is measured, and a refusal is not', async () => {
    const noted: [Measure, number][] = [];
    const as = call({ measure: (measure, value) => void noted.push([measure, value]) });
    await reserve({ key: 'measured', rates }, as);
    await reserve({ key: 'measured', rates, waitSeconds: 9 }, as);
    await failure(reserve({ key: 'measured', rates }, as));
    expect(noted).toEqual([
      ['RateWaitMs', 0],
      ['RateWaitMs', 1000],
    ]);
  });

  it('a call that reserves rounds its sleep up, and counts it from the answer', async () => {
    await reserve({ key: 'sleep', rates });
    await reserve({ key: 'sleep', rates, waitSeconds: 9 });
    requests.faultsOf.UpdateItem = [
      async (send) => {
        const answer = await send();
        clock.advance(250);
        return answer;
      },
    ];
    const startAt = instant(2000);
    expect(await reserve({ key: 'sleep', rates, waitSeconds: 9 })).toMatchObject({
      ...{ startAt, waitMs: 1750, sleepSeconds: 2 },
    });
  });

  it('random calls start when the rule of the charge says so', async () => {
    const random = seededRandom(testSeed());
    const below = (max: number) => Math.floor(random() * max);
    let paid = 0;
    for (let round = 0; round < rounds(3000, 60); round++) {
      clock.advance([0, 1, below(1000), below(20_000)][below(4)] ?? 0);
      const [units, waitSeconds, now] = [1 + below(3), below(30), clock.now() * 1000];
      const asked = { key: 'random', rates: [{ limit: 50, per: '1m', units, burst: 3 }], waitSeconds };
      const [charge, ahead] = [units * 1_200_000, 3_600_000];
      const next = Math.max(paid, now) + charge;
      const start = Math.max(now, next - ahead);
      if (start > now + waitSeconds * 1_000_000) {
        const retryAfterMs = Math.ceil((start - now) / 1000) - waitSeconds * 1000;
        expect((await failure(reserve(asked))).context).toMatchObject({ retryAfterMs });
      } else {
        expect(await reserve(asked)).toMatchObject({ waitMs: (start - now) / 1000 });
        paid = next;
      }
    }
  });
});

describe('repeats', () => {
  const request = { rates, requestId: 'r', waitSeconds: 60 };

  it('a request that is sent again while it is the last gets its start', async () => {
    await reserve({ key: 'again', rates });
    const first = await reserve({ key: 'again', ...request });
    clock.advance(400);
    expect(await reserve({ key: 'again', ...request })).toEqual({ ...first, waitMs: 600, repeated: true });
    expect(await reserve({ key: 'again', rates, waitSeconds: 60 })).toMatchObject({ waitMs: 1600 });
  });

  it('a request that is sent again after its start starts now, and alone', async () => {
    await reserve({ key: 'late', rates });
    await reserve({ key: 'late', ...request });
    clock.advance(1400);
    expect(await reserve({ key: 'late', ...request })).toMatchObject({
      waitMs: 0,
      startAt: instant(0),
      repeated: true,
    });
    expect(await reserve({ key: 'late', rates, waitSeconds: 60 })).toMatchObject({ waitMs: 1000 });
  });

  it('a request that is sent again late does not lose a settlement in between', async () => {
    const { reservation } = await reserve({ key: 'between', rates, settle: true });
    await reserve({ key: 'between', ...request });
    clock.advance(1400);
    const report = () => settle({ key: 'between', reservation, units: { requests: 31 } });
    requests.faultsOf.UpdateItem = [
      'none',
      async (send) => {
        await report();
        return send();
      },
    ];
    expect(await reserve({ key: 'between', ...request })).toMatchObject({ waitMs: 29_600, repeated: true });
    expect(await reserve({ key: 'between', rates, waitSeconds: 60 })).toMatchObject({ waitMs: 30_600 });
  });

  it('a request that is sent again when the key is idle starts now', async () => {
    await reserve({ key: 'long after', ...request });
    clock.advance(60_000);
    expect(await reserve({ key: 'long after', ...request })).toMatchObject({ waitMs: 0, repeated: true });
    expect(await reserve({ key: 'long after', rates, waitSeconds: 60 })).toMatchObject({ waitMs: 1000 });
  });

  it('a request that is sent again after others have reserved pays again', async () => {
    await reserve({ key: 'others', ...request });
    await reserve({ key: 'others', rates, waitSeconds: 60 });
    expect(await reserve({ key: 'others', ...request })).toMatchObject({ waitMs: 2000, repeated: false });
  });

  it('a request that is sent again with other rates is another one', async () => {
    await reserve({ key: 'changed', ...request });
    const dearer = [{ limit: 60, per: '1m', units: 5 }];
    expect(await reserve({ key: 'changed', ...request, rates: dearer })).toMatchObject({
      waitMs: 1000,
      repeated: false,
    });
    expect(await reserve({ key: 'changed', rates, waitSeconds: 60 })).toMatchObject({ waitMs: 6000 });
  });

  it('a request of another holder or principal is another one', async () => {
    await reserve({ key: 'whose', ...request });
    expect(await reserve({ key: 'whose', ...request, holder: 'other' })).toMatchObject({ waitMs: 1000 });
    expect(await reserve({ key: 'whose', ...request }, call({ principal: 'arn' }))).toMatchObject({ waitMs: 2000 });
  });

  it.each(['idle', 'busy'])('a request whose first answer is lost pays once: %s', async (form) => {
    const key = `lost ${form}`;
    if (form === 'busy') await reserve({ key, rates, waitSeconds: 60 });
    const waitMs = form === 'busy' ? 1000 : 0;
    requests.faultsOf.UpdateItem = ['lostReply'];
    expect(await reserve({ key, ...request })).toMatchObject({ waitMs });
    expect(await reserve({ key, rates, waitSeconds: 60 })).toMatchObject({ waitMs: waitMs + 1000 });
  });

  it('a request without any answer names the request id to repeat', async () => {
    requests.faultsOf.UpdateItem = ['lostReply', 'neverSent', 'neverSent'];
    const { code, context } = await failure(reserve({ key: 'unanswered', rates, waitSeconds: 60 }));
    expect(code).toBe('OutcomeUnknown');
    const again = { key: 'unanswered', rates, waitSeconds: 60, ...(context.retryWith as object) };
    expect(await reserve(again)).toMatchObject({ waitMs: 0, repeated: true });
  });

  it('a request whose answers are all lost is unknown, because it may have paid', async () => {
    const late: Fault = async (send) => {
      await send();
      clock.advance(2000);
      throw networkError('ECONNRESET', 'read');
    };
    requests.faultsOf.UpdateItem = Array.from({ length: 5 }, (): Fault[] => [late, 'none']).flat();
    const { code, context } = await failure(reserve({ key: 'always late', rates }));
    expect(code).toBe('OutcomeUnknown');
    const again = { key: 'always late', rates, ...(context.retryWith as object) };
    expect(await reserve(again)).toMatchObject({ waitMs: 0 });
  });

  it('a request that settles keeps one open reservation, however often it is sent', async () => {
    const settles = { key: 'open', ...request, settle: true };
    await reserve(settles);
    await reserve({ key: 'open', rates, waitSeconds: 60 });
    const again = await reserve(settles);
    expect((await rawRate('open'))?.opens).toEqual({ N: '1' });
    expect(await settle({ key: 'open', reservation: again.reservation, units: {} })).toMatchObject({ settled: true });
    expect((await rawRate('open'))?.opens).toEqual({ N: '0' });
  });
});

describe('clocks and records', () => {
  it('a clock that is behind shifts a start by at most that difference', async () => {
    await reserve({ key: 'behind', rates });
    clock.advance(-200);
    expect(await reserve({ key: 'behind', rates, waitSeconds: 9 })).toMatchObject({ waitMs: 1200 });
    clock.advance(200);
    expect(await reserve({ key: 'behind', rates, waitSeconds: 9 })).toMatchObject({ waitMs: 2000 });
  });

  it('a record stays until a day after the latest start', async () => {
    await reserve({ key: 'kept', rates: [{ limit: 1, per: '31d', burst: 10 }], waitSeconds: 604_800 });
    const days = Number((await rawRate('kept'))?.lease_expiry?.N) - clock.now() / 1000;
    expect(Math.round(days / 86_400)).toBe(310 + 7 + 1);
  });

  it.each([
    ['paid_until', { S: 'x' }],
    ['paid_until', { N: '1'.padEnd(20, '0') }],
    ['opens', { S: 'x' }],
  ])('a record with a malformed %s is not used, and stays: %j', async (attribute, value) => {
    const row = { key: { S: 'holdfast:rate:malformed' }, paid_until: { N: '1' }, [attribute]: value as { S: string } };
    await putRaw(row);
    const { code, message } = await failure(reserve({ key: 'malformed', rates, settle: true }));
    expect([code, message]).toEqual(['Unavailable', expect.stringContaining('delete the row')]);
    expect(await rawRate('malformed')).toEqual(row);
  });

  it('a key has a rate beside its lease and its slots', async () => {
    const lease = await world.acquire({ key: 'beside' });
    await reserve({ key: 'beside', rates });
    expect(await world.readKey('beside')).toMatchObject({ state: 'held' });
    await world.release({ key: 'beside', leaseId: lease.leaseId });
    expect(await reserve({ key: 'beside', rates, waitSeconds: 9 })).toMatchObject({ waitMs: 1000 });
  });
});
