import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { queueWorld } from '../support/worlds/line.ts';

const world = await queueWorld();
const { acquire, release, breakLease, park, grantOf, read, rawItem, rows, steps, repair, clock } = world;
afterAll(() => steps.stop());
beforeEach(() => {
  steps.faults = {};
});

describe('a request with a second ticket', () => {
  it('a request that released its lease receives no second lease from the schedule, and its task receives LeaseLost', async () => {
    const key = 'had it';
    const asked = { key, holder: 'task', requestId: 'had it' };
    await release(await acquire(asked));
    steps.faults.SendTaskFailure = ['refused'];
    const { task } = await park(asked);
    expect(task.state).toBe('waiting');
    await repair();
    expect(task).toMatchObject({ state: 'failed', error: 'LeaseLost', cause: { reason: 'released' } });
    expect(await rows(key)).toEqual([]);
    expect(await read({ key })).toMatchObject({ state: 'released' });
  });

  it('a request whose lease was broken receives no second lease from the hand-off, and its other task receives LeaseLost', async () => {
    const key = 'broken';
    const first = await acquire({ key, holder: 'first' });
    const asked = { key, holder: 'task', requestId: 'two tasks' };
    const [one, two] = [await park(asked), await park(asked)];
    await release(first);
    await breakLease(grantOf(one.task));
    expect(two.task).toMatchObject({ state: 'failed', error: 'LeaseLost', cause: { reason: 'broken' } });
    expect(await rows(key)).toEqual([]);
  });

  it('the second task of a request that holds the lease is notified of that lease once the task is overdue, as a repeat', async () => {
    const key = 'overdue';
    const first = await acquire({ key, holder: 'first' });
    const asked = { key, holder: 'task', requestId: 'two tasks', ttlSeconds: 600, parkSeconds: 5 };
    const [one, two] = [await park(asked), await park(asked)];
    await release(first);
    clock.advance(5000);
    await repair();
    const { leaseId } = grantOf(one.task);
    expect(grantOf(two.task)).toMatchObject({ leaseId, repeated: true, remainingMs: 600_000 });
    expect(await rows(key)).toEqual([]);
  });

  it('a lease that a call in line has not claimed yet is not sent to the second task of the request', async () => {
    const key = 'not claimed';
    const first = await acquire({ key, holder: 'first', ttlSeconds: 60 });
    await world.joinLine(key, 'r');
    const { task } = await park({ key, holder: 'caller', requestId: 'r', parkSeconds: 1 });
    clock.advance(999);
    await release(first);
    clock.advance(1);
    await repair();
    expect(await rawItem(key)).toMatchObject({ holder: { S: 'caller' }, claim_ttl_ms: { N: '10000' } });
    expect(task).toMatchObject({ state: 'failed', error: 'LeaseHeld' });
  });

  it('the second task of a request receives the lease if the first task is gone', async () => {
    const key = 'tried again';
    const first = await acquire({ key, holder: 'first' });
    const asked = { key, holder: 'task', requestId: 'tried again' };
    const [old, { task }] = [await park(asked), await park(asked)];
    old.task.state = 'timedOut';
    await release(first);
    expect(grantOf(task)).toMatchObject({ holder: 'task', repeated: false });
  });
});
