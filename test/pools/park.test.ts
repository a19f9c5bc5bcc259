import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { DEFAULT_QUOTAS } from '../../shared/leases/quotas.ts';
import { call } from '../support/aws.ts';
import { failure } from '../support/leases.ts';
import { networkError } from '../support/network.ts';
import { poolLineWorld } from '../support/pool-line.ts';

const world = await poolLineWorld();
const { acquire, release, breakPermit, heartbeat, read, park, cancel, repairLine, grantOf, rawItem, rows } = world;
const { clock, requests, steps, removeMark } = world;
afterAll(() => steps.stop());
beforeEach(() => {
  requests.faultsOf = {};
  requests.sent.length = 0;
  steps.faults = {};
  steps.requests.length = 0;
});

describe('acquire with a task token', () => {
  it('grants a permit at once where there is room, by SendTaskSuccess with what acquire would answer', async () => {
    const asked = { key: 'room', holder: 'a', limit: 5, weight: 2, ttlSeconds: 30, data: { run: 7 } };
    const { task, parked } = await park(asked);
    expect(parked).toBe(false);
    expect(task.output).toEqual({
      ...{ key: 'room', holder: 'a', fence: clock.now() + 1, data: { run: 7 } },
      leaseId: expect.stringMatching(/^p\./),
      version: expect.any(String),
      acquiredAt: new Date(clock.now()).toISOString(),
      expiresAt: new Date(clock.now() + 30_000).toISOString(),
      remainingMs: 30_000,
      ...{ waitedMs: 0, repeated: false, previous: null },
      ...{ mode: 'shared', limit: 5, weight: 2, used: 2 },
    });
    expect(await rows('room')).toEqual([]);
    expect(await rawItem('room')).not.toHaveProperty('waiters');
    expect(await heartbeat(grantOf(task))).toMatchObject({ holder: 'a' });
    expect(await release(grantOf(task))).toMatchObject({ released: true });
  });

  it('parks where there is none, and releases wake as many as fit, in their order', async () => {
    const key = 'order';
    const holders = [
      await acquire({ key, holder: 'x', limit: 3, weight: 2, ttlSeconds: 60 }),
      await acquire({ key, holder: 'y', limit: 3, ttlSeconds: 60 }),
    ];
    const parked = [];
    for (const holder of ['b', 'c', 'd', 'e']) parked.push(await park({ key, holder, limit: 3, parkSeconds: 600 }));
    expect(parked.map((one) => [one.parked, one.task.state])).toEqual(Array(4).fill([true, 'waiting']));
    expect(await read(key, { waiters: true })).toMatchObject({
      ...{ used: 3, waiting: 4 },
      waiters: ['b', 'c', 'd', 'e'].map((holder) => ({ kind: 'task', holder })),
    });
    clock.advance(5000);
    expect(await release(holders[0] as { key: string; leaseId: string })).toEqual({ key, released: true });
    expect(parked.map(({ task }) => task.state)).toEqual(['succeeded', 'succeeded', 'waiting', 'waiting']);
    const [b, c] = parked.map(({ task }) => task.output as { fence: number; waitedMs: number } | undefined);
    expect(b?.waitedMs).toBeGreaterThan(4990);
    expect(c?.fence).toBe((b?.fence ?? 0) + 1);
    expect(await read(key)).toMatchObject({ used: 3, waiting: 2 });
    for (const one of [holders[1], b, c]) await release(one as unknown as { key: string; leaseId: string });
    expect(parked.map(({ task }) => task.state)).toEqual(Array(4).fill('succeeded'));
    expect(await rows(key)).toEqual([]);
    expect(await rawItem(key)).not.toHaveProperty('waiters');
  });

  it('keeps all others out while the first does not fit, and a writer before later readers', async () => {
    const key = 'writer';
    const reader = await acquire({ key, holder: 'r', mode: 'shared' });
    const writer = await park({ key, holder: 'w', mode: 'exclusive' });
    const late = await park({ key, holder: 'late', mode: 'shared' });
    expect((await failure(acquire({ key, holder: 'q', mode: 'shared' }))).code).toBe('LeaseHeld');
    expect([writer.task.state, late.task.state]).toEqual(['waiting', 'waiting']);
    await release(reader);
    expect([writer.task.state, late.task.state]).toEqual(['succeeded', 'waiting']);
    await release(grantOf(writer.task));
    expect(grantOf(late.task)).toMatchObject({ mode: 'shared', weight: 1 });
  });

  it('takes the places of those who expired', async () => {
    for (const holder of ['x', 'y']) await acquire({ key: 'expired', holder, limit: 2, ttlSeconds: 2 });
    clock.advance(2501);
    expect((await park({ key: 'expired', limit: 2, weight: 2 })).task.state).toBe('succeeded');
    expect(await read('expired')).toMatchObject({ used: 2 });
  });

  it('of a request that has a permit of another weight is refused, and leaves no row', async () => {
    const asked = { key: 'heavier', holder: 'h', limit: 4, requestId: 'r' };
    await park(asked);
    expect(await failure(park({ ...asked, weight: 2 }))).toMatchObject({
      code: 'InvalidRequest',
      context: { issues: [{ path: 'requestId' }] },
    });
    expect(await rows('heavier')).toEqual([]);
    expect(await read('heavier')).toMatchObject({ used: 1 });
  });

  it('of a task that is tried again gives its permit to the new token', async () => {
    const asked = { key: 'again', holder: 'h', limit: 1, requestId: 'r' };
    const first = await park(asked);
    const second = await park(asked);
    expect(grantOf(second.task)).toMatchObject({ leaseId: grantOf(first.task).leaseId, repeated: true });
    await release(grantOf(second.task));
    const third = await park(asked);
    expect(third.task).toMatchObject({
      state: 'failed',
      error: 'LeaseLost',
      cause: { reason: 'released', key: 'again' },
    });
    expect(await rows('again')).toEqual([]);
  });

  it('receives LeaseHeld when its time is over, by the next release or by the schedule', async () => {
    const key = 'overdue';
    const first = await acquire({ key, holder: 'x', limit: 1, ttlSeconds: 600 });
    const early = await park({ key, limit: 1, parkSeconds: 5 });
    const late = await park({ key, limit: 1, parkSeconds: 50 });
    clock.advance(6000);
    await repairLine(key);
    expect(early.task).toMatchObject({ state: 'failed', error: 'LeaseHeld', cause: { key, used: 1, limit: 1 } });
    clock.advance(50_000);
    await release(first);
    expect(late.task).toMatchObject({ state: 'failed', error: 'LeaseHeld' });
    expect(await rows(key)).toEqual([]);
    expect(await rawItem(key)).not.toHaveProperty('waiters');
  });

  it('is refused beyond the quota of the line, with the task ended by the same error', async () => {
    const few = await poolLineWorld({ quotas: { ...DEFAULT_QUOTAS, waitersPerKey: 2 } });
    await few.acquire({ key: 'full', limit: 1 });
    for (const holder of ['b', 'c']) await few.park({ key: 'full', holder, limit: 1 });
    const task = few.steps.newTask();
    const { code, context } = await failure(few.park({ key: 'full', holder: 'd', limit: 1 }, task));
    expect([code, context]).toEqual(['QueueFull', expect.objectContaining({ key: 'full', limit: 2 })]);
    expect(task).toMatchObject({ state: 'failed', error: 'QueueFull', cause: { key: 'full' } });
    expect(await few.rows('full')).toHaveLength(2);
    few.steps.stop();
  });
});

