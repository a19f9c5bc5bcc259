import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { dyingAfter } from '../support/faults/mortal.ts';
import { queueWorld } from '../support/worlds/line.ts';
import { poolLineWorld } from '../support/worlds/permits-in-line.ts';

const leases = await queueWorld();
const permits = await poolLineWorld();
afterAll(() => Promise.all([leases.steps.stop(), permits.steps.stop()]));

/** Tasks do the same in the line of a lease and in the line of a pool of one permit. */
const LOCKS = [
  ['a lease', { ...leases, terms: {}, runSchedule: (_key: string) => leases.repair() }],
  ['a permit', { ...permits, terms: { limit: 1 }, runSchedule: permits.repairLine }],
] as const;

/** A minute and a half, in which the schedule has run. */
const A_WHILE_MS = 90_000;

describe.each(LOCKS)('a retried task whose request holds %s', (name, world) => {
  const { acquire, release, park, grantOf, rows, clock, steps, terms, runSchedule } = world;
  const asked = (key: string) => ({
    key: `${name}: ${key}`,
    holder: 'task',
    requestId: 'r',
    ttlSeconds: 3600,
    ...terms,
  });
  beforeEach(() => {
    steps.faults = {};
    world.messages.length = 0;
  });

  it('a retried task is notified by the schedule if no message reached the older try or this try', async () => {
    const request = asked('granted to an older try');
    steps.faults.SendTaskSuccess = ['refused', 'refused'];
    const older = await park(request);
    older.task.state = 'timedOut';
    const { task, parked } = await park(request);
    expect([parked, task.state]).toEqual([true, 'waiting']);
    for (const _ of ['first', 'second']) {
      clock.advance(60_000);
      await runSchedule(request.key);
    }
    expect(grantOf(task)).toMatchObject({ holder: 'task' });
    clock.advance(60_000);
    await runSchedule(request.key);
    expect(steps.requests.filter(({ token }) => token === task.token)).toHaveLength(2);
    expect(await release(grantOf(task))).toMatchObject({ released: true });
  });

  it('is notified by the schedule if both tries were in line and the grant went to the older try, which has ended', async () => {
    const request = asked('both in line');
    const first = await acquire({ ...request, holder: 'first', requestId: 'first' });
    const older = await park(request);
    clock.advance(1);
    const { task } = await park(request);
    steps.faults.SendTaskSuccess = ['refused'];
    await release(first);
    older.task.state = 'timedOut';
    for (const _ of ['first', 'second']) {
      clock.advance(60_000);
      await runSchedule(request.key);
    }
    expect(grantOf(task)).toMatchObject({ holder: 'task', repeated: true });
    expect(await rows(request.key)).toEqual([]);
  });

  it('a retried task is notified by the schedule if a call has the grant and the message to the task was lost', async () => {
    const request = asked('granted to a call');
    const { leaseId } = await acquire(request);
    steps.faults.SendTaskSuccess = ['refused'];
    const { task, parked } = await park(request);
    expect([parked, task.state]).toEqual([true, 'waiting']);
    clock.advance(A_WHILE_MS);
    await runSchedule(request.key);
    expect(grantOf(task)).toMatchObject({ leaseId, remainingMs: 3_600_000 });
    expect(await rows(request.key)).toEqual([]);
  });

  it('a retried task is notified by the schedule if its call exited right after that call passed the grant to the task', async () => {
    const request = asked('dies');
    await acquire(request);
    const task = steps.newTask();
    expect(await dyingAfter(3, () => park(request, task))).toEqual({
      sent: ['PutItem', 'UpdateItem', 'UpdateItem'],
      survived: false,
    });
    clock.advance(A_WHILE_MS);
    await runSchedule(request.key);
    expect(grantOf(task)).toMatchObject({ remainingMs: 3_600_000 });
  });

  it('a retried task receives its whole ttl with its message, and does not shorten a grant that lasts longer', async () => {
    const request = asked('lasts');
    const { leaseId, acquiredAt } = await acquire(request);
    clock.advance(1_000_000);
    const shorter = await park({ ...request, ttlSeconds: 60 });
    expect(grantOf(shorter.task)).toMatchObject({ leaseId, acquiredAt, repeated: true, remainingMs: 3_600_000 });
    await world.heartbeat({ key: request.key, leaseId, ttlSeconds: 7200 });
    await world.heartbeat({ key: request.key, leaseId, ttlSeconds: 60 });
    const { task } = await park(request);
    expect(grantOf(task)).toMatchObject({ leaseId, acquiredAt, repeated: true });
    expect(Date.parse(grantOf(task).expiresAt) - clock.now()).toBeGreaterThanOrEqual(3_600_000);
  });

  const runFor = async (minutes: number, key: string) => {
    for (let minute = 0; minute < minutes; minute++) {
      clock.advance(60_000);
      await runSchedule(key);
    }
  };
  const timedOut = () => Object.assign(steps.newTask(), { state: 'timedOut' as const });

  it('a retried task leaves the grant to the execution that has it, and the end of that execution ends the grant', async () => {
    const request = asked('another execution');
    const [working, other] = [steps.newExecution('RUNNING'), steps.newExecution('RUNNING')];
    const { task } = await park({ ...request, execution: working });
    expect(grantOf(task)).toMatchObject({ repeated: false });
    await park({ ...request, execution: other }, timedOut());
    for (const execution of [working, other]) steps.executions.set(execution, 'FAILED');
    expect(await world.executionEnded(other)).toMatchObject({ freed: 0 });
    expect(await world.executionEnded(working)).toMatchObject({ freed: 1 });
  });

  it('a duplicate that has timed out, and whose execution has failed, leaves the grant to the execution that works', async () => {
    const request = asked('of a duplicate');
    const working = steps.newExecution('RUNNING');
    const { task } = await park({ ...request, execution: working });
    const behind = await park({ ...request, holder: 'behind', requestId: 'behind' });
    await park({ ...request, execution: steps.newExecution('FAILED') }, timedOut());
    await runFor(5, request.key);
    expect([task.state, behind.task.state]).toEqual(['succeeded', 'waiting']);
  });

  it('a task whose message was lost, and whose execution then failed, leaves the grant to the call that has it', async () => {
    const request = asked('of a call');
    const { leaseId } = await acquire(request);
    const behind = await park({ ...request, holder: 'behind', requestId: 'behind' });
    steps.faults.SendTaskSuccess = ['refused'];
    const execution = steps.newExecution('RUNNING');
    const again = await park({ ...request, execution });
    again.task.state = 'timedOut';
    steps.executions.set(execution, 'FAILED');
    expect(await world.executionEnded(execution)).toMatchObject({ freed: 0 });
    await runFor(3, request.key);
    expect(behind.task.state).toBe('waiting');
    expect(await world.heartbeat({ key: request.key, leaseId })).toMatchObject({ holder: 'task' });
  });

  it('a task that waits for the message of its grant receives the message, though a duplicate that has timed out came', async () => {
    const request = asked('duplicate that has timed out');
    steps.faults.SendTaskSuccess = ['refused'];
    const { task } = await park(request);
    await park(request, timedOut());
    await runFor(2, request.key);
    expect(task.state).toBe('succeeded');
  });

  it('the end of an execution does not end a grant in its grace, even if a task of this execution has asked again', async () => {
    const request = asked('grace');
    const execution = steps.newExecution('FAILED');
    const { leaseId } = await acquire({ ...request, graceSeconds: 60, execution });
    expect(await world.executionEnded(execution)).toMatchObject({ graced: 1 });
    const { task } = await park({ ...request, execution });
    expect(grantOf(task)).toMatchObject({ leaseId, repeated: true });
    expect(await world.executionEnded(execution, true)).toMatchObject({ freed: 0, graced: 0 });
    expect(await world.heartbeat({ key: request.key, leaseId })).toMatchObject({ holder: 'task' });
  });

  it('a retried task that has already ended does not hand off the grant, because a call may work under the grant', async () => {
    const request = asked('gone');
    const { leaseId } = await acquire(request);
    const behind = await park({ ...request, holder: 'behind', requestId: 'behind' });
    const gone = steps.newTask();
    gone.state = 'timedOut';
    expect(await park(request, gone)).toMatchObject({ parked: false });
    expect(behind.task.state).toBe('waiting');
    expect(await world.heartbeat({ key: request.key, leaseId })).toMatchObject({ holder: 'task' });
  });
});

