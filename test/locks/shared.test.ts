import { expect, it } from 'vitest';
import { failure } from '../support/worlds/leases.ts';
import { permitsWorld } from '../support/worlds/permits.ts';

const world = await permitsWorld();
const { acquire, heartbeat, release, read, clock, rawItem, putRaw, requests } = world;

const instant = (epochMs: number) => new Date(epochMs).toISOString();

it('acquire grants as many permits as the limit says, each with its own fence', async () => {
  const now = clock.now();
  const first = await acquire({ key: 'two', holder: 'a', limit: 2, data: { n: 1 } });
  expect(first).toEqual({
    key: 'two',
    holder: 'a',
    leaseId: expect.stringMatching(/^p\.[\w-]{16}\.[\da-f-]{36}$/),
    version: expect.any(String),
    fence: now,
    acquiredAt: instant(now),
    expiresAt: instant(now + 60_000),
    remainingMs: 60_000,
    data: { n: 1 },
    waitedMs: 0,
    repeated: false,
    previous: null,
    mode: 'shared',
    limit: 2,
    weight: 1,
    used: 1,
  });
  clock.advance(1000);
  expect(await acquire({ key: 'two', holder: 'b', limit: 2 })).toMatchObject({ fence: now + 1, used: 2 });
  const { code, context } = await failure(acquire({ key: 'two', holder: 'c', limit: 2 }));
  expect(code).toBe('LeaseHeld');
  expect(context).toEqual({
    key: 'two',
    holder: 'a',
    fence: now,
    expiresAt: instant(now + 60_000),
    used: 2,
    limit: 2,
    holders: [
      { holder: 'a', fence: now, mode: 'shared', weight: 1, expiresAt: instant(now + 60_000) },
      { holder: 'b', fence: now + 1, mode: 'shared', weight: 1, expiresAt: instant(now + 61_000) },
    ],
    retryAfterMs: 59_000 + 501,
  });
});

it('acquire does not repeat a grant for another weight or mode', async () => {
  const key = 'other weight';
  const first = await acquire({ key, holder: 'a', limit: 4, weight: 2, requestId: 'r' });
  for (const other of [{ limit: 4 }, { limit: 4, weight: 3 }, { mode: 'exclusive' as const }])
    expect(await failure(acquire({ key, holder: 'a', requestId: 'r', ...other }))).toMatchObject({
      code: 'InvalidRequest',
      context: {
        issues: [
          {
            path: 'requestId',
            message:
              'has a grant of another weight or mode: send the weight and mode of that grant, or another requestId',
          },
        ],
      },
    });
  const again = await acquire({ key, holder: 'a', limit: 8, weight: 2, requestId: 'r' });
  expect(again).toMatchObject({ leaseId: first.leaseId, repeated: true, weight: 2 });
});

it('acquire counts weights, and says when enough of them will have ended', async () => {
  await acquire({ key: 'gpus', holder: 'light', limit: 8, weight: 2, ttlSeconds: 10 });
  await acquire({ key: 'gpus', holder: 'heavy', limit: 8, weight: 5, ttlSeconds: 30 });
  expect(await acquire({ key: 'gpus', holder: 'one', limit: 8, ttlSeconds: 60 })).toMatchObject({
    used: 8,
    weight: 1,
  });
  const waits = async (weight: number) =>
    (await failure(acquire({ key: 'gpus', holder: 'next', limit: 8, weight }))).context.retryAfterMs;
  expect([await waits(2), await waits(3), await waits(8)]).toEqual([10_501, 30_501, 60_501]);
});

it('LeaseHeld names the live permit that ends first, and expired permits last', async () => {
  const key = 'expired and live';
  await acquire({ key, holder: 'expired', limit: 3, ttlSeconds: 2 });
  await acquire({ key, holder: 'later', limit: 3, ttlSeconds: 60 });
  await acquire({ key, holder: 'first', limit: 3, ttlSeconds: 30 });
  clock.advance(20_000);
  const { context } = await failure(acquire({ key, limit: 3, weight: 3 }));
  const { holder, holders, fence, expiresAt } = context;
  expect(holders).toMatchObject([{ holder, fence, expiresAt }, { holder: 'later' }, { holder: 'expired' }]);
  expect([holder, expiresAt]).toEqual(['first', new Date(clock.now() + 10_000).toISOString()]);
});

