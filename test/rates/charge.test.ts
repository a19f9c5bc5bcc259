import { expect, it } from 'vitest';
import {
  type Charge,
  chargeOf,
  formFor,
  latestPaid,
  type Rate,
  ratesUnder,
  settledCharge,
  startOf,
} from '../../shared/rates/charge.ts';
import { seededRandom, testSeed } from '../support/chance/seed.ts';
import { rounds } from '../support/time/rounds.ts';

const MINUTE = 60_000_000;
const rate = (limit: number, per: string, units = 1, more: Partial<Rate> = {}): Rate => ({
  ...{ name: 'requests', limit, per, units },
  ...more,
});

const PERIODS: Record<string, number> = { '1s': 1_000_000, '1m': MINUTE, '1h': 60 * MINUTE, '31d': 31 * 1440 * MINUTE };

/** *Paid until* as the conditional writes of `forms.ts` change it, without a row. */
class Paid {
  #until: number | undefined;

  take(charge: Charge, now: number): number {
    const form = formFor(charge, { paidUntil: this.#until, isOwn: false }, { now, waitMs: Number.POSITIVE_INFINITY });
    this.#until = (form === 'idle' ? now : (this.#until ?? 0)) + charge.charge;
    return startOf(this.#until, charge, now);
  }
}

/**
 * The generic cell rate algorithm as virtual scheduling (ITU-T I.371, Annex A). It is asked for the first moment at which it lets a cell pass. So that
 * nothing is rounded, its unit of time is a microsecond divided by the limit.
 */
class Textbook {
  #arrival = 0n;
  readonly #period: bigint;
  readonly #limit: bigint;

  constructor(limit: number, period: number) {
    [this.#limit, this.#period] = [BigInt(limit), BigInt(period)];
  }

  take({ now, units, burst }: { now: number; units: number; burst: number }): bigint {
    const increment = BigInt(units) * this.#period;
    const tolerance = BigInt(burst - units) * this.#period;
    const asked = BigInt(now) * this.#limit;
    const passes = asked > this.#arrival - tolerance ? asked : this.#arrival - tolerance;
    this.#arrival = (passes > this.#arrival ? passes : this.#arrival) + increment;
    return passes;
  }
}

/** @returns how many calls were exact because they pay whole microseconds, and how many start later than they ask */
function playAgainstTextbook(seed: number, calls: number) {
  const random = seededRandom(seed);
  const below = (max: number) => Math.floor(random() * max);
  const [per = '1s', period = 1] = Object.entries(PERIODS)[below(4)] ?? [];
  const anyLimit = () => [1, 7, 10, 50, 60, 10_000, 100_000][below(7)] ?? 1;
  const named = anyLimit();
  const capped = below(3) === 0 ? [{ name: 'requests', limit: anyLimit(), per }] : [];
  const limit = Math.min(named, ...capped.map((cap) => cap.limit));
  const asked = below(2) === 0 ? 0 : 1 + below(3 * limit);
  // A rate of an operator does not have a burst.
  const burst = capped.length > 0 ? 0 : asked;
  const [paid, textbook] = [new Paid(), new Textbook(limit, period)];
  const pace = period / limit;
  let now = 1_700_000_000_000_000;
  let roundings = 0;
  const happened = { exact: 0, putOff: 0 };
  for (let call = 0; call < calls; call++) {
    now += [0, 0, 1, below(2 * pace), below(20 * pace)][below(5)] ?? 0;
    const units = 1 + below(Math.min(burst || limit, limit));
    const rates = [rate(named, per, units, asked ? { burst: Math.max(asked, units) } : {})];
    const charge = chargeOf(ratesUnder(rates, capped));
    const start = paid.take(charge, now);
    const first = textbook.take({ now, units, burst: burst || units });
    const isWhole = (units * period) % limit === 0 && ((burst || units) * period) % limit === 0;
    if (!isWhole) roundings++;
    const late = BigInt(start) * BigInt(limit) - first;
    // Each charge is rounded up by less than a microsecond, and the allowance is rounded down by less than one.
    if (late < 0n || late > BigInt(roundings) * 2n * BigInt(limit))
      throw new Error(`seed ${seed}, call ${call}: ${late} parts of ${limit} late`);
    if (roundings === 0) happened.exact++;
    if (start > now) happened.putOff++;
  }
  return happened;
}

/** Calls at three rates at once. @returns the windows of length `x` in which more than `limit * x / period + burst` starts */
function playWindows(random: () => number): string[] {
  const below = (max: number) => Math.floor(random() * max);
  const named = [rate(50, '1m'), rate(10_000, '1m', 1, { name: 'tokens' }), rate(10, '1s', 1, { name: 'short' })];
  const bursts = named.map(({ limit }) => (below(2) ? undefined : 1 + below(limit)));
  const paid = new Paid();
  let now = 1_700_000_000_000_000;
  const starts: { at: number; asked: Rate[] }[] = [];
  for (let call = 0; call < 60; call++) {
    now += [0, 1, below(200_000), below(3_000_000)][below(4)] ?? 0;
    const asked = named.map((one, at) => ({
      ...one,
      units: 1 + below(bursts[at] ?? one.limit / 2),
      burst: bursts[at],
    }));
    starts.push({ at: paid.take(chargeOf(asked), now), asked });
  }
  starts.sort((one, other) => one.at - other.at);
  const windows = starts.flatMap((first, from) => named.map((_, which) => ({ first, from, which })));
  return windows.flatMap(({ first, from, which }) => {
    let [used, max] = [0, 0];
    return starts.slice(from).flatMap(({ at, asked }) => {
      const { units = 0, burst = units, limit = 0, per = '' } = asked[which] ?? {};
      [used, max] = [used + units, Math.max(max, burst)];
      const isKept = (used - max) * (PERIODS[per] ?? 0) <= limit * (at - first.at);
      return isKept ? [] : [`${used} units of ${which} in ${at - first.at} microseconds`];
    });
  });
}

const CALLS = 500;
const plays = rounds(2000, 200);
const calls = plays * CALLS;

it(`starts of ${calls} random calls, capped or not, equal those of the textbook`, () => {
  const each = Array.from({ length: plays }, (_, at) => playAgainstTextbook(testSeed() + at, CALLS));
  const sum = (what: 'exact' | 'putOff') => each.reduce((all, one) => all + one[what], 0);
  expect(sum('exact')).toBeGreaterThan(calls / 10);
  expect(sum('putOff')).toBeGreaterThan(calls / 10);
});

it('random calls at several rates keep each rate in every window', () => {
  const random = seededRandom(testSeed());
  const tooFull = Array.from({ length: rounds(3000, 150) }).flatMap(() => playWindows(random));
  expect(tooFull).toEqual([]);
});

it('a charge is that of the tightest rate, rounded up once', () => {
  expect(chargeOf([rate(100_000, '1m', 3)])).toEqual({ charge: 1800, ahead: 1800, boundBy: 'requests' });
  expect(chargeOf([rate(7, '1m')])).toMatchObject({ charge: 8_571_429, ahead: 8_571_429 });
  const tokens = rate(10_000, '1m', 500, { name: 'tokens' });
  expect(chargeOf([rate(60, '1m'), tokens])).toEqual({ charge: 3_000_000, ahead: 3_000_000, boundBy: 'tokens' });
  expect(chargeOf([rate(60, '1m'), { ...tokens, units: 100 }])).toMatchObject({
    charge: 1_000_000,
    boundBy: 'requests',
  });
});

it('a burst is the least of all rates, rounded down, or the charge', () => {
  expect(chargeOf([rate(7, '1m', 1, { burst: 2 })])).toMatchObject({ charge: 8_571_429, ahead: 17_142_857 });
  const tokens = rate(10_000, '1m', 500, { name: 'tokens', burst: 1000 });
  expect(chargeOf([rate(60, '1m', 1, { burst: 20 }), tokens])).toMatchObject({ ahead: 6_000_000 });
  expect(chargeOf([rate(60, '1m'), tokens])).toMatchObject({ charge: 3_000_000, ahead: 3_000_000 });
});

it('a charge of the largest request is exact', () => {
  const max = rate(100_000_000, '31d', 1_000_000_000);
  const { charge, ahead } = chargeOf([max]);
  expect(charge).toBe(310 * 1440 * MINUTE);
  const now = Date.parse('2100-01-01T00:00:00Z') * 1000;
  expect(Number.isSafeInteger(latestPaid({ charge, ahead }, { now, waitMs: 604_800_000 }) + charge)).toBe(true);
});

it('a settled charge has the units that are named, and at most ten periods', () => {
  const rates = [rate(60, '1m'), rate(10_000, '1m', 500, { name: 'constructor' })];
  expect(settledCharge(rates, {})).toBe(3_000_000);
  expect(settledCharge(rates, { constructor: 200 } as never)).toBe(1_200_000);
  expect(settledCharge(rates, { constructor: 0, requests: 0 } as never)).toBe(0);
  expect(settledCharge(rates, { requests: 1_000_000_000 })).toBe(10 * MINUTE);
});
