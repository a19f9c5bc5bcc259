import { describe, expect, it, vi } from 'vitest';
import { releaseGrant } from '../../shared/locks/calls/release.ts';
import { call } from '../support/emulators/aws.ts';
import { networkError } from '../support/faults/cuttable.ts';
import { exitingAfter } from '../support/faults/mortal.ts';
import { failure } from '../support/worlds/leases.ts';
import { resetting } from '../support/worlds/line.ts';
import { permitLineWorld } from '../support/worlds/permits-in-line.ts';

const world = await permitLineWorld();
const { acquire, release, breakPermit, heartbeat, park, grantOf, read, repairLine, rawItem, rows } = world;
const { clock, requests, steps, dependencies, sent, precededBy, answeredLate, lostAfter } = world;
resetting(world);

type Parked = Awaited<ReturnType<typeof park>>;
type Send = () => Promise<unknown>;

const queries = () => sent('Query');
const tokensOf = (action: string) => steps.requests.filter((one) => one.action === action).map(({ token }) => token);
const holders = async (key: string) => (await read(key)).holders.map(({ holder }) => holder);

/** A task for each holder, in this order. */
const parkAll = async (key: string, names: string[], terms: object) => {
  const tasks: Parked['task'][] = [];
  for (const holder of names) tasks.push((await park({ key, holder, ...terms })).task);
  return tasks;
};

/** Lets `what` happen just before the nth UpdateItem from now on arrives. */
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

it('a write that is lost to a heartbeat is tried without another query', async () => {
  const { x, y, states } = await crowded('extended');
  beforeUpdate(2, () => heartbeat(x));
  await release(y);
  expect([states(), queries()]).toEqual([['succeeded', 'waiting', 'waiting'], 1]);
  expect(await read('extended')).toMatchObject({ used: 2, waiting: 2 });
});

