import { expect, it } from 'vitest';
import { exitingAfter } from '../support/faults/mortal.ts';
import type { LineWorld } from './world.ts';

/** A task that comes again while its request has the grant, and the messages that tasks receive. */
export async function retriedTasks(lineWorld: LineWorld) {
  const world = await lineWorld();
  const { acquire, heartbeat, release, grantOf, rows, steps, repair, executionEnded, heldKey, newKey, timeline } =
    world;
  const { parkNext: park, messages, runRepair } = world;
  const asking = (ttlSeconds = 3600) => ({ key: newKey(), holder: 'task', requestId: 'r', ttlSeconds });
  const after = { holder: 'behind', requestId: 'behind' };
  const runFor = async (minutes: number, key: string) => {
    for (let minute = 0; minute < minutes; minute++) {
      timeline.advance(60_000);
      await repair(key);
    }
  };
  const timedOut = () => Object.assign(steps.newTask(), { state: 'timedOut' as const });
  const refuse = (action: 'SendTaskSuccess' | 'SendTaskFailure', times = 1) => {
    steps.faults[action] = Array(times).fill('refused');
  };

  it('a retried task is notified though its call exited', async () => {
    const request = asking();
    await acquire(request);
    const task = steps.newTask();
    const sent = ['PutItem', 'UpdateItem', 'UpdateItem'];
    expect(await exitingAfter(3, () => park(request, task))).toEqual({ sent, survived: false });
    timeline.advance(90_000);
    await repair(request.key);
    expect(grantOf(task)).toMatchObject({ remainingMs: 3_600_000 });
  });

  it('a retried task receives its whole ttl, or what lasts longer', async () => {
    const request = asking();
    const { key } = request;
    const { leaseId, acquiredAt } = await acquire(request);
    timeline.advance(1_000_000);
    const shorter = await park({ ...request, ttlSeconds: 60 });
    expect(grantOf(shorter.task)).toMatchObject({ leaseId, acquiredAt, repeated: true, remainingMs: 3_600_000 });
    for (const ttlSeconds of [7200, 60]) await heartbeat({ key, leaseId, ttlSeconds });
    const { task } = await park(request);
    expect(grantOf(task)).toMatchObject({ leaseId, acquiredAt, repeated: true });
    expect(Date.parse(grantOf(task).expiresAt) - timeline.now()).toBeGreaterThanOrEqual(3_600_000);
  });

  it('a retried task receives another grant after an expired one', async () => {
    const request = asking(60);
    await park(request);
    refuse('SendTaskSuccess');
    const { task, parked } = await park(request);
    expect([parked, task.state, await rows(request.key)]).toMatchObject([true, 'waiting', [{}]]);
    timeline.advance(61_000);
    await repair(request.key);
    expect(grantOf(task)).toMatchObject({ holder: 'task', repeated: false });
  });

  it('a retried task leaves the grant to the execution that has it', async () => {
    const request = asking();
    const [working, other] = [steps.newExecution('RUNNING'), steps.newExecution('RUNNING')];
    const { task } = await park({ ...request, execution: working });
    expect(grantOf(task)).toMatchObject({ repeated: false });
    await park({ ...request, execution: other }, timedOut());
    for (const execution of [working, other]) steps.executions.set(execution, 'FAILED');
    expect(await executionEnded(other)).toMatchObject({ freed: 0 });
    expect(await executionEnded(working)).toMatchObject({ freed: 1 });
  });

  it('a failed task leaves the grant to the call that has it', async () => {
    const request = asking();
    const { leaseId } = await acquire(request);
    const behind = await park({ ...request, ...after });
    refuse('SendTaskSuccess');
    const execution = steps.newExecution('RUNNING');
    const again = await park({ ...request, execution });
    again.task.state = 'timedOut';
    steps.executions.set(execution, 'FAILED');
    expect(await executionEnded(execution)).toMatchObject({ freed: 0 });
    await runFor(3, request.key);
    expect(behind.task.state).toBe('waiting');
    expect(await heartbeat({ key: request.key, leaseId })).toMatchObject({ holder: 'task' });
  });

  it('a hand-off to a task sends the message for the next task', async () => {
    const { key, first } = await heldKey({ holder: 'first', ttlSeconds: 600 });
    await park({ key, holder: 'dead', ttlSeconds: 30 });
    const { task } = await park({ key, holder: 'behind' });
    messages.length = 0;
    await release(first);
    expect(messages).toMatchObject([{ delaySeconds: 32 }]);
    timeline.advance(32_000);
    await runRepair(messages[0]);
    expect(grantOf(task)).toMatchObject({ holder: 'behind' });
  });

  it('a hand-off to a gone task does not send a delayed repair', async () => {
    const { key, first } = await heldKey({ holder: 'first', ttlSeconds: 600 });
    const gone = await park({ key, holder: 'gone', ttlSeconds: 30 });
    await park({ key, holder: 'behind' });
    gone.task.state = 'timedOut';
    messages.length = 0;
    await release(first);
    expect(messages).toEqual([]);
  });
}
