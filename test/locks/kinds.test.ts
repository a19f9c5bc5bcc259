import { PutItemCommand } from '@aws-sdk/client-dynamodb';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { EXECUTION_ROW } from '../../shared/line/waiters.ts';
import { acquire as acquireKey } from '../../shared/locks/acquire.ts';
import { breakGrant } from '../../shared/locks/break.ts';
import { heartbeat as extend } from '../../shared/locks/heartbeat.ts';
import { acquireInput } from '../../shared/locks/inputs.ts';
import { lookUp } from '../../shared/locks/read.ts';
import { release as giveBack } from '../../shared/locks/release.ts';
import { withdrawOwnRequest } from '../../shared/locks/withdraw.ts';
import { call, type Fault } from '../support/emulators/aws.ts';
import { documented } from '../support/stack/contract.ts';
import { failure } from '../support/worlds/leases.ts';
import { queueWorld } from '../support/worlds/line.ts';
import { rawPools } from '../support/worlds/permits.ts';

// One key, one record (docs/protocols/kinds.md): a key is a lease or a pool, and the two kinds exclude each other.

const world = await queueWorld();
afterAll(() => world.steps.stop());
const { dependencies, clock, dynamodb, requests, steps, rows, repair } = world;
const { rawItem, deleteRaw, setRaw } = rawPools(dynamodb, dependencies.table);
const entered = documented('acquire', acquireKey(dependencies));
const released = documented('release', giveBack(dependencies));
const beaten = documented('heartbeat', extend(dependencies));
const broken = documented('breakLease', breakGrant(dependencies));
const withdrawn = documented('withdraw', withdrawOwnRequest(dependencies));
const read = documented('readLeases', lookUp(dependencies));

const input = acquireInput();
const ask = (asked: object) => entered(input.parse({ holder: 'tester', ...asked }), call());
const acquire = async (asked: object) => {
  const answer = await ask(asked);
  if ('parked' in answer) throw new Error('this call parks no task');
  return answer;
};
const park = async (asked: object) => {
  clock.advance(1);
  const task = steps.newTask();
  await ask({ taskToken: task.token, ...asked });
  return task;
};
const release = ({ key, leaseId }: { key: string; leaseId: string }) => released({ key, leaseId }, call());

beforeEach(() => {
  requests.faults = [];
  requests.faultsOf = {};
  clock.advance(60_000);
});

/** Empty pools and free leases of a name, each by its own way. */
const FREE = {
  'a key without a record': async () => {},
  'a free lease': async (key: string) => void (await release(await acquire({ key }))),
  'an expired lease': async (key: string) => {
    await acquire({ key, ttlSeconds: 2 });
    clock.advance(2501);
  },
  'an empty pool': async (key: string) => void (await release(await acquire({ key, limit: 2 }))),
  'a pool of expired permits': async (key: string) => {
    for (let nth = 0; nth < 3; nth++) await acquire({ key, holder: `${nth}`, limit: 3, ttlSeconds: 2 });
    clock.advance(2501);
  },
};

