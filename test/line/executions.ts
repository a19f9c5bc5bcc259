import { beforeEach, expect, it } from 'vitest';
import { freeEndedExecution } from '../../shared/locks/executions/ended.ts';
import { call } from '../support/emulators/aws.ts';
import type { Task } from '../support/emulators/step-functions.ts';
import { exitingAfter } from '../support/faults/mortal.ts';
import { counting } from '../support/time/rounds.ts';
import { failure } from '../support/worlds/leases.ts';
import type { LineWorld } from './world.ts';

const NEVER_STARTED = 'arn:aws:states:us-east-1:123456789012:execution:machine:never-started';
const OWN = { home: 'aws:us-east-1:123456789012' };
const none = { tickets: 0, freed: 0, graced: 0, kept: 0 };

/** The end of an execution takes its waiters out of the line, and ends its grants. */
export async function executions(lineWorld: LineWorld) {
  const world = await lineWorld();
  const { acquire, heartbeat, release, park, cancel, grantOf, executionEnded, see, rows, isMarked } = world;
  const { repair, precededBy, putTickets, callerRow, dependencies, requests, steps, newKey, timeline } = world;
  beforeEach(() => {
    steps.onTheWay = async () => {};
    steps.foreign.clear();
  });
  const asked = () => steps.requests.filter(({ action }) => action === 'DescribeExecution').length;
  /** Step Functions continues an execution that has ended. */
  const redrive = (execution: string) => steps.redrive(execution);
  /** A lock of an execution, with a task behind. */
  async function held(more: object = {}) {
    const [key, execution] = [newKey(), steps.newExecution()];
    const grant = await acquire({ key, execution, ttlSeconds: 60, ...more });
    return { key, execution, grant, task: (await park({ key, holder: 'next' })).task };
  }
  /** A task has the lock from the line, and was not notified. */
  async function unnotified() {
    const [key, execution] = [newKey(), steps.newExecution()];
    const request = { key, requestId: 'r', execution, ttlSeconds: 60 };
    const first = await acquire({ key, holder: 'first' });
    const { task } = await park(request);
    steps.faults.SendTaskSuccess = ['refused', 'refused', 'refused'];
    await release(first);
    steps.faults = {};
    expect([task.state, await rows(key)]).toMatchObject(['waiting', [{}]]);
    return { key, execution, asked: request, task };
  }

  it('a lock goes to the next task when its execution ends, or is free', async () => {
    const { key, execution, task } = await held();
    const alone = newKey();
    await acquire({ key: alone, execution });
    expect(await executionEnded(execution)).toEqual({ execution, ...none, freed: 2 });
    expect(grantOf(task)).toMatchObject({ previous: { holder: 'tester', ended: 'executionEnded' } });
    expect([await see(key), await see(alone)]).toMatchObject([{ holder: 'next' }, { holder: undefined }]);
    steps.requests.length = 0;
    expect(await executionEnded(execution, true)).toEqual({ execution, ...none });
    expect(asked()).toBe(0);
  });

  it('a waiter leaves the line when its execution ends', async () => {
    const [key, execution] = [newKey(), steps.newExecution()];
    const first = await acquire({ key, holder: 'first' });
    (await park({ key, execution })).task.state = 'timedOut';
    expect(await executionEnded(execution)).toEqual({ execution, ...none, tickets: 1 });
    expect(await rows(key)).toEqual([]);
    expect(await see(key)).toMatchObject({ holder: 'first', waiting: 0 });
    expect(await release(first)).toMatchObject({ released: true });
    expect(await isMarked(key)).toBe(false);
  });

  it('neither pass of a late event takes what a redriven execution has', async () => {
    const [execution, key, waiting] = [steps.newExecution('RUNNING'), newKey(), newKey()];
    redrive(execution);
    await acquire({ key, execution });
    await acquire({ key: waiting });
    await park({ key: waiting, execution });
    for (const again of [false, true]) {
      expect(await executionEnded(execution, again)).toEqual({ execution, ...none });
      expect([await see(key), await rows(waiting)]).toMatchObject([{ holder: 'tester' }, [{}]]);
    }
    steps.executions.set(execution, 'FAILED');
    expect(await executionEnded(execution)).toMatchObject({ tickets: 1, freed: 1 });
  });

  it('a lock that has another holder since does not cost a question', async () => {
    const [key, execution] = [newKey(), steps.newExecution()];
    const before = await acquire({ key, execution });
    requests.faultsOf.GetItem = [
      precededBy(async () => {
        await release(before);
        await acquire({ key, holder: 'another', execution: steps.newExecution('RUNNING') });
      }),
    ];
    steps.requests.length = 0;
    expect(await executionEnded(execution)).toMatchObject({ freed: 0 });
    expect([await see(key), asked(), requests.faultsOf.GetItem]).toMatchObject([{ holder: 'another' }, 0, []]);
  });

  it('a heartbeat that comes between does not keep the lock from the next waiter', async () => {
    const { execution, grant, task } = await held();
    timeline.advance(1);
    requests.faultsOf.Query = ['none', 'none', precededBy(() => heartbeat(grant))]; // the read of the line
    expect(await executionEnded(execution)).toMatchObject({ freed: 1 });
    expect([requests.faultsOf.Query, task.state]).toEqual([[], 'succeeded']);
  });

  it('a task that joins just before the grant ends is served', async () => {
    const [key, execution] = [newKey(), steps.newExecution()];
    await acquire({ key, execution, ttlSeconds: 60 });
    const parked: Task[] = [];
    requests.faultsOf.UpdateItem = [precededBy(async () => parked.push((await park({ key })).task))];
    expect(await executionEnded(execution)).toMatchObject({ freed: 1 });
    expect(parked).toMatchObject([{ state: 'succeeded' }]);
  });

  it('a task is served if another holder releases just before the grant ends', async () => {
    const [key, execution] = [newKey(), steps.newExecution()];
    await acquire({ key, execution, ttlSeconds: 60, limit: 2 });
    const other = await acquire({ key, holder: 'other', ttlSeconds: 60, limit: 2 });
    const { task } = await park({ key });
    requests.faultsOf.UpdateItem = [precededBy(() => release(other))];
    expect(await executionEnded(execution)).toMatchObject({ freed: 1 });
    expect([task.state, await see(key)]).toMatchObject(['succeeded', { waiting: 0 }]);
  });

  it('the end of an execution asks once about each grant', async () => {
    const { execution } = await held();
    await acquire({ key: newKey(), execution });
    for (const key of [newKey(), newKey()]) {
      await acquire({ key });
      await park({ key, execution });
    }
    steps.requests.length = 0;
    expect(await executionEnded(execution)).toMatchObject({ freed: 2, tickets: 2 });
    expect(asked()).toBe(3);
  });

  it('the end of the execution gives the grant to the next task', async () => {
    const { key, execution, task } = await unnotified();
    const next = await park({ key, holder: 'next' });
    expect(await executionEnded(execution)).toEqual({ execution, ...none, tickets: 1, freed: 1 });
    expect([task.state, grantOf(next.task)]).toMatchObject(['waiting', { holder: 'next' }]);
    expect(await rows(key)).toEqual([]);
  });

  it('a pass that exits anywhere lets a redriven execution have the lock again', async () => {
    for (const calls of counting()) {
      const { key, execution, asked } = await unnotified();
      const { survived } = await exitingAfter(calls, () => executionEnded(execution));
      expect([(await see(key)).holder !== undefined, (await rows(key)).length]).toBeOneOf([
        [true, 1],
        [false, 1],
        [false, 0],
      ]);
      await executionEnded(execution, true);
      redrive(execution);
      expect(grantOf((await park(asked)).task)).toMatchObject({ key, repeated: false });
      if (survived) return;
    }
  });

  it('a redriven execution is granted again without its waiter in the index', async () => {
    const { key, execution, asked } = await unnotified();
    const [{ execution: _, ...row } = {}] = await rows(key);
    await putTickets([row]);
    expect(await executionEnded(execution)).toEqual({ execution, ...none, freed: 1 });
    await cancel(key, String(row.ticket?.S));
    expect(await rows(key)).toEqual([]);
    redrive(execution);
    expect(grantOf((await park(asked)).task)).toMatchObject({ key, repeated: false });
  });

  it('a redriven execution is granted again after an exit before its claim', async () => {
    const [key, execution] = [newKey(), steps.newExecution()];
    const first = await acquire({ key, holder: 'first' });
    await putTickets([callerRow(key, 'c', { execution: { S: execution } })]);
    await repair(key);
    await release(first);
    expect(await see(key)).toMatchObject({ holder: 'c' });
    expect(await executionEnded(execution)).toEqual({ execution, ...none, tickets: 1, freed: 1 });
    redrive(execution);
    expect(await acquire({ key, holder: 'c', requestId: 'c', execution })).toMatchObject({ repeated: false });
  });

  /** The message to the task was lost, and it is ten seconds later. */
  async function lost(terms: object) {
    const key = newKey();
    const first = await acquire({ key, holder: 'first' });
    const { task: gone } = await park({ key, holder: 'gone', ttlSeconds: 600, ...terms });
    timeline.advance(1);
    const { ticket, task } = await park({ key, holder: 'next' });
    steps.faults.SendTaskSuccess = ['lost'];
    await release(first);
    expect(gone.state).toBe('succeeded');
    timeline.advance(11_000);
    steps.requests.length = 0;
    return { key, ticket, task };
  }

  it('the schedule gives the lock of an ended execution to the next', async () => {
    const { key, task } = await lost({ execution: steps.newExecution() });
    expect(await repair(key)).toMatchObject({ granted: 1, notified: 0, unanswered: 0 });
    expect(grantOf(task)).toMatchObject({ holder: 'next', previous: { ended: 'executionEnded' } });
    const alone = await lost({ execution: steps.newExecution() });
    await cancel(alone.key, alone.ticket);
    expect(await repair(alone.key)).toMatchObject({ granted: 0, notified: 0 });
    expect(await see(alone.key)).toMatchObject({ holder: undefined });
  });

  it('the schedule leaves the lock of an execution that may go on', async () => {
    const dead = steps.newExecution();
    const running = steps.newExecution('RUNNING');
    for (const terms of [{ execution: running }, {}, { execution: dead, target: NEVER_STARTED }]) {
      const { key, task } = await lost(terms);
      expect(await repair(key)).toMatchObject({ granted: 0, unanswered: 0 });
      expect([await see(key), task.state]).toMatchObject([{ holder: 'gone' }, 'waiting']);
      if (!('execution' in terms)) expect(asked()).toBe(0);
    }
    expect(await executionEnded(dead, true)).toMatchObject({ freed: 1 });
  });

  it.each(['RUNNING', 'PENDING_REDRIVE'])(
    'a grant passes to a target that is %s, and ends with the target',
    async (status) => {
      const target = steps.newExecution(status);
      const { key, execution, grant, task } = await held({ target });
      timeline.advance(1);
      steps.requests.length = 0;
      steps.onTheWay = async () => asked() === 2 && heartbeat(grant); // between the read and the write
      expect(await executionEnded(execution)).toMatchObject({ freed: 0 });
      expect(await executionEnded(execution, true)).toMatchObject({ freed: 0 });
      expect([await see(key), task.state]).toMatchObject([{ holder: 'tester', execution: target }, 'waiting']);
      expect(await heartbeat(grant)).toMatchObject({ holder: 'tester' });
      steps.executions.set(target, 'SUCCEEDED');
      expect(await executionEnded(target)).toMatchObject({ freed: 1 });
      expect(task.state).toBe('succeeded');
    },
  );

  it('a grant ends at once if its target has ended or ends', async () => {
    const ended = await held({ target: steps.newExecution('TIMED_OUT') });
    expect(await executionEnded(ended.execution)).toMatchObject({ freed: 1, kept: 0 });
    const target = steps.newExecution('RUNNING');
    const { execution, task } = await held({ target });
    steps.requests.length = 0;
    steps.onTheWay = async () => {
      if (asked() === 3) steps.executions.set(target, 'SUCCEEDED'); // Step Functions has just said that it runs
    };
    expect(await executionEnded(execution)).toMatchObject({ freed: 1, kept: 0 });
    expect(task.state).toBe('succeeded');
  });

  it('a grant stays if Step Functions does not answer about its target', async () => {
    const { key, execution } = await held({ target: steps.newExecution() });
    steps.faults.DescribeExecution = ['refused', 'refused', 'refused'];
    expect((await failure(executionEnded(execution))).code).toBe('Unavailable');
    expect(await see(key)).toMatchObject({ holder: 'tester' });
  });

  it('a target of another account keeps only its own grant', async () => {
    const target = steps.newExecution();
    steps.foreign.add(target);
    const { execution, task } = await held();
    for (let nth = 0; nth < 5; nth++) await acquire({ key: newKey(), execution });
    await acquire({ key: newKey(), execution, target });
    expect(await executionEnded(execution)).toEqual({ execution, ...none, freed: 6, kept: 1 });
    expect(task.state).toBe('succeeded');
    const foreign = target.replace('123456789012', '999999999999');
    steps.foreign.add(foreign);
    await acquire({ key: newKey(), execution, target: foreign });
    const second = freeEndedExecution(dependencies);
    expect(await second({ execution, again: true }, call())).toMatchObject({ freed: 2, kept: 0 });
    await acquire({ key: newKey(), execution, target: foreign });
    expect(await second({ execution, again: true }, call(OWN))).toMatchObject({ freed: 1 });
  });

  it('a target keeps its grant while the permission to describe it is missing', async () => {
    const target = steps.newExecution('RUNNING');
    const { key, execution } = await held({ target });
    const beside = newKey();
    await acquire({ key: beside, execution });
    steps.foreign.add(target);
    const ended = freeEndedExecution(dependencies);
    expect((await failure(ended({ execution, again: true }, call(OWN)))).code).toBe('Unavailable');
    expect([await see(key), await see(beside)]).toMatchObject([{ holder: 'tester' }, { holder: undefined }]);
    steps.foreign.delete(target);
    expect(await ended({ execution, again: true }, call(OWN))).toMatchObject({ kept: 1 });
  });
}
