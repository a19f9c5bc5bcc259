import { afterAll, describe, expect, it } from 'vitest';
import {
  type AcquireOptions,
  Holdfast,
  type HoldfastEvent,
  type HoldfastOptions,
  isHoldfastError,
} from '../../client/src/index.ts';
import { systemClock } from '../../shared/surroundings/clock.ts';
import { startApi } from '../support/stack/api.ts';
import { until } from '../support/time/until.ts';
import { leaseWorld } from '../support/worlds/leases.ts';
import { readPool } from '../support/worlds/read-key.ts';

const api = await apiOf(20);
/** Where a caller in line soon asks again. */
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
const pool = (key: string) => readPool(operator, key, { waiters: true });
const refusal = (answer: Response) => answer.clone().json() as Promise<{ retryWith?: { ticket: string } }>;
const inLine = (key: string, count: number) => until(async () => (await pool(key)).waiting).toBe(count);

describe('a limit', () => {
  it('a limit lets that many callers work at once, and names the holders to the next caller', async () => {
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
    expect(await pool(key)).toMatchObject({ used: 0, limit: 2, holders: [] });
  });

  it('a limit is not exceeded by callers that wait, who are all served', async () => {
    const key = freshKey();
    let [atWork, most] = [0, 0];
    const work = async () => {
      most = Math.max(most, ++atWork);
      await until(() => most).toBeGreaterThanOrEqual(3);
      atWork--;
    };
    const options = { limit: 3, waitMs: Number.POSITIVE_INFINITY };
    await Promise.all(Array.from({ length: 9 }, (_, at) => caller(`c${at}`).withLease(key, options, work)));
    expect(most).toBe(3);
    expect((await pool(key)).used).toBe(0);
  });

  it('a limit counts by weight', async () => {
    const key = freshKey();
    const heavy = await caller('heavy').acquire(key, { limit: 8, weight: 6 });
    const refused = caller('four').acquire(key, { limit: 8, weight: 4 });
    await expect(refused).rejects.toMatchObject({ code: 'LeaseHeld', used: 6, limit: 8 });
    const light = await caller('light').acquire(key, { limit: 8, weight: 2 });
    expect((await pool(key)).used).toBe(8);
    await Promise.all([heavy.release(), light.release()]);
    expect((await pool(key)).used).toBe(0);
  });
});

it('a writer comes in when the readers before it are out, and before those after it', async () => {
  const key = freshKey();
  const wait = { waitMs: Number.POSITIVE_INFINITY };
  const events: HoldfastEvent[] = [];
  const reader = await caller('reader').acquire(key, { mode: 'shared' });
  const writing = caller('writer', { onEvent: (event) => events.push(event) }).acquire(key, {
    ...wait,
    mode: 'exclusive',
  });
  await inLine(key, 1);
  const reading = caller('late reader').acquire(key, { ...wait, mode: 'shared' });
  await inLine(key, 2);
  expect((await pool(key)).waiters).toMatchObject([{ holder: 'writer' }, { holder: 'late reader' }]);
  await reader.release();
  const writer = await writing;
  expect(await pool(key)).toMatchObject({ holders: [{ holder: 'writer', mode: 'exclusive' }], waiting: 1 });
  await writer.release();
  const late = await reading;
  expect([writer.fence > reader.fence, late.fence > writer.fence]).toEqual([true, true]);
  expect(events).toContainEqual(expect.objectContaining({ type: 'waiting', key, holder: 'reader' }));
  await late.release();
});

it.concurrent('a caller that waits longer than a call may keeps its place, by what retryWith says', async () => {
  const key = freshKey();
  const party = (holder: string, fetch?: typeof globalThis.fetch) =>
    new Holdfast({ endpoint: impatient.url, holder, ...(fetch && { fetch }) });
  /** What each question sent, and what the answer to it asked for. */
  const asked: { sent: unknown; wanted: unknown }[] = [];
  const watched: typeof fetch = async (url, init) => {
    const answer = await fetch(url, init);
    const { ticket: sent } = JSON.parse(`${init?.body}`);
    if (answer.status === 409) asked.push({ sent, wanted: (await refusal(answer)).retryWith?.ticket });
    return answer;
  };
  const first = await party('first').acquire(key, { limit: 1 });
  const second = party('second', watched).acquire(key, { limit: 1, waitMs: Number.POSITIVE_INFINITY });
  await until(() => asked.length).toBeGreaterThan(3);
  await first.release();
  expect(await (await second).release()).toBe(true);
  const [, ...inLine] = asked;
  expect(inLine.map(({ wanted }) => wanted)).not.toContain(undefined);
  expect(inLine.slice(1).map(({ sent }) => sent)).toEqual(inLine.slice(0, -1).map(({ wanted }) => wanted));
});