describe('a key that a caller holds', () => {
  it('a key refuses a plain call beside a full pool, and says who uses the key, until when, and what to pass', async () => {
    const key = 'full pool';
    for (const holder of ['a', 'b']) await acquire({ key, holder, limit: 2, ttlSeconds: 60 });
    const before = await rawItem(key);
    const { code, message, context } = await failure(acquire({ key, holder: 'forgot the limit' }));
    expect([code, message]).toEqual([
      'WrongKind',
      'the key is used as a pool of permits, and 2 of 2 are in use: acquire it with limit or mode, or use another key for a lease',
    ]);
    const until = new Date(clock.now() + 60_000).toISOString();
    expect(context).toMatchObject({ key, kind: 'pool', holder: 'a', expiresAt: until, used: 2, limit: 2 });
    expect(context).toMatchObject({ holders: [{ holder: 'a' }, { holder: 'b' }], retryAfterMs: 60_501 });
    expect(await rawItem(key)).toEqual(before);
  });

  it('WrongKind names the live permit that ends first, although an expired permit is still in the pool', async () => {
    const key = 'expired and live';
    await acquire({ key, holder: 'expired', limit: 3, ttlSeconds: 2 });
    await acquire({ key, holder: 'later', limit: 3, ttlSeconds: 60 });
    await acquire({ key, holder: 'first', limit: 3, ttlSeconds: 30 });
    clock.advance(20_000);
    expect((await failure(acquire({ key }))).context).toMatchObject({
      ...{ holder: 'first', expiresAt: new Date(clock.now() + 10_000).toISOString() },
      holders: [{ holder: 'first' }, { holder: 'later' }, { holder: 'expired' }],
    });
  });

  it('a key refuses a plain call beside an exclusive holder', async () => {
    await acquire({ key: 'exclusive', holder: 'a', mode: 'exclusive' });
    expect(await failure(acquire({ key: 'exclusive', holder: 'b' }))).toMatchObject({
      code: 'WrongKind',
      context: { kind: 'pool', holder: 'a', used: 1_000_000, limit: null },
    });
  });

  it('a key refuses a call for a permit beside the holder of a lease', async () => {
    const key = 'held';
    const granted = await acquire({ key, holder: 'a' });
    const before = await rawItem(key);
    for (const terms of [{ limit: 2 }, { mode: 'exclusive' }, { mode: 'shared' }])
      expect(await failure(acquire({ key, holder: 'b', ...terms }))).toMatchObject({
        code: 'WrongKind',
        message: 'the key is used as a lease by a: acquire it without limit and mode, or use another key for permits',
        context: { key, kind: 'lease', holder: 'a', fence: granted.fence, expiresAt: granted.expiresAt },
      });
    expect(await rawItem(key)).toEqual(before);
  });

  it.each([
    ['a lease', {}, { limit: 1 }],
    ['a pool', { limit: 1 }, {}],
  ])(
    'a key refuses at once a call of the other kind that would wait for %s, and a task, and no row is left',
    async (name, own, other) => {
      const key = `at once, ${name}`;
      await acquire({ key, holder: 'a', ...own });
      const startedAt = clock.now();
      const asked = { key, holder: 'b', ...other };
      expect((await failure(acquire({ ...asked, waitSeconds: 20 }))).code).toBe('WrongKind');
      expect((await failure(acquire({ ...asked, waitSeconds: 20, fair: false }))).code).toBe('WrongKind');
      expect((await failure(park(asked))).code).toBe('WrongKind');
      expect(clock.now() - startedAt).toBe(1);
      expect(await rows(key)).toEqual([]);
    },
  );

  it('a key may be taken from its last holder only after the margin of the clocks', async () => {
    await acquire({ key: 'margin', limit: 1, ttlSeconds: 2 });
    clock.advance(2500);
    expect((await failure(acquire({ key: 'margin' }))).code).toBe('WrongKind');
    clock.advance(1);
    await acquire({ key: 'margin' });
    await acquire({ key: 'margin of a lease', ttlSeconds: 2 });
    clock.advance(2500);
    expect((await failure(acquire({ key: 'margin of a lease', limit: 1 }))).code).toBe('WrongKind');
    clock.advance(1);
    await acquire({ key: 'margin of a lease', limit: 1 });
  });
});

