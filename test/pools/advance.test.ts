import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { poolLineWorld } from '../support/pool-line.ts';

const world = await poolLineWorld();
const { acquire, release, heartbeat, park, grantOf, read, rawItem, rows, clock, requests, steps } = world;
afterAll(() => steps.stop());
beforeEach(() => {
  requests.faultsOf = {};
  requests.sent.length = 0;
});

const queries = () => requests.sent.filter((command) => command === 'Query').length;

/** What happens before the nth UpdateItem from now on arrives. */
const beforeUpdate = (nth: number, what: () => Promise<unknown>) => {
  requests.faultsOf.UpdateItem = [
    ...Array(nth - 1).fill('none'),
    async (send: () => Promise<unknown>) => {
      await what();
      return send();
    },
  ];
};

/** x has expired, y has not, and three tasks are in line for the two places. */
async function crowded(key: string) {
  const x = await acquire({ key, holder: 'x', limit: 2, ttlSeconds: 2 });
  const y = await acquire({ key, holder: 'y', limit: 2, ttlSeconds: 600 });
  const tasks: Awaited<ReturnType<typeof park>>['task'][] = [];
  for (const holder of ['b', 'c', 'd']) tasks.push((await park({ key, holder, limit: 2, ttlSeconds: 600 })).task);
  clock.advance(2501);
  requests.sent.length = 0;
  return { x, y, tasks, states: () => tasks.map(({ state }) => state) };
}

describe('a write of the line that is lost', () => {
  it('to a heartbeat is tried again by the rows that were read', async () => {
    const { x, y, states } = await crowded('extended');
    beforeUpdate(2, () => heartbeat(x));
    await release(y);
    expect([states(), queries()]).toEqual([['succeeded', 'waiting', 'waiting'], 1]);
    expect(await read('extended')).toMatchObject({ used: 2, waiting: 2 });
  });

  it('while somebody comes keeps the mark, and those in line come in in their order', async () => {
    const { x, y, tasks, states } = await crowded('arrival');
    let late: Awaited<ReturnType<typeof park>> | undefined;
    beforeUpdate(2, async () => {
      await heartbeat(x);
      late = await park({ key: 'arrival', holder: 'late', limit: 2, weight: 2 }); // it does not fit, and looks no further
    });
    await release(y);
    expect([states(), late?.task.state, queries()]).toEqual([['succeeded', 'waiting', 'waiting'], 'waiting', 1]);
    expect(await rawItem('arrival')).toHaveProperty('waiters');
    await release(x);
    for (const task of tasks) await release(grantOf(task));
    expect(late?.task.state).toBe('succeeded');
    expect(await rawItem('arrival')).not.toHaveProperty('waiters');
    expect(await rows('arrival')).toEqual([]);
  });

  it('to another call that grants the same permits grants none of them twice', async () => {
    const { x, y, tasks, states } = await crowded('twice');
    await heartbeat(x);
    requests.sent.length = 0;
    beforeUpdate(2, () => release(x));
    await release(y);
    expect(states()).toEqual(['succeeded', 'succeeded', 'waiting']);
    expect(await read('twice')).toMatchObject({ used: 2, waiting: 1 });
    for (const task of tasks) await release(grantOf(task));
    expect(steps.grants).toHaveLength(new Set(steps.grants).size);
    expect(await rawItem('twice')).not.toHaveProperty('waiters');
  });

  it('reads the line again where a permit granted meanwhile has ended, and its request is remembered no more', async () => {
    const key = 'forgotten';
    const [x, y] = [await acquire({ key, holder: 'x', limit: 2 }), await acquire({ key, holder: 'y', limit: 2 })];
    const { task } = await park({ key, holder: 'b', limit: 2, ttlSeconds: 600 });
    beforeUpdate(2, async () => {
      await release(x);
      await release(grantOf(task));
      for (let n = 0; n < 8; n++) await release(await acquire({ key, holder: `other-${n}`, limit: 2 }));
    });
    await release(y);
    expect(await read(key)).toMatchObject({ used: 0, holders: [], waiting: 0 });
    expect(steps.grants.filter((token) => token === task.token)).toHaveLength(1);
    expect(await rawItem(key)).not.toHaveProperty('waiters');
  });

  it('to a caller that passed a removed mark grants no more than the limit has left', async () => {
    const key = 'past the mark';
    const writer = await acquire({ key, holder: 'writer', mode: 'exclusive' });
    const tasks: Awaited<ReturnType<typeof park>>['task'][] = [];
    for (const holder of ['b', 'c', 'd']) tasks.push((await park({ key, holder, limit: 2 })).task);
    beforeUpdate(2, async () => {
      await world.removeMark(key);
      await acquire({ key, holder: 'past', limit: 2 });
    });
    await release(writer);
    expect(tasks.map(({ state }) => state)).toEqual(['succeeded', 'waiting', 'waiting']);
    expect(await read(key)).toMatchObject({ used: 2, waiting: 2 });
  });

  it('reads the line again after a standstill', async () => {
    const { x, y, states } = await crowded('late');
    beforeUpdate(2, async () => {
      await heartbeat(x);
      clock.advance(251);
    });
    await release(y);
    expect([states(), queries()]).toEqual([['succeeded', 'waiting', 'waiting'], 2]);
  });
});

describe('a write of the line that is won', () => {
  it('and ended somebody looks again without a query, unless somebody came', async () => {
    const { y, states } = await crowded('again');
    await release(y);
    expect([states(), queries()]).toEqual([['succeeded', 'succeeded', 'waiting'], 1]);
  });

  it('grants more than five permits by one query', async () => {
    const key = 'many';
    const writer = await acquire({ key, holder: 'writer', mode: 'exclusive' });
    const tasks: Awaited<ReturnType<typeof park>>['task'][] = [];
    for (let n = 0; n < 12; n++) tasks.push((await park({ key, holder: `r${n}`, mode: 'shared' })).task);
    requests.sent.length = 0;
    await release(writer);
    expect(tasks.map(({ state }) => state)).toEqual(Array(12).fill('succeeded'));
    expect(queries()).toBe(1);
    expect(await rawItem(key)).not.toHaveProperty('waiters');
  });
});
