import { beforeEach, describe, expect, it } from 'vitest';
import type { Fault } from '../support/emulators/aws.ts';
import { networkError } from '../support/faults/network.ts';
import { failure } from '../support/worlds/leases.ts';
import { poolWorld } from '../support/worlds/permits.ts';

const world = await poolWorld();
const { acquire, heartbeat, release, breakPermit, read, clock, requests } = world;

/** Another instance of the service over the same table. */
const other = await poolWorld({ table: world.dependencies.table, clock });

/** The try lands, its answer is lost, and something happens before the next one. */
const lostBefore =
  (what: () => Promise<unknown>): Fault =>
  async (send) => {
    await send();
    await what();
    throw networkError('ECONNRESET', 'read');
  };

/** The try is on its way while something happens, and arrives after it. */
const delayed =
  (what: () => Promise<unknown>): Fault =>
  async (send) => {
    await what();
    return send();
  };

/** Holders of a weight of one, whose permits are over. */
const crowd = async (key: string, count: number) => {
  const { leaseId } = await other.acquire({ key, holder: 'dead', limit: 200, ttlSeconds: 2 });
  const [, name] = leaseId.split('.');
  const { [`h${name}`]: entry, [`f${name}`]: fence, ...record } = (await other.rawItem(key)) ?? {};
  const names = Array.from({ length: count }, (_, n) => `${n}`.padEnd(16, '-'));
  const entries = names.flatMap((one) => [
    [`h${one}`, entry],
    [`f${one}`, fence],
  ]);
  await other.putRaw({ ...record, used: { N: `${count}` }, ...Object.fromEntries(entries) });
  clock.advance(2501);
};

const ended = async (key: string, count: number) => {
  for (let n = 0; n < count; n++) await other.release(await other.acquire({ key, holder: `later-${n}`, limit: 200 }));
};

beforeEach(() => {
  requests.faults = [];
  requests.sent.length = 0;
});

describe('an answer that is lost after the write has landed', () => {
  it('acquire: the SDK tries again, and the caller has one permit', async () => {
    await other.form('acquire');
    requests.faults = ['lostReply'];
    const granted = await acquire({ key: 'acquire', limit: 2 });
    expect(requests.sent).toEqual(['UpdateItem', 'UpdateItem']);
    expect(granted).toMatchObject({ repeated: true, used: 1 });
    expect(await read('acquire')).toMatchObject({ used: 1, holders: [{ fence: granted.fence }] });
  });

  it('acquire, until the SDK gives up: OutcomeUnknown names the id to ask with, which finds the permit', async () => {
    await other.form('unknown');
    requests.faults = ['lostReply', 'lostReply', 'lostReply'];
    const { code, context } = await failure(acquire({ key: 'unknown', limit: 2 }));
    expect([code, context.retryWith]).toEqual(['OutcomeUnknown', { requestId: expect.any(String) }]);
    expect(await acquire({ key: 'unknown', limit: 2, ...(context.retryWith as object) })).toMatchObject({
      repeated: true,
      used: 1,
    });
  });

  it('a take-over whose answer is lost gives the caller the room once', async () => {
    await acquire({ key: 'takeover', holder: 'dead', limit: 1, ttlSeconds: 2 });
    clock.advance(2501);
    requests.sent.length = 0;
    requests.faults = ['none', 'lostReply'];
    expect(await acquire({ key: 'takeover', limit: 1 })).toMatchObject({ repeated: true, used: 1 });
    expect(requests.sent).toHaveLength(3);
  });

  it('the end of the first of many: the others go, and no weight is freed twice', async () => {
    for (let n = 0; n < 45; n++) await other.acquire({ key: 'crowd', holder: `h${n}`, limit: 45, ttlSeconds: 2 });
    clock.advance(2501);
    requests.faults = ['none', 'lostReply'];
    expect(await acquire({ key: 'crowd', mode: 'exclusive' })).toMatchObject({ used: 1_000_000 });
    expect(await read('crowd')).toMatchObject({ used: 1_000_000, holders: [{ mode: 'exclusive' }] });
  });

  it('heartbeat: the permit is extended once, and its new version is the answer', async () => {
    const granted = await acquire({ key: 'beat', limit: 1, ttlSeconds: 10 });
    clock.advance(5000);
    requests.faults = ['lostReply'];
    expect(await heartbeat(granted)).toMatchObject({ remainingMs: 10_000 });
  });

  it('release: true, and the weight is given back once', async () => {
    const granted = await acquire({ key: 'release', limit: 3, weight: 2 });
    await other.acquire({ key: 'release', holder: 'another', limit: 3 });
    requests.faults = ['lostReply'];
    expect(await release(granted)).toEqual({ key: 'release', released: true });
    expect((await read('release')).used).toBe(1);
  });

  it('release, and eight others end before the next try: unknown', async () => {
    const granted = await acquire({ key: 'release-eight', limit: 200 });
    requests.faults = [lostBefore(() => ended('release-eight', 8))];
    expect(await release(granted)).toEqual({ key: 'release-eight', released: false, reason: 'unknown' });
  });

  it('break: broken', async () => {
    const { fence } = await acquire({ key: 'break', limit: 1 });
    requests.faultsOf.UpdateItem = ['lostReply'];
    expect(await breakPermit({ key: 'break', fence })).toMatchObject({ broken: true });
  });

  it('break, and eight others end before the next try: OutcomeUnknown, and then what is there', async () => {
    const { fence } = await acquire({ key: 'break-eight', limit: 200 });
    requests.faultsOf.UpdateItem = [lostBefore(() => ended('break-eight', 8))];
    expect(await failure(breakPermit({ key: 'break-eight', fence }))).toMatchObject({
      code: 'OutcomeUnknown',
      context: { key: 'break-eight' },
    });
    expect((await failure(breakPermit({ key: 'break-eight', fence }))).code).toBe('NotFound');
  });
});