it.concurrent('a heartbeat extends a permit, and a broken one is lost', async () => {
  const key = freshKey();
  const permit = await caller('tester').acquire(key, { limit: 5, ttlSeconds: 6 });
  const other = await caller('other').acquire(key, { limit: 5 });
  const { expiresAt } = permit;
  await until(() => permit.expiresAt > expiresAt).toBe(true);
  await operator.breakLease({ key, fence: permit.fence });
  await until(() => permit.lost).toMatchObject({ code: 'LeaseLost', reason: 'broken' });
  expect(permit.signal.aborted).toBe(true);
  expect(other.held).toBe(true);
  expect(await pool(key)).toMatchObject({ used: 1, holders: [{ holder: 'other' }] });
  await other.release();
});

it.concurrent('an aborted wait leaves the line at once, and releases a permit that it received with the abort', async () => {
  const key = freshKey();
  const first = await caller('first').acquire(key, { limit: 1 });
  const wait = (holder: string, { signal }: AbortController) =>
    caller(holder)
      .acquire(key, { limit: 1, waitMs: Number.POSITIVE_INFINITY, signal })
      .catch((reason: unknown) => reason);
  const [early, late] = [new AbortController(), new AbortController()];
  const ended = [wait('early', early)];
  await inLine(key, 1);
  ended.push(wait('late', late));
  await inLine(key, 2);
  early.abort('enough');
  expect(await ended[0]).toBe('enough');
  await inLine(key, 1);
  expect((await pool(key)).waiters).toMatchObject([{ holder: 'late' }]);
  // The permit and the abort cross, and one of both comes first.
  const released = first.release();
  late.abort('enough');
  expect([await released, await ended[1]]).toEqual([true, 'enough']);
  await until(() => pool(key)).toMatchObject({ used: 0, waiting: 0 });
});