describe('a task that is gone', () => {
  it('is passed over, and its request may ask again', async () => {
    const key = 'gone';
    const first = await acquire({ key, holder: 'x', limit: 1 });
    const asked = { key, holder: 'b', limit: 1, requestId: 'r' };
    const dead = await park(asked);
    const next = await park({ key, holder: 'c', limit: 1 });
    dead.task.state = 'timedOut';
    await release(first);
    expect(grantOf(next.task)).toMatchObject({ holder: 'c', used: 1 });
    await release(grantOf(next.task));
    expect(grantOf((await park(asked)).task)).toMatchObject({ holder: 'b' });
  });

  it('ten of them are passed by one call, and the next call goes on', async () => {
    const key = 'many gone';
    const first = await acquire({ key, holder: 'x', limit: 1 });
    const dead = [];
    for (let nth = 0; nth < 10; nth++) dead.push(await park({ key, holder: `d${nth}`, limit: 1 }));
    const next = await park({ key, holder: 'c', limit: 1 });
    for (const { task } of dead) task.state = 'timedOut';
    await release(first);
    expect(next.task.state).toBe('waiting');
    expect(await read(key)).toMatchObject({ used: 0 });
    await repairLine(key);
    expect(grantOf(next.task)).toMatchObject({ holder: 'c' });
  });
});