describe('a request that arrives late', () => {
  it('an acquire that arrives late, and whose permit was released in between, takes no other permit', async () => {
    const asked = { key: 'late', requestId: 'r', limit: 2 };
    await other.form('late');
    requests.faults = [delayed(async () => other.release(await other.acquire(asked)))];
    const { code, context } = await failure(acquire(asked));
    expect([code, context.reason]).toEqual(['LeaseLost', 'released']);
    expect((await read('late')).used).toBe(0);
  });

  it('an acquire of a pool that is full by then is refused', async () => {
    await other.form('late-full');
    requests.faults = [delayed(() => other.acquire({ key: 'late-full', holder: 'b', limit: 1 }))];
    expect((await failure(acquire({ key: 'late-full', limit: 1 }))).code).toBe('LeaseHeld');
  });

  it('a heartbeat from before another heartbeat shortens no permit', async () => {
    const granted = await acquire({ key: 'late-beat', limit: 1, ttlSeconds: 10 });
    requests.faults = [
      delayed(async () => {
        clock.advance(4000);
        await other.heartbeat(granted);
      }),
    ];
    expect(await heartbeat(granted)).toMatchObject({ remainingMs: 10_000 });
  });

  it('a late take-over of a permit that was extended, released or broken in between looks again', async () => {
    for (const [how, outcome] of [
      ['extends', 'LeaseHeld'],
      ['releases', 'granted'],
      ['is broken', 'granted'],
    ]) {
      const key = `late-takeover ${how}`;
      const dead = await other.acquire({ key, holder: 'dead', limit: 1, ttlSeconds: 10 });
      clock.advance(10_501);
      const meanwhile = () => {
        if (how === 'extends') return other.heartbeat(dead);
        return how === 'releases' ? other.release(dead) : other.breakPermit({ key, fence: dead.fence });
      };
      requests.faults = ['none', delayed(meanwhile)];
      const act = acquire({ key, limit: 1 });
      if (outcome === 'LeaseHeld') expect((await failure(act)).code).toBe('LeaseHeld');
      else expect(await act).toMatchObject({ used: 1, previous: null });
    }
  });

  it('a late take-over by a request that received a permit by a duplicate call in between is answered with that permit', async () => {
    const asked = { key: 'late-duplicate', holder: 'a', requestId: 'r', limit: 3 };
    await other.acquire({ key: asked.key, holder: 'dead', limit: 3, weight: 3, ttlSeconds: 10 });
    clock.advance(10_501);
    requests.faults = ['none', delayed(() => other.acquire({ ...asked, limit: 4 }))];
    expect(await acquire(asked)).toMatchObject({ repeated: true, used: 4 });
    expect(await read(asked.key)).toMatchObject({ used: 4, holders: [{ holder: 'dead' }, { holder: 'a' }] });
  });

  it('a late end of the first of many permits, if a duplicate call of the request has a permit by then, is answered with that permit', async () => {
    const asked = { key: 'late-crowd', holder: 'a', requestId: 'r', limit: 100, weight: 100 };
    await crowd(asked.key, 42);
    requests.faults = ['none', delayed(() => other.acquire({ ...asked, limit: 200 }))];
    expect(await acquire(asked)).toMatchObject({ repeated: true, used: 102, previous: null });
  });

  it('a take-over before whose tries one holder after the other comes back gives up after five', async () => {
    const key = 'five';
    const permits: Awaited<ReturnType<typeof acquire>>[] = [];
    for (let n = 0; n < 8; n++) permits.push(await other.acquire({ key, holder: `h${n}`, limit: 8, ttlSeconds: 10 }));
    clock.advance(10_501);
    requests.faults = ['none', ...permits.map((permit) => delayed(() => other.heartbeat(permit)))];
    expect(await failure(acquire({ key, limit: 8 }))).toMatchObject({
      code: 'LeaseHeld',
      message: 'there is no room: the holders weigh 8, and the limit is 8',
    });
    expect(requests.sent).toEqual(Array(5).fill('UpdateItem'));
  });

  it('a late break of a permit that its holder released in between finds no permit, and ends a permit that was extended in between', async () => {
    const [one, two] = [
      await acquire({ key: 'late-break', holder: 'a', limit: 2 }),
      await acquire({ key: 'late-break', limit: 2 }),
    ];
    requests.faultsOf.UpdateItem = [delayed(() => other.release(one))];
    expect((await failure(breakPermit({ key: 'late-break', fence: one.fence }))).code).toBe('NotFound');
    requests.faultsOf.UpdateItem = [delayed(() => other.heartbeat(two))];
    expect(await breakPermit({ key: 'late-break', fence: two.fence })).toMatchObject({ broken: true });
  });
});