it('acquire names the ten holders that end first', async () => {
  const key = 'eleven';
  for (let n = 0; n < 11; n++) await acquire({ key, holder: `h${n}`, limit: 11, ttlSeconds: 60 - n });
  const { context } = await failure(acquire({ key, holder: 'next', limit: 11 }));
  expect(context.holders).toMatchObject(Array.from({ length: 10 }, (_, n) => ({ holder: `h${10 - n}` })));
  expect(context).toMatchObject({ holder: 'h10', used: 11 });
  clock.advance(50_000); // the very end of the first
  expect((await read(key)).holders.at(-1)).toMatchObject({ holder: 'h10', state: 'expired', remainingMs: 0 });
});

it('acquire follows the limit of each caller', async () => {
  for (const holder of ['a', 'b', 'c']) await acquire({ key: 'lowered', holder, limit: 3 });
  expect((await failure(acquire({ key: 'lowered', holder: 'd', limit: 2 }))).code).toBe('LeaseHeld');
  expect(await acquire({ key: 'lowered', holder: 'e', limit: 4 })).toMatchObject({ used: 4 });
  expect((await read('lowered')).limit).toBe(4);
});

it('acquire lets readers in together, and a writer alone', async () => {
  const reader = await acquire({ key: 'rw', holder: 'r1', mode: 'shared' });
  const second = await acquire({ key: 'rw', holder: 'r2', mode: 'shared' });
  expect(second).toMatchObject({ limit: 200, used: 2 });
  expect((await failure(acquire({ key: 'rw', holder: 'w', mode: 'exclusive' }))).code).toBe('LeaseHeld');
  await release(reader);
  await release(second);
  const writer = await acquire({ key: 'rw', holder: 'w', mode: 'exclusive' });
  expect(writer).not.toHaveProperty('used');
  expect((await failure(acquire({ key: 'rw', holder: 'r3', mode: 'shared' }))).context.holders).toMatchObject([
    { holder: 'w', mode: 'exclusive' },
  ]);
  expect((await failure(acquire({ key: 'rw', holder: 'w2', mode: 'exclusive' }))).message).toBe(
    `rw is held by w until ${writer.expiresAt}`,
  );
  expect(await read('rw')).toMatchObject({ used: 1, limit: null });
});

it('a take-over after the margin ends only as many permits as needed', async () => {
  for (const [holder, ttlSeconds] of [
    ['a', 10],
    ['b', 20],
    ['c', 30],
  ] as const)
    await acquire({ key: 'expired', holder, ttlSeconds, limit: 3 });
  const { fence } = (await read('expired')).holders[0] ?? {};
  clock.advance(10_500);
  expect((await failure(acquire({ key: 'expired', holder: 'd', limit: 3 }))).context.retryAfterMs).toBe(1);
  clock.advance(20_001);
  const ended = clock.now() - 20_501;
  expect(await acquire({ key: 'expired', holder: 'd', limit: 3 })).toMatchObject({
    used: 3,
    previous: { holder: 'a', fence, ended: 'expired', at: instant(ended) },
  });
  expect((await read('expired')).holders.map(({ holder, state }) => [holder, state])).toEqual([
    ['b', 'expired'],
    ['c', 'expired'],
    ['d', 'held'],
  ]);
});

it('a request whose permit has expired receives another one by a take-over', async () => {
  const asked = { key: 'own', holder: 'a', requestId: 'r', limit: 1, ttlSeconds: 10 };
  const first = await acquire(asked);
  // Between its end and the end of the margin the permit still keeps the key, and the request may ask by other terms.
  for (const ms of [10_000, 200, 300]) {
    clock.advance(ms);
    for (const weight of [1, 2])
      expect((await failure(acquire({ ...asked, limit: weight, weight }))).code).toBe('LeaseHeld');
  }
  clock.advance(1);
  const second = await acquire(asked);
  expect(second).toMatchObject({ repeated: false, used: 1 });
  expect(second.fence).toBeGreaterThan(first.fence);
  expect(await release(first)).toEqual({ key: 'own', released: false, reason: 'unknown' });
  expect(await release(second)).toMatchObject({ released: true });
});

