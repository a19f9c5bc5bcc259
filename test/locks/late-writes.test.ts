import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { acquire as acquireKey } from '../../shared/locks/acquire.ts';
import { breakGrant } from '../../shared/locks/break.ts';
import { heartbeat as extend } from '../../shared/locks/heartbeat.ts';
import { acquireInput } from '../../shared/locks/inputs.ts';
import { release as giveBack } from '../../shared/locks/release.ts';
import { withdrawOwnRequest } from '../../shared/locks/withdraw.ts';
import { call, type Fault } from '../support/emulators/aws.ts';
import { networkError } from '../support/faults/network.ts';
import { failure } from '../support/worlds/leases.ts';
import { queueWorld } from '../support/worlds/line.ts';
import { rawPools } from '../support/worlds/permits.ts';

// Each condition of a write on a key whose kind may change (docs/protocols/kinds.md): what happens if the write arrives late.

const world = await queueWorld();
afterAll(() => world.steps.stop());
const { dependencies, clock, dynamodb, requests, steps } = world;
const { rawItem, deleteRaw, setRaw } = rawPools(dynamodb, dependencies.table);
const heartbeat = extend(dependencies);
const breakByFence = breakGrant(dependencies);
const withdraw = withdrawOwnRequest(dependencies);

const ask = (asked: object) => acquireKey(dependencies)(acquireInput().parse({ holder: 'tester', ...asked }), call());
const acquire = async (asked: object) => {
  const answer = await ask(asked);
  if ('parked' in answer) throw new Error('this call parks no task');
  return answer;
};
const release = ({ key, leaseId }: { key: string; leaseId: string }) =>
  giveBack(dependencies)({ key, leaseId }, call());

beforeEach(() => {
  requests.faults = [];
  requests.faultsOf = {};
  clock.advance(60_000);
});

/** The write is under way while something happens. */
const meanwhile =
  (what: () => Promise<unknown>): Fault =>
  async (send) => {
    const { faultsOf } = requests;
    requests.faultsOf = {};
    await what();
    requests.faultsOf = faultsOf;
    return send();
  };

describe('a write that makes a key a pool', () => {
  it('a write that makes a key a pool arrives after another lease has come and gone, and the fences rise', async () => {
    const key = 'pool after a lease';
    await release(await acquire({ key }));
    let between = 0;
    const next = meanwhile(async () => {
      for (let nth = 0; nth < 3; nth++) {
        const lease = await acquire({ key });
        between = lease.fence;
        await release(lease);
      }
    });
    requests.faultsOf.PutItem = [next];
    expect((await acquire({ key, limit: 1 })).fence).toBeGreaterThan(between);
  });

  it('a write that makes a key a pool arrives after the holder has extended its expired lease, and is refused', async () => {
    const key = 'pool after a heartbeat';
    const lease = await acquire({ key, ttlSeconds: 2 });
    clock.advance(2501);
    requests.faultsOf.UpdateItem = ['none', meanwhile(() => heartbeat({ key, leaseId: lease.leaseId }, call()))];
    expect((await failure(acquire({ key, holder: 'late', limit: 1 }))).code).toBe('WrongKind');
    expect(await heartbeat({ key, leaseId: lease.leaseId }, call())).toMatchObject({ fence: lease.fence });
  });

  it('a write that makes a key a pool arrives after a call has marked the lease, and the line is handed off first', async () => {
    const key = 'pool after a mark';
    await acquire({ key, ttlSeconds: 2 });
    clock.advance(2501);
    const marked = meanwhile(async () => {
      await setRaw(key, 'waiters', { N: '1' });
      requests.sent.length = 0;
    });
    requests.faultsOf.UpdateItem = ['none', marked];
    await acquire({ key, holder: 'late', limit: 1 });
    expect(requests.sent).toContain('Query');
    expect(await rawItem(key)).not.toHaveProperty('waiters');
  });
});

describe('a write that makes a key a lease again', () => {
  /** An empty pool, while a plain call dissolves it, and what has happened before the write arrives. */
  const dissolving = async (key: string, what: () => Promise<unknown>) => {
    await release(await acquire({ key, limit: 2 }));
    // The first PutItem is the try of the lease.
    requests.faultsOf.PutItem = ['none', meanwhile(what)];
  };

  it('a write that makes a key a lease again arrives after a permit was granted, and is refused', async () => {
    const key = 'lease after a permit';
    await dissolving(key, () => acquire({ key, holder: 'in', limit: 2 }));
    expect(await failure(acquire({ key }))).toMatchObject({ code: 'WrongKind', context: { holder: 'in' } });
    expect(await rawItem(key)).toMatchObject({ lease_version: { S: 'holdfast' }, used: { N: '1' } });
  });

  it('a write that makes a key a lease again arrives after another permit has come and gone, and the fences rise', async () => {
    const key = 'lease after a released permit';
    let between = 0;
    await dissolving(key, async () => {
      const permit = await acquire({ key, limit: 2 });
      between = permit.fence;
      await release(permit);
    });
    expect((await acquire({ key })).fence).toBeGreaterThan(between);
  });

  it('a write that makes a key a lease again arrives after a call has marked the pool, and the mark is handed off first', async () => {
    const key = 'lease after a mark';
    await dissolving(key, () => setRaw(key, 'mark', { S: 'm' }));
    const puts = requests.sent.length;
    await acquire({ key });
    // The mark is looked after before the next try: a look at the line, and a write that clears the mark.
    expect(requests.sent.slice(puts)).toContain('Query');
  });
});

