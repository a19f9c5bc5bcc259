import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { readPool } from '../../shared/permits/read.ts';
import { call } from '../support/emulators/aws.ts';
import { queueWorld } from '../support/worlds/line.ts';
import { poolLineWorld } from '../support/worlds/permits-in-line.ts';

const world = await queueWorld();
const { acquire, park, grantOf, executionEnded, read, rawItem, repair, repairKey, clock, steps } = world;
const pools = await poolLineWorld();
afterAll(() => Promise.all([steps.stop(), pools.steps.stop()]));
beforeEach(() => {
  for (const { faults, requests } of [steps, pools.steps]) {
    for (const action of Object.keys(faults)) delete faults[action];
    requests.length = 0;
  }
});

const MINUTE_MS = 60_000;
/** From then on every call of an execution that has ended has ended too. */
const SETTLED_MS = 90_000;
const asked = ({ requests } = steps) => requests.filter(({ action }) => action === 'DescribeExecution').length;

describe('a lease whose execution has ended, and the event of that end is lost,', () => {
  /** Its execution stops now, without an event. */
  async function stopped(key: string, more: object = {}, status = 'ABORTED') {
    const execution = steps.newExecution('RUNNING');
    const grant = await acquire({ key, holder: 'wf', execution, ttlSeconds: 3600, ...more });
    const { task } = await park({ key });
    steps.executions.set(execution, status);
    steps.stopped.set(execution, clock.now());
    return { ...grant, execution, task };
  }

  it('goes to the task in line by the schedule, a minute after its grant', async () => {
    const { task, fence } = await stopped('lost');
    clock.advance(MINUTE_MS - 1000);
    await repair();
    expect([task.state, asked()]).toEqual(['waiting', 0]);
    clock.advance(1000);
    expect(await repair()).toMatchObject({ granted: 1 });
    expect(grantOf(task)).toMatchObject({ previous: { fence, ended: 'executionEnded' } });
  });

  it('goes on for its grace, if it has one', async () => {
    const { task, execution } = await stopped('lost, with a grace', { graceSeconds: 30 });
    clock.advance(MINUTE_MS);
    await repair();
    expect(await read({ key: 'lost, with a grace' })).toMatchObject({ execution, inGrace: true, remainingMs: 30_000 });
    clock.advance(31_000);
    await repair();
    expect(task.state).toBe('succeeded');
  });

  it('is found also after it has passed to a target: free within two minutes of the end of the target', async () => {
    const key = 'lost, of a target';
    const target = steps.newExecution('RUNNING');
    const { task, execution } = await stopped(key, { target });
    await executionEnded(execution);
    expect((await rawItem(key))?.execution?.S).toBe(target);
    clock.advance(MINUTE_MS);
    await repair();
    expect(task.state).toBe('waiting');
    steps.executions.set(target, 'ABORTED'); // the event of which is lost
    clock.advance(MINUTE_MS);
    await repair();
    expect(task.state).toBe('succeeded');
  });

  it('stays while the start of its target may be on the way, and ends once every call of the execution has ended', async () => {
    const target = 'arn:aws:states:us-east-1:123456789012:execution:machine:not-yet-started';
    const { task, execution } = await stopped('lost, with a start', { target });
    clock.advance(MINUTE_MS);
    steps.stopped.set(execution, clock.now());
    clock.advance(SETTLED_MS - 1);
    await repair();
    expect(task.state).toBe('waiting');
    clock.advance(1);
    await repair();
    expect(task.state).toBe('succeeded');
  });

  it('stays with an execution that was redriven and acquired it after the end that DescribeExecution still shows', async () => {
    const { task, execution } = await stopped('redriven since', {}, 'FAILED');
    clock.advance(MINUTE_MS);
    steps.stopped.set(execution, clock.now() - MINUTE_MS - 1000);
    await repair();
    expect(task.state).toBe('waiting');
    clock.advance(SETTLED_MS);
    await repair();
    expect(task.state).toBe('succeeded');
  });

  it('forgets its request if perhaps no task was notified of it, so that a redriven execution may ask again', async () => {
    const execution = steps.newExecution('RUNNING');
    const asking = { key: 'lost, unheard', requestId: 'r', execution, ttlSeconds: 3600 };
    steps.faults.SendTaskSuccess = ['refused', 'refused'];
    await park(asking);
    const { ticket } = await park({ key: asking.key });
    await world.cancel(asking.key, ticket); // the mark stays
    steps.executions.set(execution, 'ABORTED');
    clock.advance(MINUTE_MS);
    await repair();
    expect(await read({ key: asking.key })).toMatchObject({ state: 'released' });
    expect(await acquire(asking)).toMatchObject({ repeated: false });
  });
});