it('a writer comes in after two hundred readers that died, and ends them all', async () => {
  await crowd('two hundred', 200);
  expect(await acquire({ key: 'two hundred', mode: 'exclusive' })).toMatchObject({ used: 1_000_000 });
  expect((await read('two hundred')).holders).toMatchObject([{ mode: 'exclusive' }]);
});

it('a store that throttles or cannot be reached changes no permit', async () => {
  requests.faults = ['throttle', 'throttle', 'throttle'];
  expect((await failure(acquire({ key: 'down', limit: 1 }))).code).toBe('Throttled');
  requests.faults = ['neverSent', 'neverSent', 'neverSent'];
  expect((await failure(acquire({ key: 'down', limit: 1 }))).code).toBe('Unavailable');
  await acquire({ key: 'down', holder: 'b', limit: 1 });
  requests.faults = ['none', 'throttle', 'throttle', 'throttle'];
  expect((await failure(acquire({ key: 'down', limit: 1, waitSeconds: 5 }))).code).toBe('Throttled');
  expect((await read('down')).used).toBe(1);
});

describe('a write that DynamoDB refuses', () => {
  it('a write that DynamoDB refuses as invalid, after a try without an answer, is an unknown outcome', async () => {
    requests.faults = ['lostReply', { name: 'ValidationException', status: 400 }];
    const { code, context } = await failure(acquire({ key: 'invalid', limit: 1 }));
    expect([code, context.retryWith]).toEqual(['OutcomeUnknown', { requestId: expect.any(String) }]);
  });

  it('a write that DynamoDB refuses for another reason is not said to have met a record of another client, and reads none', async () => {
    requests.sent.length = 0;
    requests.faults = [{ name: 'AccessDeniedException', status: 400 }];
    const { code, message } = await failure(acquire({ key: 'denied', limit: 1 }));
    expect([code, message]).toEqual(['Unavailable', expect.stringContaining('is denied')]);
    expect(requests.sent).toEqual(['UpdateItem']);
  });
});