describe('a key that no caller holds', () => {
  it.each(Object.entries(FREE))('%s becomes a pool, and then a lease, and its fences rise', async (name, make) => {
    await make(name);
    const before = Number((await rawItem(name))?.fence?.N ?? 0);
    const permit = await acquire({ key: name, limit: 2 });
    expect(permit.fence).toBeGreaterThan(before);
    expect((await rawItem(name))?.lease_version).toEqual({ S: 'holdfast' });
    await release(permit);
    const lease = await acquire({ key: name });
    expect(lease.fence).toBeGreaterThan(permit.fence);
    expect(Object.keys((await rawItem(name)) ?? {}).filter((part) => /^([hf].{16}|used|r\d)$/.test(part))).toEqual([]);
    await release(lease);
    expect((await acquire({ key: name, limit: 2 })).fence).toBeGreaterThan(lease.fence);
  });

  it('a free key changes its kind also after the mark of a line in which no waiter is left', async () => {
    for (const [key, own, other, mark, value] of [
      ['marked lease', {}, { limit: 1 }, 'waiters', { N: '1' }],
      ['marked pool', { limit: 1 }, {}, 'mark', { S: 'm' }],
    ] as const) {
      await acquire({ key, ttlSeconds: 2, ...own });
      await setRaw(key, mark, value);
      clock.advance(2501);
      await acquire({ key, holder: 'other', ...other });
      expect(await rawItem(key)).not.toHaveProperty(mark);
    }
  });

  it('a free key serves its line first: the waiter of a lease receives it, and the call for a permit is refused', async () => {
    const key = 'line first';
    const first = await acquire({ key, ttlSeconds: 2 });
    const task = await park({ key, holder: 'waits' });
    clock.advance(2501);
    expect(await failure(acquire({ key, holder: 'b', limit: 1 }))).toMatchObject({
      code: 'WrongKind',
      context: { holder: 'waits' },
    });
    expect(task.state).toBe('succeeded');
    expect((await released({ key, leaseId: first.leaseId }, call())).released).toBe(false);
  });

  it('a free key serves the line of a pool first', async () => {
    const key = 'pool line first';
    await acquire({ key, limit: 1, ttlSeconds: 2 });
    const task = await park({ key, holder: 'waits', limit: 1 });
    clock.advance(2501);
    expect((await failure(acquire({ key, holder: 'b' }))).code).toBe('WrongKind');
    expect(task.state).toBe('succeeded');
  });

  it('a key is held by one kind at each moment while forty callers of both kinds call at once', async () => {
    const key = 'crowd';
    const outcomes = await Promise.all(
      Array.from({ length: 40 }, (_, nth) =>
        acquire({ key, holder: `${nth}`, ...(nth % 2 === 0 && { limit: 40 }) }).then(
          () => (nth % 2 === 0 ? 'permit' : 'lease'),
          ({ code }) => code as string,
        ),
      ),
    );
    const granted = new Set(outcomes.filter((outcome) => outcome === 'permit' || outcome === 'lease'));
    expect(granted.size).toBe(1);
    if (granted.has('lease')) expect(outcomes.filter((outcome) => outcome === 'lease')).toHaveLength(1);
  });
});

describe('a write that arrives late', () => {
  /** The write is under way while something happens. */
  const delayed =
    (what: () => Promise<unknown>): Fault =>
    async (send) => {
      const { faultsOf } = requests;
      requests.faultsOf = {};
      await what();
      requests.faultsOf = faultsOf;
      return send();
    };

  it('a late write of a request whose permit ended in an earlier pool of the key grants no permit', async () => {
    const key = 'late permit';
    const asked = { key, holder: 'a', requestId: 'r', limit: 2 };
    await acquire({ ...asked, requestId: 'first', holder: 'first' });
    clock.advance(60_501);
    requests.faultsOf.UpdateItem = [
      delayed(async () => {
        await release(await acquire(asked));
        await release(await acquire({ key }));
        await release(await acquire({ key, holder: 'later', limit: 2 }));
      }),
    ];
    // The try itself is refused. What the call is granted after that is a new permit, which its caller receives.
    const { used } = await acquire(asked);
    expect(used).toBe(1);
    expect((await read({ key }, call())) as object).toMatchObject({
      kind: 'pool',
      used: 1,
      holders: [{ holder: 'a' }],
    });
  });

  it('a late write of a heartbeat or a release of a lease finds a pool, and the lease is lost', async () => {
    const key = 'late beat';
    const lease = await acquire({ key, ttlSeconds: 2 });
    clock.advance(2501);
    await acquire({ key, limit: 1 });
    const before = await rawItem(key);
    const { code, context } = await failure(beaten({ key, leaseId: lease.leaseId }, call()));
    expect([code, context.reason]).toEqual(['LeaseLost', 'taken']);
    expect(await release(lease)).toEqual({ key, released: false, reason: 'taken' });
    expect(await rawItem(key)).toEqual(before);
  });

  it('a late write of a heartbeat or a release of a permit finds a lease, and the permit is lost', async () => {
    const key = 'late permit beat';
    const permit = await acquire({ key, limit: 1, ttlSeconds: 2 });
    clock.advance(2501);
    await acquire({ key });
    const before = await rawItem(key);
    const { code, context } = await failure(beaten({ key, leaseId: permit.leaseId }, call()));
    expect([code, context.reason]).toEqual(['LeaseLost', 'taken']);
    expect(await release(permit)).toEqual({ key, released: false, reason: 'taken' });
    expect(await rawItem(key)).toEqual(before);
  });
});