describe('the schedule asks Step Functions', () => {
  it('nothing about an execution whose lease no task and no caller waits for', async () => {
    await acquire({ key: 'unwanted', execution: steps.newExecution(), ttlSeconds: 3600 });
    clock.advance(2 * MINUTE_MS);
    await repair();
    expect(asked()).toBe(0);
    expect(await read({ key: 'unwanted' })).toMatchObject({ state: 'held' });
  });

  it('once in a run about an execution that goes on, and nothing for a message', async () => {
    await acquire({ key: 'goes on', execution: steps.newExecution('RUNNING'), ttlSeconds: 3600 });
    const { ticket } = await park({ key: 'goes on' });
    clock.advance(2 * MINUTE_MS);
    await repairKey('goes on');
    expect(asked()).toBe(0);
    await repair();
    expect(asked()).toBe(1);
    await world.cancel('goes on', ticket);
  });

  it.each([
    ['does not exist, and may be about to start', (arn: string) => steps.executions.delete(arn)],
    ['belongs to another account', (arn: string) => steps.foreign.add(arn)],
  ])('about an execution that %s: the lease stays', async (what, happens) => {
    const execution = steps.newExecution();
    await acquire({ key: what, execution, ttlSeconds: 3600 });
    const { ticket, task } = await park({ key: what });
    happens(execution);
    clock.advance(2 * MINUTE_MS);
    await repair();
    expect(task.state).toBe('waiting');
    await world.cancel(what, ticket);
  });

  it('no more in a run in which it was throttled, and does not fail for that', async () => {
    const parked: { key: string; ticket: string }[] = [];
    for (let n = 0; n < 12; n++) {
      const key = `throttled ${n}`;
      await acquire({ key, execution: steps.newExecution('RUNNING'), ttlSeconds: 3600 });
      parked.push(await park({ key }));
    }
    clock.advance(2 * MINUTE_MS);
    steps.requests.length = 0;
    steps.faults.DescribeExecution = Array.from({ length: 40 }, () => 'throttled' as const);
    await repair();
    steps.faults.DescribeExecution = [];
    // A run works on eight keys at once, and each question has three tries.
    expect(asked()).toBeGreaterThan(0);
    expect(asked()).toBeLessThanOrEqual(24);
    for (const { key, ticket } of parked) await world.cancel(key, ticket);
  });

  it('at most a hundred times in a run, whatever executions hold the keys', async () => {
    const [key, now] = ['many', clock.now()];
    for (let n = 0; n < 102; n++) {
      const name = `${key} ${n}`;
      await acquire({ key: name, execution: steps.newExecution('RUNNING'), ttlSeconds: 3600 });
    }
    const deadline = { N: String(now + 3_600_000) };
    const row = { deadline, keep_until: deadline };
    await world.putTickets(Array.from({ length: 102 }, (_, n) => world.callerRow(`${key} ${n}`, `c${n}`, row)));
    await repair(); // marks them
    clock.advance(2 * MINUTE_MS);
    await repair();
    expect(asked()).toBe(100);
    await repair();
    expect(asked()).toBe(200);
  });
});

describe('a permit whose execution has ended, and the event of that end is lost,', () => {
  it('gives its room to the line by the schedule, a minute after its grant, and others of the pool stay', async () => {
    const [dead, runs] = [pools.steps.newExecution('ABORTED'), pools.steps.newExecution('RUNNING')];
    await pools.acquire({ key: 'p', holder: 'dead', limit: 2, execution: dead, ttlSeconds: 3600 });
    await pools.acquire({ key: 'p', holder: 'runs', limit: 2, execution: runs, ttlSeconds: 3600 });
    const { task } = await pools.park({ key: 'p', holder: 'next', limit: 2 });
    pools.clock.advance(MINUTE_MS - 1000);
    await pools.repair();
    expect([task.state, asked(pools.steps)]).toEqual(['waiting', 0]);
    pools.clock.advance(1000);
    expect(await pools.repair()).toMatchObject({ granted: 1 });
    expect(task.state).toBe('succeeded');
    const { entries } = await readPool(pools.dependencies, 'p', call());
    expect(entries.map(({ holder }) => holder).toSorted()).toEqual(['next', 'runs']);
  });

  it('goes on for its grace, if it has one', async () => {
    const execution = pools.steps.newExecution('ABORTED');
    await pools.acquire({ key: 'g', limit: 1, execution, ttlSeconds: 3600, graceSeconds: 30 });
    const { task } = await pools.park({ key: 'g', limit: 1 });
    pools.clock.advance(MINUTE_MS);
    await pools.repair();
    expect((await pools.read('g')).holders).toMatchObject([{ execution, inGrace: true, remainingMs: 30_000 }]);
    pools.clock.advance(31_000);
    await pools.repair();
    expect(task.state).toBe('succeeded');
  });
});
