import { expect, it } from 'vitest';
import { get, post, throughTask } from '../support/stack/adapters.ts';
import { rateWorld } from '../support/worlds/rates.ts';

const { handlers, rawRate, clock } = await rateWorld();
const { rateReserve, rateSettle, rateForget, readRates } = handlers;

const rates = [{ limit: 60, per: '1m' }];
const asked = { key: 'http', holder: 'h', requestId: 'r', rates, waitSeconds: 60, settle: true };
const PERIOD = 'must be a period such as 1s, 1m, 1h or 1d, of at most 31 days';
const NAME = 'must be 1 to 32 letters, digits, _ and -, of which the first is a letter or a digit';

it('rates answer HTTP with 201 for a new reservation, and 200 for a repeat', async () => {
  const first = await post(rateReserve, asked);
  expect(first).toMatchObject({ status: 201, body: { waitMs: 0, repeated: false } });
  expect(await post(rateReserve, asked)).toMatchObject({ status: 200, body: { repeated: true } });
  const { reservation } = first.body;
  expect(await post(rateReserve, { ...asked, requestId: 'late', waitSeconds: 0 })).toMatchObject({
    ...{ status: 429, headers: { 'retry-after': '1' }, body: { code: 'RateExceeded', boundBy: 'requests' } },
  });
  const settled = { key: 'http', reservation, units: { requests: 2 } };
  expect(await post(rateSettle, settled)).toMatchObject({ status: 200, body: { settled: true } });
  const { body } = await get(readRates, { key: 'http' });
  expect(body).toMatchObject({ paidUntil: new Date(clock.now() + 2000).toISOString(), open: 0 });
  expect(await get(readRates, {})).toMatchObject({ status: 200, body: { keys: [{ key: 'http' }] } });
  const { paidUntil } = body;
  expect(await post(rateForget, { key: 'http', paidUntil })).toMatchObject({ body: { forgotten: true } });
});

it('rates answer a task with whole seconds to sleep', async () => {
  await throughTask(rateReserve, { ...asked, key: 'task' });
  expect(await throughTask(rateReserve, { ...asked, key: 'task', requestId: 'second' })).toMatchObject({
    ...{ outcome: 'ok', body: { sleepSeconds: 1, waitMs: 1000 } },
  });
  const refused = await throughTask(rateReserve, { ...asked, key: 'task', requestId: 'third', waitSeconds: 0 });
  expect(refused).toMatchObject({ outcome: 'RateExceeded', body: { retryAfterMs: 2000 } });
});

const one = (more: object) => ({ rates: [{ ...rates[0], ...more }] });
it.each<[wrong: object, path: string, message: string]>([
  [{ rates: undefined }, 'rates', 'is missing'],
  [{ rates: [] }, 'rates', 'must not be empty'],
  [{ rates: Array.from({ length: 5 }, () => rates[0]) }, 'rates', 'must have at most 4 rates'],
  [{ rates: [rates[0], rates[0]] }, 'rates.1.name', 'must differ from the other names'],
  [one({ name: '__proto__' }), 'rates.0.name', NAME],
  [one({ limit: 1_000_000_001 }), 'rates.0.limit', 'must be at most 1,000,000,000'],
  [one({ limit: 1.5 }), 'rates.0.limit', 'must be a whole number'],
  [one({ per: '1w' }), 'rates.0.per', PERIOD],
  [one({ per: '32d' }), 'rates.0.per', PERIOD],
  [one({ per: 60 }), 'rates.0.per', 'must be a string'],
  [one({ units: 601 }), 'rates.0.units', 'must be at most 10 times the limit'],
  [one({ units: 2, burst: 1 }), 'rates.0.burst', 'must be at least the units'],
  [one({ burst: 601 }), 'rates.0.burst', 'must be at most 10 times the limit'],
  [one({ every: 1 }), 'rates.0.every', 'is not a known field'],
  [{ waitSeconds: 61 }, 'waitSeconds', 'must be at most 60 with settle, which is the longest period'],
  [{ waitSeconds: 604_801, settle: false }, 'waitSeconds', 'must be at most 604,800'],
  [{ settle: 'yes' }, 'settle', 'must be true or false'],
  [{ key: 'k'.repeat(1011) }, 'key', 'must be at most 1,010 bytes of UTF-8'],
  [{ key: 'holdfast:x' }, 'key', "must not begin with holdfast:, which is the service's own"],
  [{ holder: '' }, 'holder', 'must not be empty'],
  [{ ttlSeconds: 60 }, 'ttlSeconds', 'is not a known field'],
])('a reservation with %j is refused, and the field is named', async (wrong, path, message) => {
  const { body } = await post(rateReserve, { ...asked, key: 'wrong', ...wrong });
  expect(body.issues).toEqual([{ path, message }]);
  expect(await rawRate('wrong')).toBeUndefined();
});

it.each<[wrong: object, path: string, message: string]>([
  [{}, 'units', 'is missing: send units or cancel'],
  [{ units: {}, cancel: true }, 'units', 'cannot be combined with cancel'],
  [{ cancel: false }, 'cancel', 'must be true'],
  [{ units: { requests: -1 } }, 'units.requests', 'must be at least 0'],
  [{ units: { '': 1 } }, 'units.', 'must be an object of units by the name of the rate'],
  [{ units: 5 }, 'units', 'must be an object of units by the name of the rate'],
  [{ cancel: true, reservation: 'r.x' }, 'reservation', 'must be the `reservation` from the answer to a reserve'],
  [
    { units: {}, reservation: `r.${'n'.repeat(16)}.1.1.W10x0000` },
    'reservation',
    'must be the `reservation` from the answer to a reserve',
  ],
  [
    { units: {}, reservation: `r.${'n'.repeat(16)}.1.1.bnVsbGxs` },
    'reservation',
    'must be the `reservation` from the answer to a reserve',
  ],
  [{ units: {}, reservation: 'r'.repeat(1101) }, 'reservation', 'must be at most 1,100 bytes of UTF-8'],
])('a settlement with %j is refused, and the field is named', async (wrong, path, message) => {
  const { body } = await post(rateSettle, { key: 'wrong', reservation: `r.${'n'.repeat(16)}.1.1`, ...wrong });
  expect(body.issues).toEqual([{ path, message }]);
});

it.each(['yesterday', '2026-01-01', '2026-13-01T00:00:00Z', '2026-01-01T00:00:00+01:00'])(
  'an operator cannot forget what is paid until %s',
  async (paidUntil) => {
    const { body } = await post(rateForget, { key: 'wrong', paidUntil });
    expect(body.issues).toEqual([
      { path: 'paidUntil', message: 'must be an instant such as 2026-11-26T15:36:42.273Z' },
    ]);
  },
);

it('a reader names a key, or a prefix and a page', async () => {
  const { body } = await get(readRates, { key: 'k', prefix: 'p' });
  expect(body.issues).toEqual([{ path: 'prefix', message: 'cannot be combined with key' }]);
});