describe('a mark of the line', () => {
  it('a mark of a pool that arrives after the key became a lease marks no lease', async () => {
    const key = 'late mark of a pool';
    await acquire({ key, holder: 'gone', limit: 1 });
    const becomesLease = meanwhile(async () => {
      await deleteRaw(key);
      await acquire({ key, holder: 'lease' });
    });
    requests.faultsOf.UpdateItem = [becomesLease];
    const { token } = steps.newTask();
    expect((await failure(ask({ key, holder: 'waits', limit: 1, taskToken: token }))).code).toBe('WrongKind');
    expect(await rawItem(key)).not.toHaveProperty('waiters');
  });

  it('a mark of a lease that arrives after the key became a pool marks no pool', async () => {
    const key = 'late mark of a lease';
    await acquire({ key, holder: 'gone' });
    let pool: object | undefined;
    const becomesPool = meanwhile(async () => {
      await deleteRaw(key);
      await acquire({ key, holder: 'permit', limit: 1 });
      pool = await rawItem(key);
    });
    requests.faultsOf.UpdateItem = [becomesPool];
    const { token } = steps.newTask();
    expect((await failure(ask({ key, holder: 'waits', taskToken: token }))).code).toBe('WrongKind');
    expect(await rawItem(key)).toEqual(pool);
  });
});

describe('a permit', () => {
  it('a permit of a late try is not granted after the key was a lease and became a pool again', async () => {
    const key = 'try of an earlier pool';
    const first = await acquire({ key, holder: 'first', limit: 2 });
    clock.advance(60_501);
    const asked = { key, holder: 'a', requestId: 'r', limit: 2 };
    let since = 0;
    const ended = meanwhile(async () => {
      await release(await acquire(asked));
      await release(await acquire({ key }));
      since = (await acquire({ key, holder: 'other', limit: 2 })).fence;
      requests.sent.length = 0;
    });
    requests.faultsOf.UpdateItem = [ended];
    await acquire(asked);
    expect(since).toBeGreaterThan(first.fence);
    // The try is refused. The write after the look grants the permit.
    expect(requests.sent.filter((command) => command === 'UpdateItem')).toHaveLength(1);
  });
});

it('a break by the fence of the last grant leaves the record a pool', async () => {
  const key = 'break of the last';
  await acquire({ key, holder: 'a', limit: 2 });
  const { fence } = await acquire({ key, holder: 'b', limit: 2 });
  expect(await breakByFence({ key, fence, wait: false }, call())).toMatchObject({ broken: true, holder: 'b' });
  expect(await rawItem(key)).toMatchObject({ lease_version: { S: 'holdfast' }, used: { N: '1' } });
});

describe('a write without an answer, after which the key changes its kind', () => {
  /** The write lands, its answer is lost, and another caller makes the key the other kind before the next try. */
  const landedBefore =
    (what: () => Promise<unknown>): Fault =>
    async (send) => {
      await send();
      const { faultsOf } = requests;
      requests.faultsOf = {};
      await what();
      requests.faultsOf = faultsOf;
      throw networkError('ECONNRESET', 'read');
    };

  it.each([
    ['a lease', {}, { limit: 1 }],
    ['a permit', { limit: 1 }, {}],
  ])(
    'a break of %s whose write has no answer is in doubt after a change of kind, and does not answer NotFound',
    async (name, own, other) => {
      const key = `break of ${name}`;
      const { fence } = await acquire({ key, ...own });
      requests.faultsOf.UpdateItem = [landedBefore(() => acquire({ key, holder: 'other', ...other }))];
      expect(await failure(breakByFence({ key, fence }, call()))).toMatchObject({ code: 'OutcomeUnknown' });
    },
  );

  it('a withdrawal of a lease is in doubt, although its next read shows a pool without the request', async () => {
    const key = 'withdrawal';
    const asked = { key, holder: 'tester', requestId: 'r' };
    await acquire(asked);
    let other = { key, leaseId: '' };
    requests.faultsOf.UpdateItem = [
      landedBefore(async () => {
        other = await acquire({ key, holder: 'other' });
      }),
    ];
    const becomesPool = meanwhile(async () => {
      await release(other);
      await acquire({ key, holder: 'other', limit: 1 });
    });
    requests.faultsOf.GetItem = ['none', becomesPool];
    expect(await failure(withdraw(asked, call()))).toMatchObject({ code: 'OutcomeUnknown', context: { key } });
  });

  it('a release of a lease answers that the end is unknown, and not that another caller took the lease', async () => {
    const key = 'release';
    const lease = await acquire({ key });
    requests.faultsOf.UpdateItem = [landedBefore(() => acquire({ key, holder: 'other', limit: 1 }))];
    expect(await release(lease)).toEqual({ key, released: false, reason: 'unknown' });
  });
});
