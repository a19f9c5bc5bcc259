import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { dyingAfter } from '../support/faults/mortal.ts';
import { counting } from '../support/time/rounds.ts';
import { poolLineWorld } from '../support/worlds/permits-in-line.ts';

// The end of an execution, where others are in line, and where other calls come in between.

const world = await poolLineWorld();
const { acquire, release, heartbeat, park, grantOf, read, rawItem, rows, repairLine, executionEnded } = world;
const { clock, requests, steps, sent, precededBy } = world;
afterAll(() => steps.stop());
beforeEach(() => {
  requests.faultsOf = {};
  requests.sent.length = 0;
  steps.faults = {};
  steps.foreign.clear();
  steps.requests.length = 0;
  steps.onTheWay = async () => {};
});

const asked = () => steps.requests.filter(({ action }) => action === 'DescribeExecution').length;
const holders = async (key: string) => (await read(key)).holders.map(({ holder }) => holder);
const none = { tickets: 0, freed: 0, graced: 0, kept: 0 };
/** A permit of the line of which its task has not heard. */
const untold = async (key: string, terms: object) =>
  world.untold(await acquire({ key, holder: 'first', limit: 1 }), { limit: 1, ...terms });
const NEVER_STARTED = 'arn:aws:states:us-east-1:123456789012:execution:machine:never-started';

describe('the end of an execution that has a permit of which its task has not heard', () => {
  it('ends it and grants it to the next, and not to that task again', async () => {
    const execution = steps.newExecution();
    const dead = await untold('untold', { execution });
    const { task } = await park({ key: 'untold', holder: 'next', limit: 1 });
    expect(await executionEnded(execution)).toEqual({ execution, ...none, tickets: 1, freed: 1 });
    expect([dead.task.state, grantOf(task)]).toMatchObject(['waiting', { holder: 'next', used: 1 }]);
    expect(await rows('untold')).toEqual([]);
  });

  it('ends it and grants it to the next also where another client has removed the mark', async () => {
    const [key, execution] = ['unmarked', steps.newExecution()];
    await untold(key, { execution });
    const { task } = await park({ key, holder: 'next', limit: 1 });
    await world.removeMark(key);
    expect(await executionEnded(execution)).toEqual({ execution, ...none, tickets: 1, freed: 1 });
    expect(grantOf(task)).toMatchObject({ holder: 'next', used: 1 });
  });

  it('deletes its ticket last, wherever the pass dies', async () => {
    for (const calls of counting()) {
      const [key, execution] = [`last ${calls}`, steps.newExecution()];
      await untold(key, { execution });
      const { survived } = await dyingAfter(calls, () => executionEnded(execution));
      const [standing, row] = [(await holders(key)).length, (await rows(key)).length];
      expect([
        [1, 1],
        [0, 1],
        [0, 0],
      ]).toContainEqual([standing, row]);
      if (survived) return;
    }
  });
});

it('the end of an execution looks at the line only where it was in it, and asks about it no more often than it must', async () => {
  const execution = steps.newExecution();
  const [key, other] = ['nobody of it', 'gone'];
  await acquire({ key, limit: 1, execution: steps.newExecution('RUNNING') });
  await park({ key, holder: 'b', limit: 1 });
  await release(await acquire({ key: other, limit: 1, execution }));
  requests.sent.length = 0;
  expect(await executionEnded(execution)).toEqual({ execution, ...none });
  expect([requests.sent, asked()]).toEqual([['Query', 'Query', 'Query', 'GetItem'], 0]);
});

it('twenty permits of an execution end by one write, and more by several', async () => {
  for (const [count, writes] of [
    [20, 1],
    [21, 2],
  ] as const) {
    const [key, execution] = [`crowd of ${count}`, steps.newExecution()];
    const crowd = Array.from({ length: count }, (_, n) => acquire({ key, holder: `h${n}`, limit: 50, execution }));
    await Promise.all(crowd);
    requests.sent.length = 0;
    expect(await executionEnded(execution)).toMatchObject({ freed: count });
    expect([sent('UpdateItem'), await holders(key)]).toEqual([writes, []]);
  }
});

it('the end of an execution ends those who have expired beside its permits, as many as one write can', async () => {
  const [key, execution] = ['expired beside', steps.newExecution()];
  const crowd = Array.from({ length: 19 }, (_, n) => acquire({ key, holder: `h${n}`, limit: 50, execution }));
  await Promise.all(crowd);
  for (const holder of ['x', 'y']) await acquire({ key, holder, limit: 50, ttlSeconds: 2 });
  const { task } = await park({ key, holder: 'next', limit: 50, weight: 50 });
  clock.advance(2600);
  requests.sent.length = 0;
  expect(await executionEnded(execution)).toMatchObject({ freed: 19 });
  expect(grantOf(task)).toMatchObject({ used: 50, previous: { ended: 'expired' } });
  expect(sent('UpdateItem')).toBe(2);
});

it('a permit that has expired and whose execution has ended makes room once, for a writer behind it too', async () => {
  const [key, execution] = ['both', steps.newExecution()];
  await acquire({ key, holder: 'x', limit: 2, ttlSeconds: 2 });
  await acquire({ key, holder: 'y', limit: 2, ttlSeconds: 2, execution });
  const { task } = await park({ key, holder: 'next', mode: 'exclusive' });
  clock.advance(2600);
  expect(await executionEnded(execution)).toMatchObject({ freed: 1 });
  expect(grantOf(task)).toMatchObject({ mode: 'exclusive', previous: { holder: 'y', ended: 'executionEnded' } });
});

