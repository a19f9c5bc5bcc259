import { describe, expect, it } from 'vitest';
import { acquirePermit } from '../../shared/permits/acquire.ts';
import { call } from '../support/emulators/aws.ts';
import { failure } from '../support/worlds/leases.ts';
import { poolWorld } from '../support/worlds/permits.ts';

const world = await poolWorld();
const { acquire, heartbeat, release, breakPermit, read, clock, rawItem, requests, dependencies } = world;

const instant = (epochMs: number) => new Date(epochMs).toISOString();

describe('acquire', () => {
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

  it('acquire grants one request one permit, and repeats it', async () => {
    const asked = { key: 'repeat', holder: 'a', limit: 3, requestId: 'r' };
    const first = await acquire(asked);
    clock.advance(2000);
    const { leaseId, fence, expiresAt } = first;
    expect(await acquire(asked)).toMatchObject({
      leaseId,
      fence,
      expiresAt,
      repeated: true,
      remainingMs: 58_000,
      used: 1,
    });
    expect(await acquire({ ...asked, holder: 'b' })).toMatchObject({ repeated: false, used: 2 });
    expect(await acquire(asked, call({ principal: 'another' }))).toMatchObject({ repeated: false, used: 3 });
  });

  it('acquire repeats no permit for a request that asks for another weight or mode', async () => {
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
                'has a permit of another weight or mode: send the weight and mode of that permit, or another requestId',
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

  it('acquire follows the limit of each caller: a lower limit does not let more in once it is passed', async () => {
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
    expect(writer).toMatchObject({ mode: 'exclusive', limit: null, weight: 1_000_000, used: 1_000_000 });
    expect((await failure(acquire({ key: 'rw', holder: 'r3', mode: 'shared' }))).context.holders).toMatchObject([
      { holder: 'w', mode: 'exclusive' },
    ]);
    expect((await failure(acquire({ key: 'rw', holder: 'w2', mode: 'exclusive' }))).message).toBe(
      'there is no room: the holders weigh 1000000, and the call needs the key alone',
    );
    expect((await read('rw')).limit).toBe(200);
  });
});

describe('take-over', () => {
  it('a take-over gives an expired permit to the first caller once the margin has passed, and ends no more than are needed', async () => {
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

  it('a take-over grants the request whose own permit has expired another permit', async () => {
    const asked = { key: 'own', holder: 'a', requestId: 'r', limit: 1, ttlSeconds: 10 };
    const first = await acquire(asked);
    // From its very end on, and as long as its margin is not over, it is held, and binds the request to no terms.
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
  ] as const)(
    'a take-over makes room by the end of %i for %s, of at most forty in a write',
    async (count, who, asked, writes) => {
      const key = `${count} for ${who}`;
      for (let n = 0; n < count; n++) await acquire({ key, holder: `h${n}`, limit: 200, ttlSeconds: 2 });
      clock.advance(2501);
      requests.sent.length = 0;
      const granted = await acquire({ key, holder: 'last', ...asked });
      expect(requests.sent).toEqual(Array(writes).fill('UpdateItem'));
      const previous = { holder: `h${count - 1}`, ended: 'expired' };
      expect(granted).toMatchObject({ holder: 'last', used: granted.weight, repeated: false, previous });
      expect((await read(key)).holders.map(({ holder }) => holder)).toEqual(['last']);
    },
  );

  it("a take-over grants another permit if there is room beside the request's own expired permit, and not before the margin has passed", async () => {
    const asked = { key: 'own beside', holder: 'a', requestId: 'r', limit: 3, ttlSeconds: 10 };
    await acquire(asked);
    await acquire({ ...asked, holder: 'b', ttlSeconds: 60 });
    clock.advance(10_200);
    const waits = async (limit: number) => (await failure(acquire({ ...asked, limit }))).context.retryAfterMs;
    expect([await waits(3), await waits(2), await waits(1)]).toEqual([301, 301, 50_301]);
    clock.advance(301);
    expect(await acquire(asked)).toMatchObject({ repeated: false, used: 2 });
  });

  it('a take-over spares a holder that has extended its permit', async () => {
    const first = await acquire({ key: 'extended', limit: 1, ttlSeconds: 10 });
    clock.advance(11_000);
    expect(await heartbeat(first)).toMatchObject({ fence: first.fence, remainingMs: 10_000 });
    expect((await failure(acquire({ key: 'extended', holder: 'b', limit: 1 }))).code).toBe('LeaseHeld');
  });
});

describe('waiting', () => {
  it('a wait for a permit ends as soon as a permit is released', async () => {
    const first = await acquire({ key: 'wait', limit: 1 });
    clock.at(clock.now() + 3000, () => release(first));
    const granted = await acquire({ key: 'wait', holder: 'b', limit: 1, waitSeconds: 10 });
    expect(granted.waitedMs).toBeGreaterThanOrEqual(3000);
    expect(granted.waitedMs).toBeLessThan(3300);
    expect(granted.used).toBe(1);
  });

  it('a wait for a permit ends if the permit of another holder expires', async () => {
    await acquire({ key: 'wait-expiry', limit: 1, ttlSeconds: 5 });
    const granted = await acquire({ key: 'wait-expiry', holder: 'b', limit: 1, ttlSeconds: 5, waitSeconds: 10 });
    expect(granted).toMatchObject({ waitedMs: 5501, previous: { ended: 'expired', holder: 'tester' }, used: 1 });
    const raced = await acquire({ key: 'wait-expiry', holder: 'c', limit: 1, waitSeconds: 10, fair: false });
    expect(raced).toMatchObject({ waitedMs: 5501, previous: { ended: 'expired', holder: 'b' } });
  });

  it('a wait for a permit ends with LeaseHeld when its time is up, or that of the deployment, or of the invocation', async () => {
    await acquire({ key: 'wait-long', limit: 1, ttlSeconds: 600 });
    const asking = acquirePermit({ ...dependencies, maxWaitSeconds: 2 });
    const waited = async (waitSeconds: number, timeLeftMs = 30_000) => {
      const from = clock.now();
      const asked = { key: 'wait-long', holder: 'b', limit: 1, ttlSeconds: 60, waitSeconds };
      expect((await failure(asking(asked, call({ timeLeftMs: () => timeLeftMs })))).code).toBe('LeaseHeld');
      return clock.now() - from;
    };
    expect([await waited(1), await waited(60), await waited(2, 2000)]).toEqual([1000, 2000, 1500]);
  });

  it.each([500, 499])(
    'a call that would wait for a permit asks once if the invocation has %i ms left',
    async (leftMs) => {
      const key = `wait-none ${leftMs}`;
      await acquire({ key, limit: 1 });
      requests.sent.length = 0;
      const hurried = call({ timeLeftMs: () => leftMs });
      const { code } = await failure(acquire({ key, holder: 'b', limit: 1, waitSeconds: 20 }, hurried));
      expect([code, requests.sent]).toEqual(['LeaseHeld', ['UpdateItem']]);
    },
  );
});

describe('heartbeat', () => {
  it('a heartbeat extends a permit by its ttl or another, keeps its fence, and never shortens', async () => {
    const granted = await acquire({ key: 'beat', limit: 2, ttlSeconds: 30 });
    clock.advance(10_000);
    const beat = await heartbeat(granted);
    expect(beat).toMatchObject({ leaseId: granted.leaseId, fence: granted.fence, remainingMs: 30_000 });
    expect(beat.version).not.toBe(granted.version);
    expect(await heartbeat({ ...granted, ttlSeconds: 90 })).toMatchObject({ remainingMs: 90_000 });
    expect(await heartbeat({ ...granted, ttlSeconds: 20 })).toMatchObject({ remainingMs: 90_000 });
    clock.advance(1);
    expect(await heartbeat(granted)).toMatchObject({ remainingMs: 90_000 });
  });

  it('a heartbeat says why the permit is lost, as far as the record shows', async () => {
    const [gone, taken, broken] = await Promise.all(
      ['gone', 'taken', 'broken'].map((holder) => acquire({ key: 'lost', holder, limit: 3, ttlSeconds: 10 })),
    );
    if (!gone || !taken || !broken) throw new Error('three were granted');
    await release(gone);
    await breakPermit({ key: 'lost', fence: broken.fence });
    clock.advance(10_501);
    await acquire({ key: 'lost', holder: 'next', limit: 1 });
    const reasonOf = async (permit: { key: string; leaseId: string }) => {
      const { code, context } = await failure(heartbeat(permit));
      return [code, context.reason];
    };
    expect(await reasonOf(gone)).toEqual(['LeaseLost', 'released']);
    expect(await reasonOf(broken)).toEqual(['LeaseLost', 'broken']);
    expect(await reasonOf(taken)).toEqual(['LeaseLost', 'unknown']);
    expect(await reasonOf({ key: 'nothing', leaseId: gone.leaseId })).toEqual(['LeaseLost', 'unknown']);
  });
});

describe('release', () => {
  it('a release frees the weight, and answers a repeat as it did the first time', async () => {
    const [one, other] = [
      await acquire({ key: 'back', holder: 'a', limit: 5, weight: 3 }),
      await acquire({ key: 'back', holder: 'b', limit: 5, weight: 2 }),
    ];
    expect(await release(one)).toEqual({ key: 'back', released: true });
    const none = { S: '-' };
    expect(await world.rawItem('back')).toMatchObject({ b0: none, r1: none, b1: none, r7: none, b7: none });
    expect(await release(one)).toEqual({ key: 'back', released: true });
    expect(await read('back')).toMatchObject({ used: 2, holders: [{ holder: 'b' }] });
    await release(other);
    expect(await read('back')).toEqual({
      ...{ kind: 'pool', key: 'back', used: 0, limit: 5, limitBy: 'b', holders: [], waiting: 0 },
    });
    const left = Object.keys((await world.rawItem('back')) ?? {});
    expect(left.filter((name) => /^[hf]/.test(name)).toSorted()).toEqual(['fence', 'freed_at', 'freed_before']);
  });

  it('a pool remembers the last eight released requests, and refuses them another permit', async () => {
    const permits = [];
    for (let n = 0; n < 9; n++) {
      const permit = await acquire({ key: 'ring', requestId: `r${n}`, limit: 1 });
      await release(permit);
      permits.push(permit);
    }
    const answers = await Promise.all(permits.map((permit) => release(permit)));
    expect(answers.map(({ released }) => released)).toEqual([false, ...Array(8).fill(true)]);
    const { code, context } = await failure(acquire({ key: 'ring', requestId: 'r8', limit: 1 }));
    expect([code, context.reason]).toEqual(['LeaseLost', 'released']);
  });

  it('a pool remembers the last eight requests whatever their fences, also if a break ended them', async () => {
    const key = 'any order';
    const permits: Awaited<ReturnType<typeof acquire>>[] = [];
    for (let n = 0; n < 17; n++) permits.push(await acquire({ key, requestId: `r${n}`, limit: 20 }));
    const [a, b, c] = [permits[0], permits[8], permits[16]];
    if (!a || !b || !c) throw new Error('seventeen were granted');
    await release(a);
    await breakPermit({ key, fence: b.fence });
    await release(c);
    for (const one of [a, c]) expect(await release(one)).toEqual({ key, released: true });
    expect(await release(b)).toEqual({ key, released: false, reason: 'broken' });
    expect(await breakPermit({ key, fence: b.fence })).toMatchObject({ broken: true, fence: b.fence });
    for (const [nth, reason] of [
      [0, 'released'],
      [8, 'broken'],
    ] as const)
      expect(await failure(acquire({ key, requestId: `r${nth}`, limit: 20 }))).toMatchObject({
        code: 'LeaseLost',
        context: { reason },
      });
    for (const permit of permits.slice(1, 6)) await release(permit);
    expect(await release(a)).toEqual({ key, released: true });
    for (const permit of permits.slice(6, 7)) await release(permit);
    expect(await release(a)).toEqual({ key, released: false, reason: 'unknown' });
  });
});

describe('break', () => {
  it('a break ends the permit with the fence, and no other', async () => {
    const [a, b] = [
      await acquire({ key: 'broken', holder: 'a', limit: 2 }),
      await acquire({ key: 'broken', holder: 'b', limit: 2 }),
    ];
    expect(await breakPermit({ key: 'broken', fence: a.fence })).toMatchObject({
      ...{ key: 'broken', broken: true, fence: a.fence },
      ...{ holder: 'a', ended: true },
    });
    expect(await breakPermit({ key: 'broken', fence: a.fence })).toMatchObject({ broken: true, holder: null });
    expect(await release(a)).toEqual({ key: 'broken', released: false, reason: 'broken' });
    expect(await heartbeat(b)).toMatchObject({ fence: b.fence });
    expect((await failure(breakPermit({ key: 'broken', fence: b.fence + 1 }))).code).toBe('NotFound');
    const nothing = await failure(breakPermit({ key: 'nothing', fence: 1 }));
    expect(nothing).toMatchObject({ code: 'NotFound', context: { key: 'nothing' } });
  });

  it('a break is forgotten once eight others have ended', async () => {
    const permits: Awaited<ReturnType<typeof acquire>>[] = [];
    for (let n = 0; n < 9; n++) permits.push(await acquire({ key: 'slots', holder: `h${n}`, limit: 9 }));
    const [fence = 0] = permits.map((permit) => permit.fence);
    await breakPermit({ key: 'slots', fence });
    for (const permit of permits.slice(1, 8)) await release(permit);
    expect(await breakPermit({ key: 'slots', fence })).toMatchObject({ broken: true });
    for (const permit of permits.slice(8)) await release(permit);
    expect((await failure(breakPermit({ key: 'slots', fence }))).code).toBe('NotFound');
  });
});

it('a pool keeps its record 400 days past its last write, and its fences rise after that', async () => {
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

it('acquire without waitSeconds does not wait if the clock is set back during the call', async () => {
  const key = 'set back';
  await acquire({ key, holder: 'a', limit: 1 });
  requests.sent.length = 0;
  requests.faults = [
    async (send) => {
      clock.advance(-3000);
      return send();
    },
  ];
  expect(await failure(acquire({ key, holder: 'b', limit: 1 }))).toMatchObject({ code: 'LeaseHeld' });
  expect(requests.sent).toEqual(['UpdateItem']);
});
