import { expect, it } from 'vitest';
import {
  NOT_EARLY,
  PATIENCE_KEPT,
  PAYS_ITS_UNITS,
  RATE_KEPT,
  REFUSED_TRULY,
  SETTLED_ONCE,
} from '../../../verification/histories/capabilities/rates.model.ts';
import { rates } from '../../../verification/histories/capabilities/rates.ts';
import { AFTERWARDS } from '../../../verification/histories/capability.ts';
import { BEGIN } from '../../../verification/histories/clocks.ts';
import { at, entry, facts, landedOn, promises } from '../../../verification/histories/handmade.ts';
import type { Entry } from '../../../verification/histories/history.ts';

const key = 'w-r0';
/** One unit a second. */
const named = [{ name: 'calls', limit: 1, per: '1s', units: 1 }];
const SECOND = 1_000_000;
const us = (ms: number) => (BEGIN + ms) * 1000;
const lastOf = (name: string) => `${name}.${SECOND}.${SECOND}`;
const idOf = (name: string) => `r.${lastOf(name)}`;

/** A reservation that lands at the first of its times, and after which the key is paid until `paidMs`. */
const reserved = (name: string, times: [number, number], paidMs: number, more: object = {}) =>
  entry(
    'rateReserve',
    { key, holder: 'h', requestId: name, rates: named, waitSeconds: 60, ...more },
    times,
    'ok',
    { reservation: idOf(name), startAt: at(paidMs - 1000), repeated: false },
    { landed: landedOn(key, { what: 'reserved', ms: times[0] + 1, paidUntil: us(paidMs), last: lastOf(name) }) },
  );

const started = (name: string, ms: number, startMs: number) =>
  entry('rateStart', { key, reservation: idOf(name), rates: named, startAt: at(startMs) }, [ms, ms]);

/** The call that settles a reservation if it names units, and otherwise cancels it. */
const settled = (name: string, times: [number, number], moreUs: number, units?: object) =>
  entry(
    'rateSettle',
    { key, reservation: idOf(name), rates: named, ...(units ? { units } : { cancel: true }) },
    times,
    'ok',
    {},
    { landed: landedOn(key, { what: 'settled', ms: times[0] + 1, more: moreUs }) },
  );

const check = (...entries: Entry[]) => promises(rates.check(entries, facts));

const first = [reserved('a', [0, 10], 1000), started('a', 20, 0)];

it('the checker of rates accepts starts in turn, and a cancelled reservation', () => {
  const others = [reserved('b', [30, 40], 2000), settled('b', [50, 60], -SECOND), reserved('c', [70, 80], 2000)];
  expect(check(...first, ...others, started('c', 1000, 1000))).toEqual([]);
});

it('the checker of rates finds two starts at once', () => {
  const beside = {
    ...reserved('b', [30, 40], 2000),
    body: { reservation: idOf('b'), startAt: at(5), repeated: false },
  };
  expect(check(...first, beside, started('b', 45, 5))).toEqual([RATE_KEPT]);
});

it('the checker of rates finds repeats that pay again, and too small payments', () => {
  expect(check(...first, reserved('a', [30, 40], 3000))).toEqual([PAYS_ITS_UNITS]);
  expect(check(...first, reserved('b', [30, 40], 1500))).toContain(PAYS_ITS_UNITS);
});

it('the checker of rates finds a reservation cancelled after another, or twice', () => {
  const others = [...first, reserved('b', [30, 40], 2000)];
  expect(check(...others, settled('a', [50, 60], -SECOND))).toEqual([SETTLED_ONCE]);
  expect(check(...others, settled('b', [50, 60], -SECOND), settled('b', [70, 80], -SECOND))).toEqual([SETTLED_ONCE]);
});

it('the checker of rates demands that real units are paid, once', () => {
  const open = reserved('a', [0, 10], 1000, { settle: true });
  expect(check(open, settled('a', [20, 30], SECOND, { calls: 2 }))).toEqual([]);
  expect(check(open, settled('a', [20, 30], 0, { calls: 2 }))).toEqual([SETTLED_ONCE]);
  const twice = [settled('a', [20, 30], SECOND, { calls: 2 }), settled('a', [40, 50], SECOND, { calls: 2 })];
  expect(check(open, ...twice)).toEqual([SETTLED_ONCE]);
});

it('the checker of rates finds starts that are too early or too late', () => {
  expect(check(...first, reserved('b', [30, 40], 2000), started('b', 700, 1000))).toEqual([NOT_EARLY]);
  expect(check(...first, reserved('b', [30, 40], 2000, { waitSeconds: 0 }))).toEqual([PATIENCE_KEPT]);
});

it('the checker of rates finds a refusal of a start that was in time', () => {
  const refused = (waitSeconds: number) =>
    entry('rateReserve', { key, rates: named, waitSeconds }, [30, 40], 'RateExceeded', { retryAfterMs: 1 });
  expect(check(...first, refused(0))).toEqual([]);
  expect(check(...first, refused(2))).toEqual([REFUSED_TRULY]);
});

it('the checker of rates counts capped rates until they have ended by every clock', () => {
  const under = (until?: number) => {
    const cap = JSON.stringify({ capped: { rates: [{ name: 'calls', limit: 1, per: '2s' }], until } });
    const one = reserved('a', [10, 20], 1000);
    return { ...one, landed: one.landed?.map((effect) => ({ ...effect, cap })) as Entry['landed'] } as Entry;
  };
  expect(check(under())).toEqual([PAYS_ITS_UNITS]);
  expect(check(under(BEGIN - 600))).toEqual([]);
  expect(check(under(BEGIN - 2000))).toEqual([]);
});

it('the checker of rates finds a key that is stuck after all faults', () => {
  const last = entry('rateReserve', { key, rates: named, waitSeconds: 0 }, [9000, 9010], 'Unavailable');
  expect(check(...first, { ...last, actor: AFTERWARDS })).toEqual(['no key is stuck']);
});