describe.each(LOCKS)('the answer to a task that parks for %s', (name, world) => {
  const { acquire, release, park, grantOf, rows, clock, steps, terms, runSchedule } = world;
  const asked = (key: string) => ({ key: `${name}: ${key}`, holder: 'task', requestId: 'r', ttlSeconds: 60, ...terms });
  beforeEach(() => {
    steps.faults = {};
  });

  it('the answer says that the task waits if the request was released and the LeaseLost message was lost, and the schedule sends LeaseLost', async () => {
    const request = asked('released');
    await release(await acquire(request));
    steps.faults.SendTaskFailure = ['refused'];
    const { task, parked } = await park(request);
    expect([parked, task.state, await rows(request.key)]).toMatchObject([true, 'waiting', [{}]]);
    clock.advance(A_WHILE_MS);
    await runSchedule(request.key);
    expect(task).toMatchObject({ state: 'failed', error: 'LeaseLost', cause: { reason: 'released' } });
    expect(await rows(request.key)).toEqual([]);
  });

  it('the answer says that the task waits if the task was granted at once and the message was lost', async () => {
    const request = asked('lost message');
    steps.faults.SendTaskSuccess = ['refused'];
    const { task, parked } = await park(request);
    expect([parked, task.state]).toEqual([true, 'waiting']);
    clock.advance(10_000);
    await runSchedule(request.key);
    expect(grantOf(task)).toMatchObject({ holder: 'task' });
  });
});

