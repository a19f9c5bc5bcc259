import { expect, it } from 'vitest';
import type { LineWorld } from './world.ts';

/** Tasks that have a grant, and that no message about the grant has reached. The schedule notifies those tasks. */
export async function lateNotices(lineWorld: LineWorld) {
  const world = await lineWorld();
  const { acquire, heartbeat, release, grantOf, see, rows, isMarked, repair, precededBy, requests } = world;
  const { steps, heldKey, newKey, timeline } = world;
  const { parkNext: park, putTickets, callerRow } = world;
  const ttlSeconds = 3600;
  /** A task that has the lock, and was not notified. */
  async function unnotified(terms: object = { ttlSeconds }) {
    const { key, first } = await heldKey({ ttlSeconds: 60 });
    const parked = await park({ key, holder: 'task', ...terms });
    steps.faults.SendTaskSuccess = ['refused'];
    await release(first);
    expect([parked.task.state, await see(key)]).toMatchObject(['waiting', { holder: 'task', waiting: 0, waiters: [] }]);
    steps.requests.length = 0;
    return { ...parked, key };
  }
  const neither = { notified: 0, unanswered: 0 };

  it('the schedule notifies a task from ten seconds after its grant on', async () => {
    const { key, task } = await unnotified({ ttlSeconds, parkSeconds: 1, execution: steps.newExecution('RUNNING') });
    const deadline = Number((await rows(key))[0]?.deadline?.N);
    timeline.advance(9999);
    expect(await repair(key)).toMatchObject(neither); // the call that granted the lock may still notify the task
    timeline.advance(1);
    steps.faults.SendTaskSuccess = ['refused'];
    expect(await repair(key)).toMatchObject({ notified: 0, unanswered: 1 });
    timeline.advance(deadline + 180_000 - timeline.now());
    expect(await repair(key)).toMatchObject(neither);
    timeline.advance(-1);
    expect(await repair(key)).toMatchObject({ notified: 1, unanswered: 0 });
    expect(grantOf(task)).toMatchObject({ remainingMs: 3_600_000, repeated: false });
    expect(steps.requests.map(({ action }) => action)).not.toContain('DescribeExecution');
    expect(await rows(key)).toEqual([]);
  });

  it('the schedule notifies the task of a bound grant however long after its deadline', async () => {
    const { key, task } = await unnotified({ parkSeconds: 1, execution: steps.newExecution('RUNNING'), bound: true });
    timeline.advance(3_600_000);
    expect(await repair(key)).toMatchObject({ notified: 1, unanswered: 0 });
    expect(grantOf(task)).toMatchObject({ holder: 'task', repeated: false });
  });

  it('one run notifies the latest try of the request', async () => {
    const key = newKey();
    const ofRequest = { key, holder: 'wf', execution: steps.newExecution('RUNNING'), requestId: 'one', ttlSeconds };
    await park(ofRequest);
    steps.faults.SendTaskSuccess = ['refused', 'refused'];
    const tries = [await park(ofRequest), await park(ofRequest)];
    expect(tries.map(({ task }) => task.state)).toEqual(['waiting', 'waiting']);
    for (const { task } of tries.slice(0, 1)) task.state = 'timedOut';
    timeline.advance(10_000);
    await repair(key);
    expect(tries.map(({ task }) => task.state)).toEqual(['timedOut', 'succeeded']);
  });

  it.each([true, false])('the schedule leaves a task to another run (answered: %s)', async (isAnswered) => {
    const { key, task } = await unnotified();
    timeline.advance(10_000);
    const other = precededBy(async () => {
      if (!isAnswered) steps.faults.SendTaskSuccess = ['refused'];
      expect(await repair(key)).toMatchObject(isAnswered ? { notified: 1 } : { notified: 0, unanswered: 1 });
    });
    requests.faultsOf.UpdateItem = [other];
    expect(await repair(key)).toMatchObject(neither);
    expect(await repair(key)).toMatchObject({ notified: isAnswered ? 0 : 1 });
    expect([task.state, steps.requests.length, await rows(key)]).toEqual(['succeeded', isAnswered ? 1 : 2, []]);
  });

  it('the schedule deletes the row of a caller that has left', async () => {
    const key = newKey();
    await acquire({ key, ttlSeconds });
    const now = timeline.now();
    const until = { deadline: { N: String(now) }, keep_until: { N: String(now + 5000) } };
    await putTickets([callerRow(key, 'left', until)]);
    for (const left of [1, 0, 0]) {
      expect(await repair(key)).toMatchObject({ unanswered: 0 });
      expect([(await rows(key)).length, await isMarked(key)]).toEqual([left, false]);
      timeline.advance(5000);
    }
    expect(steps.requests).toEqual([]);
  });

  const minute = async (key: string) => {
    timeline.advance(60_000);
    return repair(key);
  };
  /** A grant whose message was never answered. Its task times out before the schedule runs, and its execution goes on. */
  async function goneTask() {
    const { key, first } = await heldKey({ ttlSeconds });
    const execution = steps.newExecution('RUNNING');
    const ofExecution = { key, holder: 'wf', execution, bound: true, parkSeconds: 3600 };
    const { task } = await park({ ...ofExecution, requestId: 'one' });
    steps.faults.SendTaskSuccess = ['refused'];
    await release(first);
    task.state = 'timedOut';
    return { key, execution, ofExecution, fence: Number((await see(key)).fence) };
  }

  it('the next bound task of the execution receives the lock under a new fence', async () => {
    const { key, ofExecution, fence } = await goneTask();
    await minute(key);
    const { task: other } = await park({ key, holder: 'other', parkSeconds: 3600 });
    const { task } = await park({ ...ofExecution, requestId: 'two' });
    expect(await minute(key)).toMatchObject({ granted: 1, notified: 1 });
    expect(grantOf(task)).toMatchObject({ holder: 'wf', repeated: false });
    expect(grantOf(task).fence).toBeGreaterThan(fence);
    expect(other.state).toBe('waiting');
    await release(grantOf(task));
    expect(other.state).toBe('succeeded');
  });

  it('all other waiters wait for the end of the execution', async () => {
    const { key, execution } = await goneTask();
    const another = steps.newExecution('RUNNING');
    const { task: bound } = await park({ key, holder: 'b', execution: another, bound: true, parkSeconds: 3600 });
    const { task: plain } = await park({ key, holder: 'c', execution, ttlSeconds, parkSeconds: 3600 });
    for (let minutes = 0; minutes < 3; minutes++) await minute(key);
    expect([bound.state, plain.state, await see(key)]).toMatchObject(['waiting', 'waiting', { holder: 'wf' }]);
    steps.end(execution, 'SUCCEEDED');
    await minute(key);
    expect([bound.state, plain.state]).toEqual(['succeeded', 'waiting']);
  });

  it('a task of the same request goes before other tasks of the execution', async () => {
    const { key, ofExecution } = await goneTask();
    await minute(key);
    const { task } = await park({ ...ofExecution, requestId: 'one' });
    expect(grantOf(task)).toMatchObject({ holder: 'wf', repeated: true });
    const { task: other } = await park({ ...ofExecution, requestId: 'two' });
    await minute(key);
    expect(other.state).toBe('waiting');
  });

  it('a task of the same request keeps the lock after a lost answer', async () => {
    const { key, first } = await heldKey({ ttlSeconds });
    const execution = steps.newExecution('RUNNING');
    const ofExecution = { key, holder: 'wf', execution, bound: true, parkSeconds: 3600, requestId: 'one' };
    const { task: gone } = await park(ofExecution);
    gone.state = 'timedOut';
    const { task } = await park(ofExecution);
    steps.faults.SendTaskSuccess = ['refused'];
    await release(first);
    steps.faults.SendTaskSuccess = ['lost'];
    await minute(key);
    const grant = grantOf(task);
    await minute(key);
    expect(await heartbeat({ key, leaseId: grant.leaseId })).toMatchObject({ fence: grant.fence });
  });

  it('a grant that has had a heartbeat stays, even if its ticket stayed too', async () => {
    const { key, first } = await heldKey({ ttlSeconds });
    const ofExecution = {
      key,
      holder: 'wf',
      execution: steps.newExecution('RUNNING'),
      bound: true,
      parkSeconds: 3600,
    };
    const { task } = await park({ ...ofExecution, requestId: 'one' });
    const tickets = await rows(key);
    await release(first);
    const { leaseId, fence } = grantOf(task);
    timeline.advance(1000);
    await heartbeat({ key, leaseId });
    await putTickets(tickets); // the deletion of the ticket was lost
    const { task: other } = await park({ ...ofExecution, requestId: 'two' });
    await minute(key);
    await minute(key);
    expect(other.state).toBe('waiting');
    expect(await heartbeat({ key, leaseId })).toMatchObject({ fence });
  });
}
