import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { lineKeyOf } from '../../shared/line/waiters.ts';
import { failure } from '../support/worlds/leases.ts';
import { poolLineWorld } from '../support/worlds/permits-in-line.ts';

const world = await poolLineWorld();
const { acquire, release, park, read, repair, putTickets, callerRow, rawItem, rows, clock, sent, steps } = world;
afterAll(() => steps.stop());
beforeEach(() => {
  world.requests.sent.length = 0;
});

/** Rows of callers that gave up, whose places are over from this moment on. */
const over = (key: string, count: number) =>
  Array.from({ length: count }, (_, index) =>
    callerRow(lineKeyOf(key), `over ${String(index).padStart(5, '0')}`, {
      deadline: { N: '1' },
      keep_until: { N: String(clock.now()) },
      weight: { N: '1' },
      limit: { N: '1' },
    }),
  );

describe('a pile of rows of callers that are over, in the line of a pool', () => {
  it('goes by one run of the schedule, behind holders that go on', async () => {
    const key = 'goes at once';
    await acquire({ key, limit: 1, ttlSeconds: 600 });
    await park({ key, limit: 1 });
    await putTickets(over(key, 450));
    await repair();
    expect(await rows(key)).toHaveLength(1);
  });

  it('of 818 rows: a release passes them, and grants the permit to the task behind', async () => {
    const key = 'passed';
    const permit = await acquire({ key, limit: 1 });
    const { task } = await park({ key, limit: 1 });
    await putTickets(over(key, 818));
    await release(permit);
    expect(task.state).toBe('succeeded');
  });

  it('of 819 rows and more: a release stops there, the line keeps its mark, and the schedule gives the task behind its turn', async () => {
    const key = 'stops';
    const permit = await acquire({ key, limit: 1 });
    const { task } = await park({ key, limit: 1 });
    await putTickets(over(key, 850));
    world.requests.sent.length = 0;
    await release(permit);
    expect(sent('Query')).toBe(6);
    expect(await rawItem(key)).toHaveProperty('waiters');
    expect(task.state).toBe('waiting');

    expect(await failure(acquire({ key, limit: 1, holder: 'barger' }))).toMatchObject({ code: 'LeaseHeld' });
    expect(await park({ key, limit: 1 })).toMatchObject({ parked: true });
    await repair();
    expect(task.state).toBe('succeeded');
    expect(await rows(key)).toHaveLength(1);
  });

  it('ends the count of those who wait, for a reader and for a call that leaves', async () => {
    const key = 'counted';
    await acquire({ key, limit: 1, ttlSeconds: 600 });
    await park({ key, limit: 1 });
    await putTickets(over(key, 450));
    expect(await read(key)).toMatchObject({ waiting: 0 });
    const left = await failure(acquire({ key, limit: 1, holder: 'leaves', waitSeconds: 1 }));
    expect(left).toMatchObject({ code: 'LeaseHeld', context: { waiting: 0, place: 1 } });
    await repair();
    expect(await read(key)).toMatchObject({ waiting: 1 });
  });
});
