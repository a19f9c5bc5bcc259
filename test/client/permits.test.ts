import { afterAll, describe, expect, it } from 'vitest';
import {
  type AcquireOptions,
  Holdfast,
  type HoldfastOptions,
  isHoldfastError,
} from '../../clients/typescript/src/index.ts';
import { systemClock } from '../../shared/surroundings/clock.ts';
import { startApi } from '../support/stack/api.ts';
import { until } from '../support/time/until.ts';
import { leaseWorld } from '../support/worlds/leases.ts';

const api = await apiOf(20);
/** Holds a call for only a second, so a caller in line soon asks again. */
const impatient = await apiOf(1);
afterAll(() => Promise.all([api.stop(), impatient.stop()]));

async function apiOf(maxWaitSeconds: number) {
  return startApi((await leaseWorld({ clock: systemClock, maxWaitSeconds })).handlers);
}

let keys = 0;
const freshKey = () => `permits/${++keys}`;

const caller = (holder: string, options: Partial<HoldfastOptions> = {}) =>
  new Holdfast({ endpoint: api.url, holder, ...options } as HoldfastOptions);
const operator = caller('operator');
const read = (key: string) => operator.readLease(key, { waiters: true });

describe('a limit', () => {
  it('a limit lets that many callers work at once, and names their holders', async () => {
    const key = freshKey();
    const [one, two] = [await caller('one').acquire(key, { limit: 2 }), await caller('two').acquire(key, { limit: 2 })];
    const held = await caller('three')
      .withLease(key, { limit: 2 }, () => 'never')
      .catch((error: unknown) => error);
    expect(isHoldfastError(held, 'LeaseHeld') && held).toMatchObject({
      ...{ key, holder: 'one', fence: one.fence, used: 2, limit: 2, retryAfterMs: expect.any(Number) },
      holders: [
        { holder: 'one', fence: one.fence, mode: 'shared', weight: 1 },
        { holder: 'two', fence: two.fence, mode: 'shared', weight: 1 },
      ],
    });
    expect(two.fence).toBeGreaterThan(one.fence);
    await one.release();
    expect(await caller('three').withLease(key, { limit: 2 }, ({ holder }) => holder)).toBe('three');
    await two.release();
    expect(await read(key)).toMatchObject({ used: 0, limit: 2, holders: [] });
  });
});

it.each<[field: string, AcquireOptions]>([
  ['limit', { limit: 0 }],
  ['limit', { limit: 201 }],
  // @ts-expect-error The types refuse it before the service does.
  ['limit', { limit: 5, mode: 'exclusive' }],
  ['weight', { weight: 2 }],
  ['weight', { limit: 5, weight: 6 }],
  // @ts-expect-error The types refuse it before the service does.
  ['weight', { weight: 2, mode: 'exclusive' }],
  ['mode', { mode: 'sharded' as 'shared' }],
  ['data', { limit: 5, data: 'x'.repeat(300) }],
])('fields that exclude each other are refused by name: %s in %j', async (field, options) => {
  const key = freshKey();
  const refused = await caller('tester')
    .acquire(key, options)
    .catch((error: unknown) => error);
  expect(isHoldfastError(refused, 'InvalidRequest') && refused.issues.map(({ path }) => path)).toEqual([field]);
  expect(await read(key)).toMatchObject({ state: 'free' });
});

describe('a call without limit', () => {
  it.each<[who: string, held: AcquireOptions, limit: number | null]>([
    ['a shared holder', { limit: 2 }, 2],
    ['an exclusive holder', { mode: 'exclusive' }, null],
  ])('a call without limit waits behind %s, and then holds the key alone', async (_, options, limit) => {
    const key = freshKey();
    const permit = await caller('one').acquire(key, options);
    const refused = await caller('two')
      .acquire(key)
      .catch((error: unknown) => error);
    expect(isHoldfastError(refused, 'LeaseHeld') && refused).toMatchObject({
      ...{ key, holder: 'one', fence: permit.fence, expiresAt: permit.expiresAt, used: 1, limit },
      holders: [{ holder: 'one', fence: permit.fence, weight: 1 }],
    });
    const waiting = caller('two').acquire(key, { waitMs: 60_000 });
    await until(async () => (await read(key)).waiting).toBe(1);
    await permit.release();
    const lease = await waiting;
    expect(await read(key)).toMatchObject({
      ...{ state: 'held', holder: 'two', used: 1, limit: null },
      holders: [{ holder: 'two', mode: 'exclusive', weight: 1 }],
    });
    await lease.release();
    expect(await read(key)).toMatchObject({ state: 'released', holder: 'two', holders: [] });
  });
});

it('a permit shows a changed limit, and a read shows who named it', async () => {
  const key = freshKey();
  const first = await caller('one').acquire(key, { limit: 5 });
  const same = await caller('two').acquire(key, { limit: 5 });
  const other = await caller('three').acquire(key, { limit: 3 });
  expect([first, same, other].map(({ limitChanged }) => limitChanged)).toEqual([
    ...[undefined, undefined],
    { from: 5, to: 3 },
  ]);
  expect(await read(key)).toMatchObject({ limit: 3, limitBy: 'three' });
  await Promise.all([first, same, other].map((permit) => permit.release()));
});
