import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { queueWorld } from '../support/worlds/line.ts';

const world = await queueWorld();
const { acquire, release, breakLease, park, grantOf, read, rows, steps, repair } = world;
afterAll(() => steps.stop());
beforeEach(() => {
  steps.faults = {};
});

describe('a request with a second ticket', () => {
  it('that had the lease and gave it back is granted no second lease by the schedule: its task receives LeaseLost', async () => {
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

  it('whose lease was broken is granted no second lease by the hand-off: its other task receives LeaseLost', async () => {
    const key = 'broken';
    const first = await acquire({ key, holder: 'first' });
    const asked = { key, holder: 'task', requestId: 'two tasks' };
    const [one, two] = [await park(asked), await park(asked)];
    await release(first);
    await breakLease(grantOf(one.task));
    expect(two.task).toMatchObject({ state: 'failed', error: 'LeaseLost', cause: { reason: 'broken' } });
    expect(await rows(key)).toEqual([]);
  });

  it('whose first task is gone grants the lease to its second task', async () => {
    const key = 'tried again';
    const first = await acquire({ key, holder: 'first' });
    const asked = { key, holder: 'task', requestId: 'tried again' };
    const [old, { task }] = [await park(asked), await park(asked)];
    old.task.state = 'timedOut';
    await release(first);
    expect(grantOf(task)).toMatchObject({ holder: 'task', repeated: false });
  });
});