describe('the calls of operators and callers name no kind', () => {
  it('break ends a permit by its fence, and never takes the kind off a pool', async () => {
    const key = 'break';
    const { fence } = await acquire({ key, holder: 'a', limit: 2 });
    await acquire({ key, holder: 'b', limit: 2 });
    expect(await broken({ key, fence, wait: true }, call())).toMatchObject({ broken: true, ended: false });
    expect(await broken({ key, fence }, call())).toMatchObject({ broken: true, holder: 'a', ended: true });
    expect(await rawItem(key)).toMatchObject({ lease_version: { S: 'holdfast' }, used: { N: '1' } });
    expect((await failure(broken({ key, fence: 7 }, call()))).code).toBe('NotFound');
  });

  it('a read shows the kind of the key, its holders and its line', async () => {
    const key = 'read';
    expect(await read({ key }, call())).toMatchObject({ kind: 'lease', state: 'free' });
    await acquire({ key, holder: 'a', limit: 1 });
    await park({ key, holder: 'waits', limit: 1 });
    expect(await read({ key, waiters: true }, call())).toMatchObject({
      ...{ kind: 'pool', used: 1, limit: 1, limitBy: 'a', holders: [{ holder: 'a' }], waiting: 1 },
      waiters: [{ holder: 'waits' }],
    });
  });

  it('a cancellation and a withdrawal take a waiter for a permit out of the line', async () => {
    const key = 'cancel';
    const permit = await acquire({ key, holder: 'a', requestId: 'own', limit: 1 });
    const task = await park({ key, holder: 'waits', limit: 1 });
    const [row] = await rows(key);
    expect(await world.cancel(key, row?.ticket?.S ?? '')).toMatchObject({ cancelled: true });
    expect([task.state, await rows(key)]).toEqual(['failed', []]);
    expect(await withdrawn({ key, requestId: 'own', holder: 'a' }, call())).toMatchObject({ cancelled: true });
    expect(await release(permit)).toEqual({ key, released: true });
  });
});

describe('waiters of the other kind', () => {
  /** A third-party client deletes the record under a line, and the next caller makes the key the other kind. */
  const overtaken = async (key: string, own: object, other: object) => {
    await acquire({ key, holder: 'gone', ...own });
    const task = await park({ key, holder: 'waits', ...own });
    await deleteRaw(key);
    return { task, holder: await acquire({ key, holder: 'other', ...other }) };
  };

  it.each([
    ['a lease', {}, { limit: 1 }],
    ['a permit', { limit: 1 }, {}],
  ])('a task for %s fails with WrongKind while the key is held as the other kind', async (name, own, other) => {
    const { task } = await overtaken(`${name}, held`, own, other);
    await repair();
    expect([task.state, task.error]).toEqual(['failed', 'WrongKind']);
    expect(await rows(`${name}, held`)).toEqual([]);
  });

  it.each([
    ['a lease', {}, { limit: 1 }],
    ['a permit', { limit: 1 }, {}],
  ])('a task for %s receives the key at the next run of the schedule after it came free', async (name, own, other) => {
    const key = `${name}, free`;
    const { task, holder } = await overtaken(key, own, other);
    await release(holder);
    expect(task.state).toBe('waiting');
    await repair();
    expect(task.state).toBe('succeeded');
    expect(await rows(key)).toEqual([]);
  });

  it.each([
    ['a lease', {}, { limit: 1 }],
    ['a permit', { limit: 1 }, {}],
  ])(
    'a task for %s whose key has no record receives the key at the next run of the schedule',
    async (name, own, _other) => {
      const key = `${name}, no record`;
      await acquire({ key, holder: 'gone', ...own });
      const task = await park({ key, holder: 'waits', ...own });
      await deleteRaw(key);
      await repair();
      expect(task.state).toBe('succeeded');
    },
  );
});