describe('the permit of an execution with a target', () => {
  it('names the target alone once it has passed to it, also where its holder extends it meanwhile', async () => {
    const [key, execution, target] = ['passes', steps.newExecution(), steps.newExecution('RUNNING')];
    const permit = await acquire({ key, limit: 1, execution, target });
    clock.advance(1);
    requests.faultsOf.UpdateItem = ['none', precededBy(() => heartbeat(permit))]; // the first is that of the row
    expect(await executionEnded(execution)).toEqual({ execution, ...none, kept: 1 });
    expect(await read(key)).toMatchObject({ holders: [{ execution: target }] });
    const item = Object.entries((await rawItem(key)) ?? {}).find(([name]) => /^h[\w-]{16}$/.test(name));
    expect(item?.[1].M).toMatchObject({ x: { S: target } });
    expect(item?.[1].M).not.toHaveProperty('y');
  });

  it('ends where the target ends meanwhile, and passes on what the target itself has passed on', async () => {
    const [key, execution] = ['chain', steps.newExecution()];
    const [target, last] = [steps.newExecution('RUNNING'), steps.newExecution('RUNNING')];
    await acquire({ key, holder: 'a', limit: 2, execution, target });
    await acquire({ key, holder: 'b', limit: 2, execution: target, target: last });
    requests.faultsOf.UpdateItem = ['none', precededBy(async () => steps.executions.set(target, 'SUCCEEDED'))];
    expect(await executionEnded(execution)).toEqual({ execution, ...none, freed: 1, kept: 1 });
    expect(await read(key)).toMatchObject({ used: 1, holders: [{ holder: 'b', execution: last }] });
  });

  it('stays at the first pass where Step Functions tells nothing about the target, and ends at the second', async () => {
    const [key, execution, target] = ['foreign target', steps.newExecution(), steps.newExecution()];
    await acquire({ key, limit: 1, execution, target });
    steps.foreign.add(target);
    expect(await executionEnded(execution)).toEqual({ execution, ...none, kept: 1 });
    expect(await executionEnded(execution, true)).toEqual({ execution, ...none, freed: 1 });
  });

  it('is found by the second pass, however long before the first it was acquired', async () => {
    const [key, execution] = ['long before', steps.newExecution()];
    await acquire({ key, limit: 1, ttlSeconds: 3600, execution, target: NEVER_STARTED });
    clock.advance(120_000);
    expect(await executionEnded(execution)).toEqual({ execution, ...none, kept: 1 });
    expect(await executionEnded(execution, true)).toEqual({ execution, ...none, freed: 1 });
  });
});

describe('the schedule, where the message about a permit has no answer and its task is gone', () => {
  /** b was told, and the answer was lost. */
  async function lost(key: string, terms: object, next = 1) {
    const first = await acquire({ key, holder: 'first', limit: next, weight: next });
    await park({ key, holder: 'b', limit: next, weight: next, ttlSeconds: 600, ...terms });
    const tasks: Awaited<ReturnType<typeof park>>['task'][] = [];
    for (let n = 0; n < next; n++) tasks.push((await park({ key, holder: `c${n}`, limit: next })).task);
    steps.faults.SendTaskSuccess = ['lost'];
    await release(first);
    clock.advance(10_000);
    return tasks;
  }

  it('ends the permit where the execution has ended, and counts those who come in', async () => {
    const tasks = await lost('counts', { execution: steps.newExecution() }, 2);
    expect(await repairLine('counts')).toEqual({ keys: 1, granted: 2, told: 0, unanswered: 0, complete: true });
    expect(tasks.map(({ state }) => state)).toEqual(['succeeded', 'succeeded']);
  });

  it('counts those who come in where the target of the execution ends meanwhile', async () => {
    const target = steps.newExecution('RUNNING');
    await lost('counts too', { execution: steps.newExecution(), target });
    requests.faultsOf.UpdateItem = [
      'none', // a new version
      'none', // the row of the target
      precededBy(async () => steps.executions.set(target, 'SUCCEEDED')),
    ];
    expect(await repairLine('counts too')).toMatchObject({ granted: 1 });
  });

  it('keeps the permit where Step Functions tells nothing about the execution', async () => {
    const execution = steps.newExecution();
    const tasks = await lost('foreign', { execution });
    steps.foreign.add(execution);
    expect(await repairLine('foreign')).toMatchObject({ granted: 0 });
    expect([tasks[0]?.state, await holders('foreign')]).toEqual(['waiting', ['b']]);
  });

  it('keeps the permit where it names no execution, and asks about none', async () => {
    await lost('unnamed', {});
    expect(await repairLine('unnamed')).toMatchObject({ granted: 0, unanswered: 0 });
    expect([await holders('unnamed'), asked()]).toEqual([['b'], 0]);
  });

  it('keeps the permit where the target of the execution may not have started yet', async () => {
    await lost('unborn', { execution: steps.newExecution(), target: NEVER_STARTED });
    expect(await repairLine('unborn')).toMatchObject({ granted: 0 });
    expect(await holders('unborn')).toEqual(['b']);
  });
});