describe('an answer that is lost', () => {
  it('of the message to the task: the schedule renews the permit, and tells it again', async () => {
    const key = 'told';
    const first = await acquire({ key, holder: 'x', limit: 1, ttlSeconds: 60 });
    const { task } = await park({ key, holder: 'b', limit: 1, ttlSeconds: 60 });
    steps.faults.SendTaskSuccess = ['refused'];
    await release(first);
    expect(task.state).toBe('waiting');
    expect(await read(key, { waiters: true })).toMatchObject({ used: 1, waiting: 0, waiters: [] });
    await repairLine(key);
    expect(task.state).toBe('waiting'); // the call that granted it may still tell it
    clock.advance(10_000);
    await repairLine(key);
    expect(grantOf(task)).toMatchObject({ holder: 'b', remainingMs: 60_000 });
    expect(await rows(key)).toEqual([]);
  });

  it('of a message that has landed: the permit stays', async () => {
    const key = 'told twice';
    const first = await acquire({ key, holder: 'x', limit: 1, ttlSeconds: 60 });
    const { task } = await park({ key, holder: 'b', limit: 1, ttlSeconds: 60 });
    steps.faults.SendTaskSuccess = ['lost'];
    await release(first);
    clock.advance(10_000);
    await repairLine(key);
    expect(await read(key)).toMatchObject({ used: 1, holders: [{ holder: 'b' }] });
    expect((await release(grantOf(task))).released).toBe(true);
  });

  it('of the write that grants: the grant is told all the same, once', async () => {
    const key = 'lost grant';
    const first = await acquire({ key, holder: 'x', limit: 1 });
    const { task } = await park({ key, holder: 'b', limit: 1 });
    requests.faultsOf.UpdateItem = ['none', 'lostReply']; // the release, and the grant
    await release(first);
    expect(grantOf(task)).toMatchObject({ holder: 'b', used: 1 });
    expect(steps.grants.filter((token) => token === task.token)).toHaveLength(1);
    expect(await rows(key)).toEqual([]);
  });

  it('of the write that grants, and the task came again before the next try: the permit of its new token stays', async () => {
    const key = 'lost grant, new token';
    const asked = { key, holder: 'b', requestId: 'tried-twice', limit: 1, ttlSeconds: 60 };
    const first = await acquire({ key, holder: 'x', limit: 1 });
    const old = await park(asked);
    old.task.state = 'timedOut';
    const again = steps.newTask();
    requests.faultsOf.UpdateItem = [
      'none', // the release
      async (send) => {
        await send();
        await park(asked, again);
        throw networkError('ECONNRESET', 'read');
      },
    ];
    await release(first);
    const grant = grantOf(again);
    expect(grant).toMatchObject({ holder: 'b', repeated: true });
    expect(await read(key)).toMatchObject({ used: 1, holders: [{ fence: grant.fence }] });
    expect(await release(grant)).toMatchObject({ released: true });
    await repairLine(key);
    expect(await rows(key)).toEqual([]);
  });

  it('of a call that died after its row: the schedule marks the record and grants', async () => {
    const key = 'died';
    const first = await acquire({ key, holder: 'x', limit: 1, ttlSeconds: 60 });
    const { task } = await park({ key, holder: 'b', limit: 1 });
    await removeMark(key);
    await repairLine(key);
    expect(await rawItem(key)).toHaveProperty('waiters');
    await removeMark(key);
    await release(first); // knows of nobody
    expect(task.state).toBe('waiting');
    await repairLine(key);
    expect(grantOf(task)).toMatchObject({ holder: 'b' });
  });

  it('of a release that died before it looked at the line: its repeat looks', async () => {
    const key = 'repeat';
    const first = await acquire({ key, holder: 'x', limit: 1, ttlSeconds: 60 });
    const { task } = await park({ key, holder: 'b', limit: 1 });
    requests.faultsOf.Query = ['error500', 'error500', 'error500'];
    expect(await release(first)).toEqual({ key, released: true });
    expect(task.state).toBe('waiting');
    expect(await read(key)).toMatchObject({ used: 0, waiting: 1 });
    expect((await failure(acquire({ key, holder: 'c', limit: 1 }))).code).toBe('LeaseHeld'); // and gives to the line
    expect(grantOf(task)).toMatchObject({ holder: 'b' });
  });
});

