import { describe, expect, it } from 'vitest';
import { lineWorld, resetting } from '../support/worlds/line.ts';

const world = await lineWorld();
const { acquire, heartbeat, release, breakLease, park, repair, executionEnded } = world;
const { grantOf, rawItem, rows, clock, requests, steps } = world;
/** The request that the record of an exclusive holder names, even after the end of the grant. */
const requestOn = async (key: string) => (await rawItem(key))?.h?.M?.m;
const ticketOn = async (key: string) => (await rawItem(key))?.h?.M?.k?.S;
resetting(world);

/** The grant of a task is on record, and no message has reached the task. */
async function unnotified(asked: { key: string } & Record<string, unknown>) {
  const first = await acquire({ key: asked.key, holder: 'first' });
  const { task } = await park({ holder: 'task', requestId: 'r', ttlSeconds: 30, parkSeconds: 50, ...asked });
  steps.faults.SendTaskSuccess = ['refused'];
  await release(first);
  expect(task.state).toBe('waiting');
  return { first, task };
}

/** An execution that has failed runs again, and its task comes again. */
async function redriven(asked: { execution: string } & Record<string, unknown>) {
  steps.redrive(asked.execution);
  return grantOf((await park(asked)).task);
}
const refused = (reason: string) => ({ code: 'LeaseLost', context: { reason } });

/** The call that parks fails after it has written the ticket, so Step Functions tries the task again later, with a new token. */
async function parkWithoutAnswer(asked: { key: string; requestId: string; holder: string }) {
  const task = steps.newTask();
  requests.faultsOf.UpdateItem = ['lostReply', 'lostReply', 'lostReply'];
  await expect(park(asked, task)).rejects.toMatchObject({ code: 'OutcomeUnknown' });
  expect(await rows(asked.key)).toHaveLength(1);
  task.state = 'timedOut';
}

describe('gone tasks', () => {
  const asked = (key: string) => ({ key, requestId: 'r', holder: 'h', ttlSeconds: 60 });

  it.each(['release', 'break', 'run of the schedule'])(
    'a request may ask again after a %s to its dead ticket',
    async (how) => {
      const key = `gone after ${how}`;
      const first = await acquire({ key, ttlSeconds: 2 });
      await parkWithoutAnswer(asked(key));
      if (how === 'release') await release(first);
      else if (how === 'break') await breakLease({ key, fence: first.fence });
      else clock.advance(3000);
      if (how === 'run of the schedule') await repair();
      expect(await requestOn(key)).toBeUndefined();
      expect(await rows(key)).toEqual([]);
      const { task } = await park(asked(key));
      expect(grantOf(task).fence).toBeGreaterThan(first.fence);
      expect((await release(grantOf(task))).released).toBe(true);
      // The task was notified of this grant and released it, so a late duplicate is refused.
      await expect(acquire(asked(key))).rejects.toMatchObject(refused('released'));
    },
  );

  it.each([
    ['a minute later', 62_000, 0],
    ['where the grant runs out only now, by a clock that is behind', 5501, -501],
  ])('a request may ask again after LeaseHeld and the end of its execution, %s', async (when, laterMs, behindMs) => {
    const key = `notified, and not yet ended, ${when}`;
    const execution = steps.newExecution('RUNNING');
    steps.faults.SendTaskSuccess = ['refused'];
    const { task } = await park({ ...asked(key), execution, ttlSeconds: 5, parkSeconds: 5 });
    expect(task.state).toBe('waiting');
    clock.advance(laterMs);
    requests.faultsOf.UpdateItem = ['error500', 'error500', 'error500'];
    await repair().catch(() => {});
    expect(task).toMatchObject({ state: 'failed', error: 'LeaseHeld' });
    expect(await rows(key)).toEqual([]);
    requests.faultsOf = {};
    clock.advance(behindMs);
    steps.executions.set(execution, 'FAILED');
    expect(await executionEnded(execution)).toMatchObject({ freed: 1 });
    expect(await redriven({ ...asked(key), execution })).toMatchObject({ key });
  });
});

it.each([
  ['the event of its end', 'the next waiter'],
  ['the event of its end', 'a later caller'],
  ['the schedule', 'the next waiter'],
  ['the schedule', 'a later caller'],
])('a notified task whose ticket stayed, as %s ends it, is previous for %s', async (finder, successor) => {
  const key = `notified, found by ${finder}, for ${successor}`;
  const execution = steps.newExecution('RUNNING');
  const first = await acquire({ key });
  const { task } = await park({ key, holder: 'notified', requestId: 'r', execution });
  const next = successor === 'the next waiter' ? await park({ key, holder: 'next' }) : undefined;
  requests.faultsOf.DeleteItem = Array.from({ length: 3 }, () => 'neverSent' as const);
  await release(first);
  requests.faultsOf = {};
  const notified = grantOf(task);
  expect((await rows(key)).map(({ holder }) => holder?.S)).toContain('notified');
  steps.executions.set(execution, 'ABORTED');
  clock.advance(11_000);
  if (finder === 'the schedule') await repair();
  else await executionEnded(execution);
  const toTask = steps.requests.filter(({ token }) => token === task.token);
  expect(toTask.map(({ action }) => action)).not.toContain('SendTaskFailure'); // no caller released its lease
  const { previous } = next ? grantOf(next.task) : await acquire({ key });
  expect(previous).toMatchObject({ holder: 'notified', fence: notified.fence, ended: 'executionEnded' });
});