describe('limits that disagree', () => {
  it('the answer says which limit the grant before had named, and the record remembers who named the last limit', async () => {
    const key = 'limits';
    expect(await acquire({ key, holder: 'a', limit: 2 })).not.toHaveProperty('limitChanged');
    expect(await acquire({ key, holder: 'b', limit: 3 })).toMatchObject({ limitChanged: { from: 2, to: 3 } });
    expect(await acquire({ key, holder: 'c', limit: 3 })).not.toHaveProperty('limitChanged');
    expect(await read({ key }, call())).toMatchObject({ limit: 3, limitBy: 'c' });
  });

  it('a task that is granted its permit in line receives the same', async () => {
    const key = 'limits in line';
    const first = await acquire({ key, holder: 'a', limit: 1 });
    const task = await park({ key, holder: 'b', limit: 2, weight: 2 });
    await release(first);
    expect(task.output).toMatchObject({ limitChanged: { from: 1, to: 2 } });
  });
});

it('a read ends with Unavailable if the key has the other kind each time', async () => {
  const key = 'flips';
  const [pool, lease] = await Promise.all([
    acquire({ key, limit: 1 }).then(() => rawItem(key)),
    acquire({ key: 'a lease' }).then(() => rawItem('a lease')),
  ]);
  let reads = 0;
  requests.faultsOf.GetItem = Array.from({ length: 9 }, () => async (send) => {
    const Item = { ...(reads++ % 2 === 0 ? pool : lease), key: { S: key } };
    await dynamodb.send(new PutItemCommand({ TableName: dependencies.table, Item }));
    return send();
  });
  expect((await failure(read({ key }, call()))).code).toBe('Unavailable');
  expect(reads).toBe(5);
});

describe('the names of keys', () => {
  it('a key as long as DynamoDB takes has a line for permits that name an execution', async () => {
    const key = 'k'.repeat(1024);
    const execution = 'arn:aws:states:us-east-1:123456789012:execution:machine:run';
    await acquire({ key, holder: 'a', limit: 1, execution });
    await park({ key, holder: 'b', limit: 1, execution });
    const line = await rows(key);
    expect(line.map(({ key: own }) => own?.S)).toEqual([key, key]);
    expect(line.filter(({ ticket }) => ticket?.S?.startsWith(EXECUTION_ROW))).toHaveLength(1);
  });

  it('a permit waits for the lease of a third-party client as for an exclusive holder', async () => {
    await dynamodb.send(
      new PutItemCommand({
        TableName: dependencies.table,
        Item: { key: { S: 'crate' }, lease_version: { S: 'da91f8eb' }, lease_expiry: { N: '9999999999' } },
      }),
    );
    const refused = { holder: null, fence: null, used: 1_000_000, holders: [] };
    expect(await failure(acquire({ key: 'crate', limit: 1 }))).toMatchObject({ code: 'LeaseHeld', context: refused });
  });

  it.each([
    ['fence', 'is a text', { fence: { S: '5' }, used: { N: '0' } }],
    ['used', 'is a text', { fence: { N: '5' }, used: { S: '0' } }],
  ])(
    'a pool of a third-party client whose %s %s is refused to calls of both kinds by that name',
    async (name, _, parts) => {
      const key = `strange ${name}`;
      await dynamodb.send(
        new PutItemCommand({
          TableName: dependencies.table,
          Item: { key: { S: key }, lease_version: { S: 'holdfast' }, ...parts },
        }),
      );
      for (const asked of [{}, { limit: 2 }]) {
        const { code, message } = await failure(acquire({ key, ...asked }));
        expect([code, message]).toEqual(['Unavailable', expect.stringContaining(`: an operator must correct ${name}`)]);
      }
    },
  );

  it('a call whose changes of kind are all lost ends with Unavailable', async () => {
    await dynamodb.send(
      new PutItemCommand({
        TableName: dependencies.table,
        Item: { key: { S: 'no fence' }, lease_version: { S: 'holdfast' }, used: { N: '0' } },
      }),
    );
    expect((await failure(acquire({ key: 'no fence' }))).code).toBe('Unavailable');
  });
});
