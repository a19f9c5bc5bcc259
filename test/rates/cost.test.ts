import { expect, it } from 'vitest';
import { unitCounter } from '../support/emulators/aws.ts';
import { isFull } from '../support/time/rounds.ts';
import { failure } from '../support/worlds/leases.ts';
import { rateWorld } from '../support/worlds/rates.ts';

const world = await rateWorld();
const { reserve, settle, clock, requests, putRaw, readRate, forget } = world;
const CALLERS = isFull ? 400 : 60;
const unitsOf = unitCounter(world.dynamodb);

/** A reservation at two rates, with long names. */
const asked = {
  key: 'team-a/vendors/openai/production',
  holder: 'arn:aws:states:eu-west-1:123456789012:execution:nightly:5b0a7c1e',
  rates: [
    { limit: 500, per: '1m' },
    { name: 'tokens', limit: 100_000, per: '1m', units: 2000 },
  ],
  waitSeconds: 60,
};

it('the cost is one write unit for a reservation, and for its settlement', async () => {
  const idle = await unitsOf(() => reserve(asked));
  // Now another write wins than the one that is tried first. The try that loses reports no units, but costs one.
  requests.sent.length = 0;
  const changes = await unitsOf(() => reserve(asked));
  expect([idle, changes, requests.sent]).toEqual([[1], [1], ['UpdateItem', 'UpdateItem']]);
  requests.sent.length = 0;
  let reservation = '';
  const busy = await unitsOf(async () => {
    reservation = (await reserve({ ...asked, settle: true })).reservation;
  });
  const settled = await unitsOf(() => settle({ key: asked.key, reservation, units: { tokens: 812 } }));
  expect([busy, settled, requests.sent]).toEqual([[1], [1], ['UpdateItem', 'UpdateItem']]);
});

it('the cost of a refused call is one write', async () => {
  await reserve({ ...asked, key: 'refused' });
  await reserve({ ...asked, key: 'refused' });
  requests.sent.length = 0;
  expect((await failure(reserve({ ...asked, key: 'refused', waitSeconds: 0 }))).code).toBe('RateExceeded');
  expect(requests.sent).toEqual(['UpdateItem']);
});

it('the cost is at most nine write units with 200 open reservations', async () => {
  const entry = (at: number) => [
    `o${String(at).padStart(16, '0')}`,
    { M: { a: { N: '1200000' }, t: { N: `${clock.now()}` } } },
  ];
  const opens = Object.fromEntries(Array.from({ length: 199 }, (_, at) => entry(at)));
  await putRaw({ key: { S: 'holdfast:rate:full' }, opens: { N: '199' }, paid_until: { N: '1' }, ...opens });
  const [units = 0] = await unitsOf(() => reserve({ ...asked, key: 'full', settle: true }));
  expect(units).toBeGreaterThan(5);
  expect(units).toBeLessThanOrEqual(9);
});

it('the cost of a read is one read unit, and of forget a write', async () => {
  await reserve({ ...asked, key: 'read' });
  let paidUntil: string | null = null;
  const read = await unitsOf(async () => {
    ({ paidUntil } = await readRate('read'));
  });
  expect([read, await unitsOf(() => forget({ key: 'read', paidUntil }))]).toEqual([[1], [1]]);
});

it('the cost of callers at one moment is at most two writes each', async () => {
  requests.sent.length = 0;
  const starts = await Promise.all(
    Array.from({ length: CALLERS }, async (_, at) => {
      const rates = [{ limit: 600, per: '1m' }];
      return reserve({ key: 'crowd', rates, holder: `host-${at}`, waitSeconds: 60 });
    }),
  );
  expect(starts.map(({ waitMs }) => waitMs).toSorted((a, b) => a - b)).toEqual(
    Array.from({ length: CALLERS }, (_, at) => at * 100),
  );
  expect(requests.sent.length).toBeLessThanOrEqual(2 * CALLERS);
});

it('the cost of callers who do not wait is at most two writes each', async () => {
  requests.sent.length = 0;
  const asks = Array.from({ length: CALLERS }, (_, at) =>
    reserve({ ...asked, key: 'impatient', holder: `host-${at}`, waitSeconds: 0 }),
  );
  const answers = await Promise.allSettled(asks);
  expect(answers.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  expect(requests.sent.length).toBeLessThanOrEqual(2 * CALLERS);
});