describe('operators', () => {
  it('cancel a ticket: its task fails, and those behind it come in', async () => {
    const key = 'cancel';
    const first = await acquire({ key, holder: 'x', limit: 3 });
    const heavy = await park({ key, holder: 'heavy', limit: 3, weight: 3 });
    const light = await park({ key, holder: 'light', limit: 3 });
    expect(await cancel(key, heavy.ticket)).toEqual({ key, ticket: heavy.ticket, cancelled: true });
    expect(heavy.task).toMatchObject({ state: 'failed', error: 'LeaseLost', cause: { reason: 'cancelled', key } });
    expect(grantOf(light.task)).toMatchObject({ used: 2 });
    expect(await cancel(key, heavy.ticket)).toMatchObject({ cancelled: false, reason: 'unknown' });
    expect(await cancel(key, light.ticket)).toMatchObject({ cancelled: false, reason: 'granted' });
    await release(first);
  });

  it('break a permit of which its task has not heard: the task learns so', async () => {
    const key = 'break';
    const first = await acquire({ key, holder: 'x', limit: 1 });
    const { task } = await park({ key, holder: 'b', limit: 1 });
    steps.faults.SendTaskSuccess = ['refused'];
    await release(first);
    const { holders } = await read(key);
    expect(await breakPermit({ key, fence: holders[0]?.fence ?? 0 })).toMatchObject({ broken: true, holder: 'b' });
    expect(task).toMatchObject({ state: 'failed', error: 'LeaseLost', cause: { reason: 'broken' } });
    expect(await rows(key)).toEqual([]);
  });
});

it('a heartbeat by a clock that is behind shortens no permit of which its task was told again by that clock', async () => {
  const asked = { key: 'behind', holder: 'h', limit: 1, requestId: 'r', ttlSeconds: 30 };
  await park(asked);
  clock.advance(-400);
  const again = grantOf((await park(asked)).task);
  clock.advance(10);
  expect((await heartbeat(again)).expiresAt).toBe(again.expiresAt);
  clock.advance(400);
  expect((await heartbeat(again)).expiresAt).toBe(new Date(clock.now() + 30_000).toISOString());
});

it('tells tasks of a namespace the key as they wrote it', async () => {
  const task = steps.newTask();
  const as = call({ namespace: 'team-a' });
  const { permitAcquirerOrParker } = await import('../../shared/leases/pools/acquire-or-park.ts');
  const asked = { key: 'team-a/render', holder: 'h', limit: 1, ttlSeconds: 60, waitSeconds: 0, taskToken: task.token };
  await permitAcquirerOrParker(world.dependencies)(asked, as);
  expect(task.output).toMatchObject({ key: 'render', used: 1 });
});