it('a hand-off that lost its write serves those before the task it ended', async () => {
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

it('a lost write keeps the mark for a waiter that joins', async () => {
  const { x, y, tasks, states } = await crowded('arrival');
  let late: Awaited<ReturnType<typeof park>> | undefined;
  beforeUpdate(2, async () => {
    await heartbeat(x);
    late = await park({ key: 'arrival', holder: 'late', limit: 2, weight: 2 }); // it does not fit, and so does not read the line
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

it('a write that is lost to the same grants grants nothing twice', async () => {
  const { x, y, tasks, states } = await crowded('twice');
  await heartbeat(x);
  requests.sent.length = 0;
  world.messages.length = 0;
  beforeUpdate(2, () => release(x));
  await release(y);
  expect(states()).toEqual(['succeeded', 'succeeded', 'waiting']);
  expect([sent('UpdateItem'), queries()]).toEqual([4, 2]); // the call that won the write goes on with the line
  expect(world.messages).toMatchObject([{ delaySeconds: 602 }]); // sent by the call that granted the permits
  expect(await read('twice')).toMatchObject({ used: 2, waiting: 1 });
  for (const task of tasks) await release(grantOf(task));
  expect(steps.grants).toHaveLength(new Set(steps.grants).size);
  expect(await rawItem('twice')).not.toHaveProperty('mark');
});

it('a lost write reads the line again after a grant that nothing remembers', async () => {
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

it('a lost write reads the line again though the last holder still holds', async () => {
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
  expect(tokensOf('SendTaskSuccess').filter((token) => token === task.token)).toHaveLength(1);
  expect(await read(key)).toMatchObject({ used: 1, holders: [{ holder: 'last' }], waiting: 0 });
});

it('a write that is lost to an arrival reads the line once more', async () => {
  const key = 'new, arrival';
  const late = steps.newTask();
  beforeUpdate(2, () => exitingAfter(2, () => park({ key, holder: 'late', limit: 2 }, late)));
  const { task } = await park({ key, holder: 'b', limit: 2 });
  expect([task.state, late.state]).toEqual(['succeeded', 'succeeded']);
  expect([queries(), sent('UpdateItem')]).toEqual([2, 5]); // two marks, the lost write, and a grant for each
});

it('a lost write grants no more than the limit has left', async () => {
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

it('a call that saw less room finds the rest behind its own grants', async () => {
  const key = 'less room';
  const [x, y] = [await acquire({ key, holder: 'x', limit: 3 }), await acquire({ key, holder: 'y', limit: 3 })];
  await acquire({ key, holder: 'z', limit: 3, ttlSeconds: 2 });
  const tasks = await parkAll(key, ['b', 'c', 'd', 'e'], { limit: 3 });
  requests.sent.length = 0;
  const [hasRead, landed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const first = async (send: Send) => {
    clock.advance(2600); // z expires
    const other = release(y);
    await hasRead.promise;
    const answer = await send();
    landed.resolve();
    await other;
    return answer;
  };
  const second = precededBy(async () => {
    hasRead.resolve();
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
])('a write that is lost %i times is tried twenty times at most', async (times, state, writes) => {
  const { x, y, states } = await crowded(`lost ${times}`);
  const beats = precededBy(async () => {
    await heartbeat(x);
    clock.advance(2501);
  });
  requests.faultsOf.UpdateItem = ['none', ...Array(times).fill(beats)];
  await release(y);
  expect([states(), sent('UpdateItem')]).toEqual([[state, state, 'waiting'], writes]);
});

it('a write that is lost too often is tried by the same run', async () => {
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

it('a run that loses its write to another call ends quietly', async () => {
  const { y, states } = await crowded('quiet');
  beforeUpdate(1, () => release(y));
  expect(await repairLine('quiet')).toMatchObject({ granted: 0 });
  expect(states()).toEqual(['succeeded', 'succeeded', 'waiting']);
});

it('a lost write with little time left does not end a permit', async () => {
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

it.each([
  [250, 1],
  [251, 2],
])('a lost write after %i ms has read the line %i times', async (ms, times) => {
  const { x, y, states } = await crowded(`late ${ms}`);
  beforeUpdate(2, async () => {
    await heartbeat(x);
    clock.advance(ms);
  });
  await release(y);
  expect([states(), queries()]).toEqual([['succeeded', 'waiting', 'waiting'], times]);
});

it('a write that has ended a permit reads the record again without a query', async () => {
  const { y, states } = await crowded('again');
  await release(y);
  expect([states(), queries()]).toEqual([['succeeded', 'succeeded', 'waiting'], 1]);
});

it('a write that is won grants more than five permits by one query', async () => {
  const key = 'many';
  const writer = await acquire({ key, holder: 'writer', mode: 'exclusive' });
  const tasks = await parkAll(key, [...'abcdefghijkl'], { mode: 'shared' });
  requests.sent.length = 0;
  await release(writer);
  expect(tasks.map(({ state }) => state)).toEqual(Array(12).fill('succeeded'));
  expect([queries(), sent('UpdateItem')]).toEqual([1, 4]); // five, five and two
  expect(await rawItem(key)).not.toHaveProperty('mark');
});

it('the mark stays for a task that joins before two writes that grant', async () => {
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

it('the line is read again if one write cannot end all expired permits', async () => {
  const terms = { key: 'crowd', limit: 21 };
  for (let n = 0; n < 21; n++) await acquire({ ...terms, holder: `x${n}`, ttlSeconds: 2 });
  const { task } = await park({ ...terms, holder: 'heavy', weight: 21 });
  clock.advance(2600);
  expect((await failure(acquire({ ...terms, holder: 'c' }))).code).toBe('LeaseHeld');
  expect(task.state).toBe('succeeded');
});

it('a call that meets a full line asks once', async () => {
  const terms = { key: 'full', limit: 1, ttlSeconds: 600 };
  await acquire({ ...terms, holder: 'x' });
  await park({ ...terms, holder: 'b' });
  requests.sent.length = 0;
  expect((await failure(acquire({ ...terms, holder: 'c' }))).code).toBe('LeaseHeld');
  expect(requests.sent).toEqual(['UpdateItem']);
});

it('a call that does not wait reads the record once if there is room', async () => {
  const terms = { key: 'heavy first', limit: 3, ttlSeconds: 600 };
  await acquire({ ...terms, holder: 'x', weight: 2 });
  await park({ ...terms, holder: 'heavy', weight: 2 });
  requests.sent.length = 0;
  expect((await failure(acquire({ ...terms, holder: 'light' }))).code).toBe('LeaseHeld');
  expect(requests.sent).toEqual(['UpdateItem', 'Query']);
});

describe('gone tasks', () => {
  /** w and z hold, b is granted and gone, and d is next. z expires while the message to b is on its way. */
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

  it('the permit of a gone task ends though the next write is lost', async () => {
    const key = 'gone, beaten';
    const { x, z, d } = await gone(key);
    beforeUpdate(3, () => heartbeat(z));
    await release(x);
    expect([d.task.state, await holders(key)]).toEqual(['succeeded', ['w', 'z', 'd']]);
  });

  it('the permit of a gone task ends though another call serves the next', async () => {
    const key = 'gone, granted';
    const { x, w, d } = await gone(key);
    beforeUpdate(3, () => release(w));
    await release(x);
    expect([d.task.state, await holders(key)]).toEqual(['succeeded', ['d']]);
    expect(await read(key)).toMatchObject({ used: 1, waiting: 0 });
  });

  it('the permits of gone tasks end together, and no task is notified twice', async () => {
    const key = 'gone, once';
    const first = await acquire({ key, limit: 2, weight: 2, ttlSeconds: 600 });
    const tasks = await parkAll(key, ['b', 'c', 'd'], { limit: 2 });
    await park({ key, holder: 'heavy', limit: 2, weight: 2 });
    for (const task of tasks.slice(0, 2)) task.state = 'timedOut';
    requests.sent.length = 0;
    await release(first);
    expect(tokensOf('SendTaskSuccess')).toEqual(tasks.map(({ token }) => token));
    expect([queries(), await holders(key)]).toEqual([1, ['d']]);
  });
});

it('a release to an empty line does not end an expired permit', async () => {
  const key = 'nobody';
  const x = await acquire({ key, holder: 'x', limit: 2, ttlSeconds: 2 });
  const y = await acquire({ key, holder: 'y', limit: 2 });
  await exitingAfter(3, () => acquire({ key, holder: 'b', limit: 2, waitSeconds: 1 })); // its row and its mark stay
  clock.advance(6000);
  expect(await rawItem(key)).toMatchObject({ mark: {}, next_ticket: {}, arrivals: {} });
  await release(y);
  const item = await rawItem(key);
  for (const name of ['mark', 'next_ticket', 'arrivals']) expect(item).not.toHaveProperty(name);
  expect(await heartbeat(x)).toMatchObject({ holder: 'x' });
});

it('a repeated release does not ask about the line', async () => {
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

it('a call that hands off, and asks itself, takes what is left', async () => {
  const key = 'left over';
  const first = await acquire({ key, limit: 2, weight: 2 });
  const { task } = await park({ key, holder: 'b', limit: 2 });
  requests.faultsOf.Query = ['error500', 'error500', 'error500'];
  await release(first);
  expect(task.state).toBe('waiting');
  expect(await acquire({ key, holder: 'c', limit: 2 })).toMatchObject({ holder: 'c', used: 2 });
  expect(task.state).toBe('succeeded');
});

it('a late answer does not notify a task after a newer token', async () => {
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

it('a task is notified although a permit beside its own is broken', async () => {
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

it('a fault of Holdfast in a message fails the call that ended a permit', async () => {
  const key = 'own fault';
  const first = await acquire({ key, limit: 1 });
  await park({ key, holder: 'b', limit: 1 });
  const asked = [dependencies.stepFunctions, () => Promise.reject(new TypeError('a fault of our own'))];
  const stepFunctions = () => (asked.shift() ?? dependencies.stepFunctions)();
  const broken = releaseGrant({ ...dependencies, stepFunctions });
  await expect(broken(first, call())).rejects.toThrow('a fault of our own');
  expect(await holders(key)).toEqual(['b']);
});

it('a ticket that stays is left to the schedule, and logged', async () => {
  vi.stubEnv('LOG_LEVEL', 'INFO');
  vi.resetModules(); // the logger reads its level when it is loaded
  const fresh = await import('../../shared/locks/calls/release.ts');
  const key = 'log';
  const first = await acquire({ key, limit: 1 });
  const { task } = await park({ key, holder: 'b', limit: 1 });
  requests.faultsOf.DeleteItem = ['error500', 'error500', 'error500'];
  const lines: string[] = [];
  const log = vi.spyOn(process.stdout, 'write').mockImplementation((line) => lines.push(String(line)) > 0);
  const answer = await fresh
    .releaseGrant(dependencies)(first, call())
    .finally(() => log.mockRestore());
  vi.unstubAllEnvs();
  vi.resetModules();
  expect([answer, task.state]).toMatchObject([{ released: true }, 'succeeded']);
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { level: 'WARN', message: 'the hand-off of a key failed: the schedule repeats it', cause: expect.any(String) },
  ]);
});
