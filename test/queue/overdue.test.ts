import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { handOff } from '../../shared/leases/queue/hand-off.ts';
import { readRecord } from '../../shared/leases/queue/record.ts';
import { call } from '../support/aws.ts';
import { queueWorld } from '../support/queue.ts';

const world = await queueWorld();
const { acquire, release, park, grantOf, dependencies, rows, clock, steps } = world;
afterAll(() => steps.stop());
beforeEach(() => {
  steps.requests.length = 0;
  steps.onTheWay = async () => {};
});

const failures = () => steps.requests.filter(({ action }) => action === 'SendTaskFailure');

describe('a call that read the record, stood still, and then meets an overdue task that came since', () => {
  it('names the holder of now', async () => {
    const key = 'held since';
    const before = await acquire({ key, holder: 'before' });
    const record = await readRecord(dependencies, key, call());
    await release(before);
    const { fence } = await acquire({ key, holder: 'now', ttlSeconds: 3600 });
    const { task } = await park({ key, parkSeconds: 1 });
    clock.advance(1001);
    expect(await handOff(dependencies, { record, ending: 'broken' }, call())).toMatchObject({ end: 'overtaken' });
    expect(task).toMatchObject({ state: 'failed', error: 'LeaseHeld', cause: { key, holder: 'now', fence } });
    expect(await rows(key)).toEqual([]);
  });

  it('leaves it alone where it has just received the lease: the call that granted it sends the message', async () => {
    const key = 'granted since';
    const before = await acquire({ key, ttlSeconds: 3600 });
    const record = await readRecord(dependencies, key, call());
    const { task } = await park({ key, parkSeconds: 1, ttlSeconds: 3600 });
    clock.advance(999);
    const ends: string[] = [];
    steps.onTheWay = async (action) => {
      if (action !== 'SendTaskSuccess') return;
      clock.advance(400); // by now its deadline is over
      ends.push((await handOff(dependencies, { record, ending: 'broken' }, call())).end);
    };
    expect(await release(before)).toMatchObject({ released: true });
    expect(ends).toEqual(['overtaken']);
    expect(failures()).toEqual([]);
    expect(grantOf(task).fence).toBeGreaterThan(before.fence);
  });
});