it('a lost answer takes no second permit, and a lost answer to a release frees one permit', async () => {
  const key = freshKey();
  const lost = new Set(['acquire', 'release']);
  const losing: typeof fetch = async (url, init) => {
    const answer = await fetch(url, init);
    if (!lost.delete(`${url}`.replace(/.*\//, ''))) return answer;
    throw new TypeError('the connection was cut');
  };
  const other = await caller('other').acquire(key, { limit: 5 });
  const permit = await caller('tester', { fetch: losing }).acquire(key, { limit: 5 });
  expect(await pool(key)).toMatchObject({ used: 2, holders: [{ holder: 'other' }, { holder: 'tester' }] });
  expect(await permit.release()).toBe(true);
  expect(lost.size).toBe(0);
  expect(await pool(key)).toMatchObject({ used: 1, holders: [{ holder: 'other' }] });
  await other.release();
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
])('what does not go together is refused by the name of the field: %s in %j', async (field, options) => {
  const key = freshKey();
  const refused = await caller('tester')
    .acquire(key, options)
    .catch((error: unknown) => error);
  expect(isHoldfastError(refused, 'InvalidRequest') && refused.issues.map(({ path }) => path)).toEqual([field]);
  expect(await operator.readLease(key)).toMatchObject({ kind: 'lease', state: 'free' });
});

describe('a key that is used as the other kind', () => {
  const refused = (act: Promise<unknown>) => act.catch((error: unknown) => error);

  it.each<[who: string, held: AcquireOptions, used: number, limit: number | null]>([
    ['beside a full pool', { limit: 2, weight: 2 }, 2, 2],
    ['beside an exclusive holder', { mode: 'exclusive' }, 1_000_000, null],
  ])(
    'a key of the other kind refuses at once a caller that forgets limit and mode, %s',
    async (_, options, used, limit) => {
      const key = freshKey();
      const permit = await caller('one').acquire(key, options);
      const startedAt = performance.now();
      const error = await refused(caller('two').withLease(key, { waitMs: 20_000 }, () => 'never'));
      expect(performance.now() - startedAt).toBeLessThan(10_000);
      expect(isHoldfastError(error, 'WrongKind') && error).toMatchObject({
        ...{ key, kind: 'pool', holder: 'one', fence: permit.fence, expiresAt: permit.expiresAt, used, limit },
        holders: [{ holder: 'one', fence: permit.fence }],
        message: expect.stringContaining('acquire it with limit or mode'),
      });
      expect(await pool(key)).toMatchObject({ used, waiting: 0, holders: [{ holder: 'one' }] });
      await permit.release();
      expect(await caller('two').withLease(key, ({ holder }) => holder)).toBe('two');
      expect(await operator.readLease(key)).toMatchObject({ kind: 'lease', state: 'released' });
    },
  );

  it('a key that another caller holds as a lease refuses a caller with a limit at once', async () => {
    const key = freshKey();
    const lease = await caller('one').acquire(key);
    const error = await refused(caller('two').acquire(key, { limit: 2, waitMs: Number.POSITIVE_INFINITY }));
    expect(isHoldfastError(error, 'WrongKind') && error).toMatchObject({
      ...{ key, kind: 'lease', holder: 'one', fence: lease.fence, expiresAt: lease.expiresAt },
      message: expect.stringContaining('acquire it without limit and mode'),
    });
    await lease.release();
    const permit = await caller('two').acquire(key, { limit: 2 });
    expect(permit.fence).toBeGreaterThan(lease.fence);
    await permit.release();
  });

  it('a key of the other kind ends the term of no leader: lead throws WrongKind', async () => {
    const key = freshKey();
    const permit = await caller('one').acquire(key, { limit: 2 });
    const error = await refused(caller('two').lead(key, { onElected: () => 'never' }));
    expect(error).toMatchObject({ code: 'WrongKind', kind: 'pool' });
    await permit.release();
  });
});

it('a permit says if its limit is not that of the grant before, and the pool says who named the limit', async () => {
  const key = freshKey();
  const first = await caller('one').acquire(key, { limit: 5 });
  const same = await caller('two').acquire(key, { limit: 5 });
  const other = await caller('three').acquire(key, { limit: 3 });
  expect([first, same, other].map(({ limitChanged }) => limitChanged)).toEqual([
    ...[undefined, undefined],
    { from: 5, to: 3 },
  ]);
  expect(await pool(key)).toMatchObject({ limit: 3, limitBy: 'three' });
  await Promise.all([first, same, other].map((permit) => permit.release()));
});

it('leases lists every key with its kind, and sorts by key or by expiry', async () => {
  const prefix = `${freshKey()}/`;
  const lease = await caller('one').acquire(`${prefix}a`, { ttlSeconds: 900 });
  const permits = [
    await caller('two').acquire(`${prefix}b`, { limit: 2, ttlSeconds: 300 }),
    await caller('three').acquire(`${prefix}b`, { limit: 2, ttlSeconds: 600 }),
  ];
  const waiting = caller('four').acquire(`${prefix}b`, { limit: 2, waitMs: Number.POSITIVE_INFINITY });
  await inLine(`${prefix}b`, 1);
  const listed = async (filter: Parameters<Holdfast['leases']>[0]) => {
    const rows = [];
    for await (const row of operator.leases({ prefix, limit: 1, ...filter })) rows.push(row);
    return rows;
  };
  const leaseRow = { key: `${prefix}a`, kind: 'lease', state: 'held', holder: 'one', waiting: 0 };
  const poolRow = {
    ...{ key: `${prefix}b`, kind: 'pool', state: 'held', holder: 'two', waiting: 1 },
    ...{ used: 2, limit: 2, holders: 2 },
  };
  expect(await listed({ sort: 'key' })).toMatchObject([leaseRow, poolRow]);
  expect(await listed({ sort: 'expiry' })).toMatchObject([poolRow, leaseRow]);
  expect(await listed({ kind: 'pool' })).toMatchObject([poolRow]);
  expect(await listed({ kind: 'lease', state: 'held' })).toMatchObject([leaseRow]);
  await Promise.all(permits.map((permit) => permit.release()));
  await (await waiting).release();
  await lease.release();
});
