import { UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { afterAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { deleteWaiter } from '../../shared/line/waiters.ts';
import { releasePermit } from '../../shared/permits/release.ts';
import { call } from '../support/emulators/aws.ts';
import { dyingAfter } from '../support/faults/mortal.ts';
import { networkError } from '../support/faults/network.ts';
import { failure } from '../support/worlds/leases.ts';
import { poolLineWorld } from '../support/worlds/permits-in-line.ts';

const world = await poolLineWorld();
const { acquire, release, breakPermit, heartbeat, park, grantOf, read, repairLine, rawItem, rows } = world;
const { clock, requests, steps, dependencies, sent, precededBy, answeredLate, lostAfter } = world;
afterAll(() => steps.stop());
beforeEach(() => {
  requests.faultsOf = {};
  requests.sent.length = 0;
  steps.faults = {};
  steps.onTheWay = async () => {};
  steps.requests.length = 0;
  world.messages.length = 0;
});

type Parked = Awaited<ReturnType<typeof park>>;
type Send = () => Promise<unknown>;

const queries = () => sent('Query');
const told = (action: string) => steps.requests.filter((one) => one.action === action).map(({ token }) => token);
const holders = async (key: string) => (await read(key)).holders.map(({ holder }) => holder);

/** A task for each holder, in this order. */
const parkAll = async (key: string, names: string[], terms: object) => {
  const tasks: Parked['task'][] = [];
  for (const holder of names) tasks.push((await park({ key, holder, ...terms })).task);
  return tasks;
};

/** What happens before the nth UpdateItem from now on arrives. */
const beforeUpdate = (nth: number, what: () => Promise<unknown>) => {
  requests.faultsOf.UpdateItem = [...Array(nth - 1).fill('none'), (send) => what().then(send)];
};

/** x has expired, y has not, and three tasks are in line for the two places. */
async function crowded(key: string) {
  const x = await acquire({ key, holder: 'x', limit: 2, ttlSeconds: 2 });
  const y = await acquire({ key, holder: 'y', limit: 2, ttlSeconds: 600 });
  const tasks = await parkAll(key, ['b', 'c', 'd'], { limit: 2, ttlSeconds: 600 });
  clock.advance(2501);
  requests.sent.length = 0;
  return { x, y, tasks, states: () => tasks.map(({ state }) => state) };
}

describe('a write of the line that is lost', () => {
  it('a write of the line that is lost to a heartbeat is tried again by the rows that were read', async () => {
    const { x, y, states } = await crowded('extended');
    beforeUpdate(2, () => heartbeat(x));
    await release(y);
    expect([states(), queries()]).toEqual([['succeeded', 'waiting', 'waiting'], 1]);
    expect(await read('extended')).toMatchObject({ used: 2, waiting: 2 });
  });

  it('a lost write of the line, after it has ended an overdue task, goes on with the task before', async () => {
    const key = 'over between';
    const x = await acquire({ key, holder: 'x', limit: 2, ttlSeconds: 2 });
    const y = await acquire({ key, holder: 'y', limit: 2 });
    const b = await park({ key, holder: 'b', limit: 2 });
    const over = await park({ key, holder: 'over', limit: 2, parkSeconds: 1 });
    const c = await park({ key, holder: 'c', limit: 2 });
    clock.advance(2501);
    beforeUpdate(2, () => heartbeat(x));
    await release(y);
    expect([b, over, c].map(({ task }) => task.state)).toEqual(['succeeded', 'failed', 'waiting']);
  });

  it('a lost write of the line keeps the mark while a waiter joins, and the waiters in line are served in their order', async () => {
    const { x, y, tasks, states } = await crowded('arrival');
    let late: Awaited<ReturnType<typeof park>> | undefined;
    beforeUpdate(2, async () => {
      await heartbeat(x);
      late = await park({ key: 'arrival', holder: 'late', limit: 2, weight: 2 }); // it does not fit, and looks no further
    });
    await release(y);
    expect([states(), late?.task.state, queries()]).toEqual([['succeeded', 'waiting', 'waiting'], 'waiting', 1]);
    expect(await rawItem('arrival')).toHaveProperty('mark');
    await release(x);
    for (const task of tasks) await release(grantOf(task));
    expect(late?.task.state).toBe('succeeded');
    expect(await rawItem('arrival')).not.toHaveProperty('mark');
    expect(await rows('arrival')).toEqual([]);
  });

  it('a write of the line that is lost to another call that grants the same permits grants none of them twice', async () => {
    const { x, y, tasks, states } = await crowded('twice');
    await heartbeat(x);
    requests.sent.length = 0;
    world.messages.length = 0;
    beforeUpdate(2, () => release(x));
    await release(y);
    expect(states()).toEqual(['succeeded', 'succeeded', 'waiting']);
    expect([sent('UpdateItem'), queries()]).toEqual([4, 2]); // the other call goes on
    expect(world.messages).toMatchObject([{ delaySeconds: 602 }]); // of the call that granted the permits
    expect(await read('twice')).toMatchObject({ used: 2, waiting: 1 });
    for (const task of tasks) await release(grantOf(task));
    expect(steps.grants).toHaveLength(new Set(steps.grants).size);
    expect(await rawItem('twice')).not.toHaveProperty('mark');
  });

  it('a lost write of the line reads the line again if a permit that was granted in between has ended, and its request is no longer remembered', async () => {
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
    expect(await rawItem(key)).not.toHaveProperty('mark');
  });

  it('a lost write of the line reads the line again also if the last holder from before the query holds, and so many others have ended', async () => {
    const key = 'forgotten beside';
    const ask = (holder: string) => acquire({ key, holder, limit: 11 });
    const before: Awaited<ReturnType<typeof ask>>[] = [];
    for (let n = 0; n < 10; n++) before.push(await ask(`before-${n}`));
    const [x, y, ...others] = before;
    if (!x || !y) throw new Error('ten were granted');
    await ask('last');
    const { task } = await park({ key, holder: 'b', limit: 11 });
    beforeUpdate(2, async () => {
      await release(x);
      for (const permit of [grantOf(task), ...others]) await release(permit);
    });
    await release(y);
    expect(told('SendTaskSuccess').filter((token) => token === task.token)).toHaveLength(1);
    expect(await read(key)).toMatchObject({ used: 1, holders: [{ holder: 'last' }], waiting: 0 });
  });

  it('a lost write reads the line of a new pool again if a permit that was granted in between has ended, and its request is no longer remembered', async () => {
    const key = 'new, forgotten';
    const task = steps.newTask();
    beforeUpdate(2, async () => {
      await repairLine(key);
      await release(grantOf(task));
      for (let n = 0; n < 8; n++) await release(await acquire({ key, holder: `other-${n}`, limit: 1 }));
    });
    await park({ key, holder: 'b', limit: 1 }, task);
    expect(told('SendTaskSuccess')).toEqual([task.token]);
    expect(await read(key)).toMatchObject({ used: 0, holders: [], waiting: 0 });
  });

  it('a write of the line that is lost to an arrival at a new pool is tried again by the rows that were read, and then other rows are looked for', async () => {
    const key = 'new, arrival';
    const late = steps.newTask();
    beforeUpdate(2, () => dyingAfter(2, () => park({ key, holder: 'late', limit: 2 }, late)));
    const { task } = await park({ key, holder: 'b', limit: 2 });
    expect([task.state, late.state]).toEqual(['succeeded', 'succeeded']);
    expect([queries(), sent('UpdateItem')]).toEqual([2, 5]); // two marks, the lost write, and a grant for each
  });

  it('a write of the line that is lost to a caller that passed a removed mark grants no more than the limit has left', async () => {
    const key = 'past the mark';
    const writer = await acquire({ key, holder: 'writer', limit: 2, weight: 2 });
    const tasks = await parkAll(key, ['b', 'c', 'd'], { limit: 2 });
    beforeUpdate(2, async () => {
      await world.removeMark(key);
      await acquire({ key, holder: 'past', limit: 2 });
    });
    await release(writer);
    expect(tasks.map(({ state }) => state)).toEqual(['succeeded', 'waiting', 'waiting']);
    expect(await read(key)).toMatchObject({ used: 2, waiting: 2 });
  });

  it('a write of the line that is lost to another call whose grant has ended by then is left to that call', async () => {
    const key = 'given back';
    const [x, y] = [await acquire({ key, holder: 'x', limit: 2 }), await acquire({ key, holder: 'y', limit: 2 })];
    const { task } = await park({ key, holder: 'b', limit: 2, ttlSeconds: 600 });
    requests.sent.length = 0;
    beforeUpdate(2, async () => {
      await release(x);
      await release(grantOf(task));
    });
    await release(y);
    expect([sent('UpdateItem'), queries()]).toEqual([5, 2]);
    expect(await read(key)).toMatchObject({ used: 0, waiting: 0 });
  });

  it('a write of the line that is lost to a call that saw less room is left to that call, which finds room behind its own grants', async () => {
    const key = 'less room';
    const [x, y] = [await acquire({ key, holder: 'x', limit: 3 }), await acquire({ key, holder: 'y', limit: 3 })];
    await acquire({ key, holder: 'z', limit: 3, ttlSeconds: 2 });
    const tasks = await parkAll(key, ['b', 'c', 'd', 'e'], { limit: 3 });
    requests.sent.length = 0;
    const [looked, landed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const first = async (send: Send) => {
      clock.advance(2600); // z expires
      const other = release(y);
      await looked.promise;
      const answer = await send();
      landed.resolve();
      await other;
      return answer;
    };
    const second = precededBy(async () => {
      looked.resolve();
      await landed.promise;
    });
    requests.faultsOf.UpdateItem = ['none', first, 'none', second];
    await release(x);
    expect(tasks.map(({ state }) => state)).toEqual([...Array(3).fill('succeeded'), 'waiting']);
    expect(sent('UpdateItem')).toBe(6); // with one that gives the first task its whole ttl
  });

  it.each([
    [20, 'succeeded', 42],
    [21, 'waiting', 43],
  ])('a write of the line that is lost %i times is tried again twenty times at most', async (times, state, writes) => {
    const { x, y, states } = await crowded(`lost ${times}`);
    const beats = precededBy(async () => {
      await heartbeat(x);
      clock.advance(2501);
    });
    requests.faultsOf.UpdateItem = ['none', ...Array(times).fill(beats)];
    await release(y);
    expect([states(), sent('UpdateItem')]).toEqual([[state, state, 'waiting'], writes]);
  });

  it('a write of the line that is lost too often is tried again by the same run of the schedule', async () => {
    const key = 'schedule';
    const x = await acquire({ key, holder: 'x', limit: 1, ttlSeconds: 2 });
    const { task } = await park({ key, holder: 'b', limit: 1, ttlSeconds: 600 });
    clock.advance(2501);
    const beats = precededBy(async () => {
      await heartbeat(x);
      clock.advance(2501);
    });
    requests.faultsOf.UpdateItem = Array(21).fill(beats);
    expect(await repairLine(key)).toMatchObject({ granted: 1 });
    expect(task.state).toBe('succeeded');
  });

  it('a write of the line that a run of the schedule loses to another call ends the run quietly', async () => {
    const { y, states } = await crowded('quiet');
    beforeUpdate(1, () => release(y));
    expect(await repairLine('quiet')).toMatchObject({ granted: 0 });
    expect(states()).toEqual(['succeeded', 'succeeded', 'waiting']);
  });

  it('a lost write of the line with little time left ends no permit whose room no waiter takes', async () => {
    const key = 'little time';
    const { x, y, states } = await crowded(key);
    let leftMs = 2000;
    beforeUpdate(2, async () => {
      await world.removeMark(key);
      await acquire({ key, holder: 'past', limit: 2 });
      leftMs = 1999;
      requests.sent.length = 0;
    });
    await release(y, call({ timeLeftMs: () => leftMs }));
    expect([states(), requests.sent]).toEqual([Array(3).fill('waiting'), []]);
    expect(await heartbeat(x)).toMatchObject({ holder: 'x' });
  });

  it('a write of the line that is lost to a task that comes to an empty line, and whose call exits, is followed by another look', async () => {
    const key = 'comes and dies';
    const first = await acquire({ key, limit: 1 });
    await park({ key, holder: 'overdue', limit: 1, parkSeconds: 5 });
    clock.advance(6000);
    const task = steps.newTask();
    beforeUpdate(2, () => dyingAfter(2, () => park({ key, holder: 'late', limit: 1 }, task)));
    await release(first);
    expect(task.state).toBe('succeeded');
    expect(await rawItem(key)).not.toHaveProperty('mark');
  });

  it('a lost write of the line, while a held permit is released, notifies the task of another token, and not the task that had the permit', async () => {
    const key = 'stood';
    const terms = { key, limit: 3, ttlSeconds: 600 };
    const x = await acquire({ ...terms, holder: 'x', ttlSeconds: 2 });
    const [y, first] = [await acquire({ ...terms, holder: 'y' }), await acquire({ ...terms, holder: 'first' })];
    const asked = { ...terms, holder: 'b', requestId: 'r' };
    const [had, other] = [await park(asked), await park(asked)];
    const { task } = await park({ ...terms, holder: 'c' });
    steps.faults.SendTaskSuccess = ['lost'];
    await release(first);
    clock.advance(2501);
    beforeUpdate(2, async () => {
      await heartbeat(x);
      requests.faultsOf.Query = ['error500', 'error500', 'error500'];
      await release(grantOf(had.task));
    });
    await release(y);
    expect([had.task.state, task.state]).toEqual(['succeeded', 'succeeded']);
    expect(other.task).toMatchObject({ state: 'failed', error: 'LeaseLost', cause: { reason: 'released' } });
    expect(told('SendTaskFailure')).toEqual([other.task.token]);
  });

  it('a write of the line that is lost because another client wrote an attribute with its own type names that attribute to the next caller', async () => {
    const key = 'foreign';
    const first = await acquire({ key, limit: 1 });
    const { task } = await park({ key, holder: 'b', limit: 1 });
    await dependencies.dynamodb.send(
      new UpdateItemCommand({
        TableName: dependencies.table,
        Key: { key: { S: key } },
        UpdateExpression: 'SET fence = :text',
        ExpressionAttributeValues: { ':text': { S: 'text' } },
      }),
    );
    await release(first);
    requests.sent.length = 0;
    const { code, message } = await failure(acquire({ key, holder: 'c', limit: 1 }));
    expect([code, message]).toEqual(['Unavailable', expect.stringContaining(': an operator must correct fence')]);
    expect([task.state, sent('UpdateItem')]).toEqual(['waiting', 2]);
  });

  it.each([
    [250, 1],
    [251, 2],
  ])('a lost write of the line after a pause of %i ms has read the line %i times', async (ms, times) => {
    const { x, y, states } = await crowded(`late ${ms}`);
    beforeUpdate(2, async () => {
      await heartbeat(x);
      clock.advance(ms);
    });
    await release(y);
    expect([states(), queries()]).toEqual([['succeeded', 'waiting', 'waiting'], times]);
  });
});

describe('a write of the line that is won', () => {
  it('a write of the line that is won and ended a permit looks again without a query, unless a waiter came', async () => {
    const { y, states } = await crowded('again');
    await release(y);
    expect([states(), queries()]).toEqual([['succeeded', 'succeeded', 'waiting'], 1]);
  });

  it('a write of the line that is won grants more than five permits by one query', async () => {
    const key = 'many';
    const writer = await acquire({ key, holder: 'writer', mode: 'exclusive' });
    const tasks = await parkAll(key, [...'abcdefghijkl'], { mode: 'shared' });
    requests.sent.length = 0;
    await release(writer);
    expect(tasks.map(({ state }) => state)).toEqual(Array(12).fill('succeeded'));
    expect([queries(), sent('UpdateItem')]).toEqual([1, 4]); // five, five and two
    expect(await rawItem(key)).not.toHaveProperty('mark');
  });
});

describe('the mark stays for a task that comes', () => {
  it('the mark stays for a task that joins between the look at the line and the grant to the only waiter', async () => {
    const key = 'newcomer';
    const terms = { key, limit: 2, ttlSeconds: 600 };
    const [, y] = [await acquire({ ...terms, holder: 'x' }), await acquire({ ...terms, holder: 'y' })];
    const { task } = await park({ ...terms, holder: 'b' });
    beforeUpdate(2, () => park({ ...terms, holder: 'late', weight: 2 })); // it does not fit, and looks no further
    await release(y);
    expect(task.state).toBe('succeeded');
    expect(await rawItem(key)).toHaveProperty('mark');
  });

  it('the mark stays for a task that joins between the look at the line and the first of two writes that grant', async () => {
    const key = 'two-writes';
    const terms = { key, limit: 10, ttlSeconds: 600 };
    await acquire({ ...terms, holder: 'x' });
    const y = await acquire({ ...terms, holder: 'y', weight: 9 });
    const parked = [];
    for (let n = 0; n < 6; n++) parked.push(await park({ ...terms, holder: `b${n}` }));
    beforeUpdate(2, () => park({ ...terms, holder: 'late', weight: 10 }));
    await release(y);
    expect(parked.map(({ task }) => task.state)).toEqual(Array(6).fill('succeeded'));
    expect(await rawItem(key)).toHaveProperty('mark');
  });
});

/** Marks the record, and leaves nobody in line. */
const leaveMark = async (terms: { key: string; limit: number }) => {
  const { ticket } = await park({ ...terms, holder: 'gone', weight: terms.limit });
  await deleteWaiter(dependencies, { key: terms.key, ticket }, call());
};

describe('the line is looked at again', () => {
  it('the line is looked at again by a break whose first try got no answer, and not by its repeat', async () => {
    const terms = { key: 'unanswered break', limit: 1, ttlSeconds: 600 };
    const { fence } = await acquire({ ...terms, holder: 'x' });
    const { task } = await park({ ...terms, holder: 'b' });
    await park({ ...terms, holder: 'c' });
    requests.faultsOf.UpdateItem = ['lostReply'];
    expect(await breakPermit({ key: terms.key, fence })).toMatchObject({ broken: true });
    expect(task.state).toBe('succeeded');
    requests.sent.length = 0;
    expect(await breakPermit({ key: terms.key, fence })).toMatchObject({ broken: true });
    expect(requests.sent).toEqual(['GetItem']);
  });

  it('the line is looked at again if more permits have expired than one write ends, and the first in line needs the room of all', async () => {
    const terms = { key: 'crowd', limit: 21 };
    for (let n = 0; n < 21; n++) await acquire({ ...terms, holder: `x${n}`, ttlSeconds: 2 });
    const { task } = await park({ ...terms, holder: 'heavy', weight: 21 });
    clock.advance(2600);
    expect((await failure(acquire({ ...terms, holder: 'c' }))).code).toBe('LeaseHeld');
    expect(task.state).toBe('succeeded');
  });
});

describe('a call that meets a line and does not wait', () => {
  it('a call that meets a line and does not wait asks once if there is no room', async () => {
    const terms = { key: 'full', limit: 1, ttlSeconds: 600 };
    await acquire({ ...terms, holder: 'x' });
    await park({ ...terms, holder: 'b' });
    requests.sent.length = 0;
    expect((await failure(acquire({ ...terms, holder: 'c' }))).code).toBe('LeaseHeld');
    expect(requests.sent).toEqual(['UpdateItem']);
  });

  it('a call that meets a line and does not wait looks at the line once if there is room, and no more if the room is too small for the first', async () => {
    const terms = { key: 'heavy first', limit: 3, ttlSeconds: 600 };
    await acquire({ ...terms, holder: 'x', weight: 2 });
    await park({ ...terms, holder: 'heavy', weight: 2 });
    requests.sent.length = 0;
    expect((await failure(acquire({ ...terms, holder: 'light' }))).code).toBe('LeaseHeld');
    expect(requests.sent).toEqual(['UpdateItem', 'Query']);
  });

  it('a call that meets an empty line looks at it once too if a waiter joined before the call asked again', async () => {
    const terms = { key: 'came again', limit: 2, ttlSeconds: 600 };
    await acquire({ ...terms, holder: 'x' });
    await leaveMark(terms);
    requests.faultsOf.UpdateItem = [
      'none', // its own try
      'none', // takes the mark off
      async (send: () => Promise<unknown>) => {
        await park({ ...terms, holder: 'heavy', weight: 2 });
        requests.sent.length = 0;
        return send();
      },
    ];
    expect((await failure(acquire({ ...terms, holder: 'light' }))).code).toBe('LeaseHeld');
    expect(requests.sent).toEqual([]);
  });
});

describe('the permit of a task that was gone', () => {
  /** w and z hold, b is granted and gone, and d is next in line. z expires while the message to b is on its way. */
  async function gone(key: string, next: object = {}) {
    const [x, w, z] = [
      await acquire({ key, holder: 'x', limit: 3, ttlSeconds: 600 }),
      await acquire({ key, holder: 'w', limit: 3, ttlSeconds: 600 }),
      await acquire({ key, holder: 'z', limit: 3, ttlSeconds: 2 }),
    ];
    const b = await park({ key, holder: 'b', limit: 3, ttlSeconds: 600 });
    const d = await park({ key, holder: 'd', limit: 3, ttlSeconds: 600, ...next });
    b.task.state = 'timedOut';
    steps.onTheWay = async (_, token) => {
      if (token === b.task.token) clock.advance(2600);
    };
    return { x, w, z, b, d };
  }

  it('the permit of a task that was gone ends also if the next write is lost to a heartbeat', async () => {
    const key = 'gone, beaten';
    const { x, z, d } = await gone(key);
    beforeUpdate(3, () => heartbeat(z));
    await release(x);
    expect([d.task.state, await holders(key)]).toEqual(['succeeded', ['w', 'z', 'd']]);
  });

  it('the permit of a task that was gone ends also if another call has granted the next in line its permit', async () => {
    const key = 'gone, granted';
    const { x, w, d } = await gone(key);
    beforeUpdate(3, () => release(w));
    await release(x);
    expect([d.task.state, await holders(key)]).toEqual(['succeeded', ['d']]);
    expect(await read(key)).toMatchObject({ used: 1, waiting: 0 });
  });

  it('the permit of a task that was gone ends also if the next in line has had its permit, and others have expired', async () => {
    const key = 'gone, had';
    const { x, d } = await gone(key, { requestId: 'd' });
    beforeUpdate(3, async () => {
      await world.removeMark(key);
      await release(await acquire({ key, holder: 'd', requestId: 'd', limit: 4 }));
    });
    await release(x);
    expect(d.task).toMatchObject({ state: 'failed', error: 'LeaseLost', cause: { reason: 'released' } });
    expect([await holders(key), await rows(key)]).toEqual([['w', 'z'], []]);
  });

  it('the permit of a task that was gone ends with all that come behind it: no task is notified twice', async () => {
    const key = 'gone, once';
    const first = await acquire({ key, limit: 2, weight: 2, ttlSeconds: 600 });
    const tasks = await parkAll(key, ['b', 'c', 'd'], { limit: 2 });
    await park({ key, holder: 'heavy', limit: 2, weight: 2 });
    for (const task of tasks.slice(0, 2)) task.state = 'timedOut';
    requests.sent.length = 0;
    await release(first);
    expect(told('SendTaskSuccess')).toEqual(tasks.map(({ token }) => token));
    expect([queries(), await holders(key)]).toEqual([1, ['d']]);
  });
});

describe('a call that gives room to the line', () => {
  it('a call that gives room to an empty line ends no expired permit, and leaves no hints behind', async () => {
    const key = 'nobody';
    const x = await acquire({ key, holder: 'x', limit: 2, ttlSeconds: 2 });
    const y = await acquire({ key, holder: 'y', limit: 2 });
    await dyingAfter(3, () => acquire({ key, holder: 'b', limit: 2, waitSeconds: 1 })); // it notes its turn
    clock.advance(6000);
    expect(await rawItem(key)).toMatchObject({ mark: {}, next_ticket: {}, arrivals: {} });
    await release(y);
    const item = await rawItem(key);
    for (const name of ['mark', 'next_ticket', 'arrivals']) expect(item).not.toHaveProperty(name);
    expect(await heartbeat(x)).toMatchObject({ holder: 'x' });
  });

  it('a call that gives room to an empty line from a record without a mark writes no record', async () => {
    expect(await repairLine('never heard of')).toMatchObject({ granted: 0 });
    expect(sent('UpdateItem')).toBe(0);
    expect(await rawItem('never heard of')).toBeUndefined();
  });

  it('a call that ended no permit, because the permit had ended before, does not ask about the line', async () => {
    const key = 'ended before';
    const first = await acquire({ key, holder: 'x', limit: 1 });
    const { task } = await park({ key, holder: 'b', limit: 1 });
    await park({ key, holder: 'c', limit: 1 });
    await release(first);
    requests.sent.length = 0;
    expect(await release(first)).toEqual({ key, released: true });
    expect(requests.sent).toEqual(['UpdateItem']);

    const broken: Send = async () => {
      await breakPermit({ key, fence: grantOf(task).fence });
      requests.sent.length = 0;
      throw networkError('ECONNRESET', 'write'); // and the next try is answered
    };
    await park({ key, holder: 'd', limit: 1 });
    requests.faultsOf.UpdateItem = [broken];
    expect(await release(grantOf(task))).toEqual({ key, released: false, reason: 'broken' });
    expect(requests.sent).toEqual(['UpdateItem']);
  });

  it('a call that gives room to the line, and asks for a permit itself, takes what is left', async () => {
    const key = 'left over';
    const first = await acquire({ key, limit: 2, weight: 2 });
    const { task } = await park({ key, holder: 'b', limit: 2 });
    requests.faultsOf.Query = ['error500', 'error500', 'error500'];
    await release(first);
    expect(task.state).toBe('waiting');
    expect(await acquire({ key, holder: 'c', limit: 2 })).toMatchObject({ holder: 'c', used: 2 });
    expect(task.state).toBe('succeeded');
  });

  it('a call that gives room to the line takes a permit itself also if the mark of an empty line has just been removed', async () => {
    const key = 'just gone';
    const first = await acquire({ key, limit: 1 });
    await park({ key, holder: 'overdue', limit: 1, parkSeconds: 5 });
    clock.advance(6000);
    requests.faultsOf.Query = ['error500', 'error500', 'error500'];
    await release(first);
    requests.sent.length = 0;
    beforeUpdate(2, () => world.removeMark(key));
    expect(await acquire({ key, holder: 'c', limit: 1 })).toMatchObject({ holder: 'c', used: 1 });
    expect(sent('UpdateItem')).toBe(4); // with that which removed the mark
  });
});

describe('a task that is granted a permit', () => {
  it('a task that is granted a permit is not notified by a write that was answered late, if a newer token of its request was notified before', async () => {
    const key = 'newer token';
    const asked = { key, holder: 'b', requestId: 'r', limit: 1, ttlSeconds: 60 };
    const first = await acquire({ key, limit: 1 });
    const old = await park(asked);
    const again = steps.newTask();
    requests.faultsOf.UpdateItem = ['none', answeredLate(700), precededBy(() => park(asked, again))];
    expect(await release(first)).toMatchObject({ released: true });
    expect([old.task.state, grantOf(again)]).toMatchObject(['waiting', { repeated: true }]);
    expect(await heartbeat(grantOf(again))).toMatchObject({ holder: 'b' });
  });

  it('a task that is granted a permit beside a permit that is broken before the write is answered is notified', async () => {
    const key = 'broken beside';
    const first = await acquire({ key, limit: 2, weight: 2 });
    const [b, c] = [await park({ key, holder: 'b', limit: 2 }), await park({ key, holder: 'c', limit: 2 })];
    requests.faultsOf.UpdateItem = [
      'none',
      lostAfter(async () => {
        await breakPermit({ key, fence: Number((await read(key)).fence) });
      }),
    ];
    expect(await release(first)).toMatchObject({ released: true });
    expect(b.task).toMatchObject({ state: 'failed', error: 'LeaseLost', cause: { reason: 'broken' } });
    expect(grantOf(c.task)).toMatchObject({ holder: 'c', used: 1 });
  });

  it('a task that is granted a permit, and cannot be notified because of a fault of Holdfast, fails the call that ended a permit', async () => {
    const key = 'own fault';
    const first = await acquire({ key, limit: 1 });
    await park({ key, holder: 'b', limit: 1 });
    const asked = [dependencies.stepFunctions, () => Promise.reject(new TypeError('a fault of our own'))];
    const stepFunctions = () => (asked.shift() ?? dependencies.stepFunctions)();
    const broken = releasePermit({ ...dependencies, stepFunctions });
    await expect(broken(first, call())).rejects.toThrow('a fault of our own');
    expect(await holders(key)).toEqual(['b']);
  });
});

it('a task that was notified, and whose ticket stays, is left to the schedule, with a line in the log', async () => {
  vi.stubEnv('LOG_LEVEL', 'INFO');
  vi.resetModules(); // the logger reads its level when it is loaded
  const fresh = await import('../../shared/permits/release.ts');
  const key = 'log';
  const first = await acquire({ key, limit: 1 });
  const { task } = await park({ key, holder: 'b', limit: 1 });
  requests.faultsOf.DeleteItem = ['error500', 'error500', 'error500'];
  const lines: string[] = [];
  const log = vi.spyOn(process.stdout, 'write').mockImplementation((line) => lines.push(String(line)) > 0);
  const answer = await fresh
    .releasePermit(dependencies)(first, call())
    .finally(() => log.mockRestore());
  vi.unstubAllEnvs();
  vi.resetModules();
  expect([answer, task.state]).toMatchObject([{ released: true }, 'succeeded']);
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { level: 'WARN', message: 'the hand-off of a pool failed: the schedule repeats it', cause: expect.any(String) },
  ]);
});