it.each([
  [42, 'a writer', { mode: 'exclusive' }, 3],
  [40, 'a heavy caller', { limit: 100, weight: 100 }, 2],
] as const)('a take-over ends %i permits for %s, forty in a write', async (count, who, asked, writes) => {
  const key = `${count} for ${who}`;
  for (let n = 0; n < count; n++) await acquire({ key, holder: `h${n}`, limit: 200, ttlSeconds: 2 });
  clock.advance(2501);
  requests.sent.length = 0;
  const granted = await acquire({ key, holder: 'last', ...asked });
  expect(requests.sent).toEqual(Array(writes).fill('UpdateItem'));
  const previous = { holder: `h${count - 1}`, ended: 'expired' };
  expect(granted).toMatchObject({ holder: 'last', repeated: false, previous });
  expect(granted.used).toBe(granted.weight);
  expect((await read(key)).holders.map(({ holder }) => holder)).toEqual(['last']);
});

it.each(['shared', 'exclusive'] as const)('a %s take-over removes the mark of an empty line', async (mode) => {
  const key = `marked, then ${mode}`;
  await acquire({ key, holder: 'writer', mode: 'exclusive', ttlSeconds: 2 });
  await putRaw({ ...(await rawItem(key)), key: { S: key }, mark: { S: 'left' } });
  clock.advance(2501);
  const granted = await acquire({ key, holder: 'next', mode });
  expect(granted).toMatchObject({ holder: 'next', previous: { holder: 'writer', ended: 'expired' } });
  expect(await rawItem(key)).not.toHaveProperty('mark');
});

it('a take-over beside the expired permit of its request waits for the margin', async () => {
  const asked = { key: 'own beside', holder: 'a', requestId: 'r', limit: 3, ttlSeconds: 10 };
  await acquire(asked);
  await acquire({ ...asked, holder: 'b', ttlSeconds: 60 });
  clock.advance(10_200);
  const waits = async (limit: number) => (await failure(acquire({ ...asked, limit }))).context.retryAfterMs;
  expect([await waits(3), await waits(2), await waits(1)]).toEqual([301, 301, 50_301]);
  clock.advance(301);
  expect(await acquire(asked)).toMatchObject({ repeated: false, used: 2 });
});

it('a wait for a permit ends if the permit of another holder expires', async () => {
  await acquire({ key: 'wait-expiry', limit: 1, ttlSeconds: 2 });
  const granted = await acquire({ key: 'wait-expiry', holder: 'b', limit: 1, ttlSeconds: 2, waitSeconds: 10 });
  expect(granted).toMatchObject({ waitedMs: 2501, previous: { ended: 'expired', holder: 'tester' }, used: 1 });
  const raced = await acquire({ key: 'wait-expiry', holder: 'c', limit: 1, waitSeconds: 10, fair: false });
  expect(raced).toMatchObject({ waitedMs: 2501, previous: { ended: 'expired', holder: 'b' } });
});

it('a record of shared holders stays for 400 days, and its fences rise', async () => {
  const seconds = () => Math.ceil(clock.now() / 1000) + 400 * 86_400;
  const ttlOf = async () => Number((await rawItem('ttl'))?.lease_expiry?.N);
  const permit = await acquire({ key: 'ttl', limit: 2 });
  expect(await ttlOf()).toBe(seconds());
  clock.advance(5000);
  await heartbeat(permit);
  expect(await ttlOf()).toBe(seconds());
  clock.advance(5000);
  await release(permit);
  expect(await ttlOf()).toBe(seconds());
  clock.set(seconds() * 1000);
  await world.deleteRaw('ttl');
  const { fence } = await acquire({ key: 'ttl', limit: 2 });
  expect(fence).toBe(clock.now());
  expect(fence).toBeGreaterThan(permit.fence);
});