it('a task that took LeaseHeld never held, even if a caller joins', async () => {
  const key = 'unnotified, and joined';
  const { first, task } = await unnotified({ key });
  clock.advance(60_000);
  const marked = async (send: () => Promise<unknown>) => {
    const record = await rawItem(key);
    await world.putRaw({ ...record, mark: { S: 'seven' } } as never);
    return send();
  };
  requests.faultsOf.UpdateItem = [marked];
  await repair();
  expect(task).toMatchObject({ state: 'failed', error: 'LeaseHeld' });
  expect(await requestOn(key)).toBeUndefined();
  expect(await acquire({ key, holder: 'later' })).toMatchObject({ previous: { fence: first.fence } });
});

it('a task that received its grant and was paused is the previous holder', async () => {
  const key = 'notified, and overdue';
  const first = await acquire({ key, holder: 'first' });
  const { task } = await park({ key, holder: 'task', ttlSeconds: 30, parkSeconds: 50 });
  steps.faults.SendTaskSuccess = ['lost'];
  await release(first);
  const { fence } = grantOf(task);
  const next = await park({ key, holder: 'next' });
  clock.advance(60_000);
  await world.handOff(key);
  expect(grantOf(next.task)).toMatchObject({ previous: { holder: 'task', fence, ended: 'expired' } });
});

it('a task that took LeaseHeld leaves the expired grant of another request', async () => {
  const key = 'overdue behind another';
  const { leaseId } = await acquire({ key, holder: 'first', requestId: 'r', ttlSeconds: 2 });
  const { task } = await park({ key, parkSeconds: 1 });
  clock.advance(3000);
  await world.handOff(key);
  expect(task).toMatchObject({ state: 'failed', error: 'LeaseHeld' });
  expect(await heartbeat({ key, leaseId })).toMatchObject({ holder: 'first' });
});

it('a call that shared the grant of an unnotified task is the previous holder', async () => {
  const key = 'unnotified, and shared';
  const { task } = await unnotified({ key });
  const shared = await acquire({ key, holder: 'task', requestId: 'r' });
  expect(shared).toMatchObject({ repeated: true });
  const next = await park({ key, holder: 'next' });
  clock.advance(60_000);
  await repair();
  expect(task).toMatchObject({ state: 'failed', error: 'LeaseHeld' });
  expect(grantOf(next.task)).toMatchObject({ previous: { holder: 'task', fence: shared.fence, ended: 'expired' } });
});

it('a grant is remembered if a plain repeat was answered with it', async () => {
  const asked = { key: 'repeated', requestId: 'r', holder: 'h' };
  const first = await acquire({ key: 'repeated' });
  await parkWithoutAnswer(asked);
  let leaseId = '';
  steps.onTheWay = async (action) => {
    if (action === 'SendTaskSuccess') ({ leaseId } = await acquire(asked));
  };
  await release(first);
  steps.onTheWay = async () => {};
  expect((await release({ key: 'repeated', leaseId })).released).toBe(true);
  await expect(acquire(asked)).rejects.toMatchObject(refused('released'));
});

it.each(['and the line was empty', 'and the line still had its mark'])(
  'a grant is remembered if it was broken unclaimed, %s',
  async (line) => {
    const key = `broken unclaimed, ${line}`;
    const first = await acquire({ key });
    await world.joinLine(key, 'r');
    const other = line === 'and the line was empty' ? undefined : await park({ key });
    await release(first);
    if (other) await world.cancel(key, other.ticket);
    const fence = Number((await rawItem(key))?.fence?.N);
    expect(await breakLease({ key, fence })).toMatchObject({ broken: true, holder: 'caller' });
    const late = acquire({ key, holder: 'caller', requestId: 'r' });
    await expect(late).rejects.toMatchObject(refused('broken'));
  },
);

it('a request that claims late has its grant by its second place', async () => {
  const key = 'unclaimed, and in line again';
  const first = await acquire({ key });
  await world.joinLine(key, 'r');
  clock.advance(1);
  const { ticket } = await world.joinLine(key, 'r');
  await release(first);
  clock.advance(3000);
  await world.handOff(key);
  expect(await ticketOn(key)).toBe(ticket);
});

it('a bound grant passes on even if its third task was gone', async () => {
  const key = 'gone three times';
  const execution = steps.newExecution('RUNNING');
  const bound = { key, holder: 'h', execution, bound: true };
  const first = await acquire({ key, holder: 'first' });
  for (const _ of [1, 2, 3]) {
    const { task } = await park({ ...bound, requestId: 'before the redrive' });
    task.state = 'timedOut';
    clock.advance(10);
  }
  // The process fails after it has found that the first of the three tasks is gone.
  requests.faultsOf.UpdateItem = ['none', 'none', 'error500', 'error500', 'error500'];
  await release(first).catch(() => {});
  requests.faultsOf = {};
  const { task } = await park({ ...bound, requestId: 'after the redrive' });
  for (const _ of [1, 2, 3]) {
    clock.advance(11_000);
    await repair();
  }
  expect(grantOf(task)).toMatchObject({ key });
});

it('a bound grant without a task passes on after a failed end', async () => {
  const key = 'gone and bound';
  const first = await acquire({ key, holder: 'first' });
  const execution = steps.newExecution('RUNNING');
  const bound = { key, holder: 'h', execution, bound: true };
  const { task } = await park({ ...bound, requestId: 'one' });
  task.state = 'timedOut';
  await park({ key, holder: 'other' });
  // The release, and then the end of the grant that no task was notified of.
  requests.faultsOf.UpdateItem = ['none', 'none', 'error500', 'error500', 'error500'];
  await release(first).catch(() => {});
  requests.faultsOf = {};
  const again = await park({ ...bound, requestId: 'two' });
  clock.advance(11_000);
  await repair();
  await repair();
  expect(grantOf(again.task)).toMatchObject({ key });
});