describe.each(LOCKS)('a task that waits for %s whose holder has exited', (name, world) => {
  const { acquire, park, grantOf, release, clock, messages, steps, terms } = world;
  beforeEach(() => {
    steps.faults = {};
    messages.length = 0;
  });

  it('only the first task in line sends the message that looks again when the grant of the holder ends', async () => {
    const key = `${name}: dead`;
    await acquire({ key, holder: 'dead', ttlSeconds: 30, ...terms });
    const { task } = await park({ key, holder: 'first', ...terms });
    await park({ key, holder: 'second', ...terms });
    expect(messages).toMatchObject([{ delaySeconds: 32 }]);
    clock.advance(32_000);
    await world.repairKey(messages[0]?.key ?? '', messages[0]?.fence);
    expect(grantOf(task)).toMatchObject({ holder: 'first' });
  });

  it('a hand-off to a task sends the message that looks again when the grant of that task ends, if another task waits', async () => {
    const key = `${name}: granted in front of a task`;
    const first = await acquire({ key, holder: 'first', ttlSeconds: 600, ...terms });
    await park({ key, holder: 'dead', ttlSeconds: 30, ...terms });
    const { task } = await park({ key, holder: 'behind', ...terms });
    messages.length = 0;
    await release(first);
    expect(messages).toMatchObject([{ delaySeconds: 32 }]);
    clock.advance(32_000);
    await world.repairKey(messages[0]?.key ?? '', messages[0]?.fence);
    expect(grantOf(task)).toMatchObject({ holder: 'behind' });
  });

  it('a hand-off to a task that is gone sends no message that looks again', async () => {
    const key = `${name}: gone in front of a task`;
    const first = await acquire({ key, holder: 'first', ttlSeconds: 600, ...terms });
    const gone = await park({ key, holder: 'gone', ttlSeconds: 30, ...terms });
    clock.advance(1);
    await park({ key, holder: 'behind', ...terms });
    gone.task.state = 'timedOut';
    messages.length = 0;
    await release(first);
    expect(messages).toEqual([]);
  });

  it('a hand-off sends the message that looks again after the grant window, even if other callers are in front of the task', async () => {
    const key = `${name}: behind callers`;
    const first = await acquire({ key, holder: 'first', ttlSeconds: 30, ...terms });
    for (const holder of ['one', 'two']) {
      await dyingAfter(3, () => acquire({ key, holder, waitSeconds: 20, ttlSeconds: 30, ...terms }));
      clock.advance(1);
    }
    await park({ key, holder: 'task', ...terms });
    messages.length = 0;
    await release(first);
    expect(messages).toMatchObject([{ delaySeconds: 4 }]);
  });
});
