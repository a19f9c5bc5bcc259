import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { advance } from '../../shared/leases/pools/queue/advance.ts';
import { readPool } from '../../shared/leases/pools/read.ts';
import { call } from '../support/aws.ts';
import { poolLineWorld } from '../support/pool-line.ts';

const world = await poolLineWorld();
const { acquire, release, heartbeat, park, grantOf, dependencies, rows, clock, steps } = world;
afterAll(() => steps.stop());
beforeEach(() => {
  steps.requests.length = 0;
  steps.faults = {};
  steps.onTheWay = async () => {};
});

const failures = () => steps.requests.filter(({ action }) => action === 'SendTaskFailure');

describe('a call that read the record of a pool, stood still, and then meets an overdue task that came since', () => {
  it('names the holders of now', async () => {
    const key = 'held since';
    const before = await acquire({ key, holder: 'before', limit: 1 });
    const record = await readPool(dependencies, key, call());
    await release(before);
    const { fence } = await acquire({ key, holder: 'now', limit: 1, ttlSeconds: 3600 });
    const { task } = await park({ key, limit: 1, parkSeconds: 1 });
    clock.advance(1001);
    await advance(dependencies, { record }, call());
    expect(task).toMatchObject({ state: 'failed', error: 'LeaseHeld', cause: { key, holder: 'now', fence } });
    expect(await rows(key)).toEqual([]);
  });

  it('leaves it alone where it has just received a permit: the call that granted it sends the message', async () => {
    const key = 'granted since';
    const before = await acquire({ key, limit: 1, ttlSeconds: 3600 });
    const record = await readPool(dependencies, key, call());
    const { task } = await park({ key, limit: 1, parkSeconds: 1, ttlSeconds: 3600 });
    clock.advance(999);
    const ends: string[] = [];
    steps.onTheWay = async (action) => {
      if (action !== 'SendTaskSuccess') return;
      clock.advance(400); // by now its deadline is over
      ends.push((await advance(dependencies, { record }, call())).end);
    };
    expect(await release(before)).toMatchObject({ released: true });
    expect(ends).toEqual(['waits']);
    expect(failures()).toEqual([]);
    expect(grantOf(task).fence).toBeGreaterThan(before.fence);
  });

  it('ends it where the permit that it has received since is over', async () => {
    const key = 'over since';
    const before = await acquire({ key, limit: 1, ttlSeconds: 3600 });
    const record = await readPool(dependencies, key, call());
    const { task } = await park({ key, limit: 1, parkSeconds: 1, ttlSeconds: 2 });
    steps.faults.SendTaskSuccess = ['refused', 'refused', 'refused'];
    await release(before);
    clock.advance(2000);
    await advance(dependencies, { record }, call());
    expect(task).toMatchObject({ state: 'failed', error: 'LeaseHeld' });
    expect(await rows(key)).toEqual([]);
  });

  it('clears its row away where it has extended the permit that was over by that record', async () => {
    const key = 'extended since';
    const before = await acquire({ key, limit: 1 });
    const { task } = await park({ key, limit: 1, parkSeconds: 1, ttlSeconds: 2 });
    steps.faults.SendTaskSuccess = ['lost'];
    await release(before);
    clock.advance(2600);
    const record = await readPool(dependencies, key, call());
    await heartbeat(grantOf(task));
    await advance(dependencies, { record }, call());
    expect([task.state, await rows(key)]).toEqual(['succeeded', []]);
    expect(await heartbeat(grantOf(task))).toMatchObject({ holder: 'tester' });
  });
});
