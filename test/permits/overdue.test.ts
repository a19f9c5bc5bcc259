import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { HoldfastError } from '../../shared/errors.ts';
import { deleteWaiter, lineKeyOf } from '../../shared/line/waiters.ts';
import { repairLines } from '../../shared/locks/repair.ts';
import { handOff } from '../../shared/permits/hand-off.ts';
import { readPool } from '../../shared/permits/read.ts';
import { call } from '../support/emulators/aws.ts';
import { poolLineWorld } from '../support/worlds/permits-in-line.ts';

const world = await poolLineWorld();
const { acquire, release, heartbeat, park, grantOf, dependencies, rows, clock, steps } = world;
const { putTickets, callerRow, rawItem, removeMark, repairLine } = world;
afterAll(() => steps.stop());
beforeEach(() => {
  steps.requests.length = 0;
  steps.faults = {};
  steps.onTheWay = async () => {};
});

const failures = () => steps.requests.filter(({ action }) => action === 'SendTaskFailure');

describe('a hand-off by an old record of a pool, with an overdue task that joined since', () => {
  it('the LeaseHeld of an overdue task names the current holders, even if the hand-off has an old record', async () => {
    const key = 'held since';
    const before = await acquire({ key, holder: 'before', limit: 1 });
    const record = await readPool(dependencies, key, call());
    await release(before);
    const { fence } = await acquire({ key, holder: 'now', limit: 1, ttlSeconds: 3600 });
    const { task } = await park({ key, limit: 1, parkSeconds: 1 });
    clock.advance(1001);
    await handOff(dependencies, { record }, call());
    expect(task).toMatchObject({ state: 'failed', error: 'LeaseHeld', cause: { key, holder: 'now', fence } });
    expect(await rows(key)).toEqual([]);
  });

  it('a hand-off with an old record sends no message to an overdue task that has just received a permit, because the granting call sends the message', async () => {
    const key = 'granted since';
    const before = await acquire({ key, limit: 1, ttlSeconds: 3600 });
    const record = await readPool(dependencies, key, call());
    const { task } = await park({ key, limit: 1, parkSeconds: 1, ttlSeconds: 3600 });
    clock.advance(999);
    const ends: string[] = [];
    steps.onTheWay = async (action) => {
      if (action !== 'SendTaskSuccess') return;
      clock.advance(400); // now its deadline has passed
      ends.push((await handOff(dependencies, { record }, call())).end);
    };
    expect(await release(before)).toMatchObject({ released: true });
    expect(ends).toEqual(['waits']);
    expect(failures()).toEqual([]);
    expect(grantOf(task).fence).toBeGreaterThan(before.fence);
  });

  it('a hand-off with an old record ends an overdue task if the permit that the task has received since has expired', async () => {
    const key = 'over since';
    const before = await acquire({ key, limit: 1, ttlSeconds: 3600 });
    const record = await readPool(dependencies, key, call());
    const { task } = await park({ key, limit: 1, parkSeconds: 1, ttlSeconds: 2 });
    steps.faults.SendTaskSuccess = ['refused', 'refused', 'refused'];
    await release(before);
    clock.advance(2000);
    await handOff(dependencies, { record }, call());
    expect(task).toMatchObject({ state: 'failed', error: 'LeaseHeld' });
    expect(await rows(key)).toEqual([]);
  });

  it('a hand-off with an old record deletes the row of an overdue task that has extended its permit since', async () => {
    const key = 'extended since';
    const before = await acquire({ key, limit: 1 });
    const { task } = await park({ key, limit: 1, parkSeconds: 1, ttlSeconds: 2 });
    steps.faults.SendTaskSuccess = ['lost'];
    await release(before);
    clock.advance(2600);
    const record = await readPool(dependencies, key, call());
    await heartbeat(grantOf(task));
    await handOff(dependencies, { record }, call());
    expect([task.state, await rows(key)]).toEqual(['succeeded', []]);
    expect(await heartbeat(grantOf(task))).toMatchObject({ holder: 'tester' });
  });
});

describe('a task that is overdue and cannot be notified', () => {
  /** A full pool whose only waiter is overdue, while Step Functions refuses each message. */
  async function unreachable(key: string) {
    const first = await acquire({ key, holder: 'first', limit: 1, ttlSeconds: 600 });
    const parked = await park({ key, holder: 'unreachable', limit: 1, parkSeconds: 1 });
    clock.advance(1000);
    steps.faults.SendTaskFailure = Array.from({ length: 20 }, () => 'denied' as const);
    return { first, ...parked };
  }

  it('an overdue task that cannot be notified does not keep a plain caller out of a pool with room, and the schedule notifies the task later', async () => {
    const key = 'not kept';
    const { first, task } = await unreachable(key);
    await release(first);
    expect(await rawItem(key)).not.toHaveProperty('waiters');
    expect(await acquire({ key, holder: 'plain', limit: 1 })).toMatchObject({ holder: 'plain', repeated: false });
    expect(await rows(key)).toHaveLength(1);
    steps.faults = {};
    await repairLine(key);
    expect(task).toMatchObject({ state: 'failed', error: 'LeaseHeld' });
    expect(await rows(key)).toEqual([]);
  });

  it('the schedule puts no mark back on a pool for an overdue task that cannot be notified', async () => {
    const key = 'no mark';
    await unreachable(key);
    await removeMark(key);
    expect(await repairLine(key)).toMatchObject({ unanswered: 1 });
    expect(await rawItem(key)).not.toHaveProperty('waiters');
  });

  it('an overdue task whose request has the permit by another row is notified of that permit', async () => {
    const key = 'another row';
    const first = await acquire({ key, holder: 'first', limit: 1 });
    const asked = { key, holder: 'b', requestId: 'r', limit: 1, parkSeconds: 5, ttlSeconds: 600 };
    const [one, two] = [await park(asked), await park(asked)];
    await release(first);
    clock.advance(6000);
    await repairLine(key);
    expect(grantOf(two.task)).toMatchObject({ leaseId: grantOf(one.task).leaseId, repeated: true });
  });

  it('an overdue task does not keep a permit from a caller whose process has no client of Step Functions', async () => {
    const key = 'no client';
    const { first } = await unreachable(key);
    const { stepFunctions } = dependencies;
    dependencies.stepFunctions = () => Promise.reject(new HoldfastError('Unavailable', 'no client'));
    try {
      await release(first);
      expect(await acquire({ key, holder: 'plain', limit: 1 })).toMatchObject({ holder: 'plain' });
    } finally {
      dependencies.stepFunctions = stepFunctions;
    }
    expect(await rows(key)).toHaveLength(1);
  });
});

describe('a run of the schedule over one line', () => {
  it('a run of the schedule hands off one line up to ten times if each hand-off runs out of time', async () => {
    const key = 'ten times';
    const first = await acquire({ key, limit: 1, ttlSeconds: 3600 });
    await park({ key, limit: 1 });
    // Three times before the line is served, and then before each try and within it.
    let looks = 0;
    const timeLeftMs = () => (++looks === 1 || (looks % 2 === 0 && looks < 100) ? 6000 : 1000);
    await repairLines(world.dependencies)({ key: lineKeyOf(key) }, call({ timeLeftMs }));
    expect(looks).toBe(3 + 2 * 10);
    await release(first);
  });

  it('a run of the schedule notifies late tasks among the first hundred waiters of a line', async () => {
    const key = 'a hundred';
    const first = await acquire({ key, limit: 1, ttlSeconds: 3600 });
    const { task } = await world.untold(first, { limit: 1, ttlSeconds: 3600 });
    clock.advance(10_000);
    const row = (index: number) => callerRow(lineKeyOf(key), `caller ${index + 100}`, { weight: { N: '1' } });
    await putTickets(Array.from({ length: 100 }, (_, index) => row(index)));
    expect(await world.repairLine(key)).toMatchObject({ told: 0 });
    await deleteWaiter(world.dependencies, { key: lineKeyOf(key), ticket: row(0).ticket.S }, call());
    expect(await world.repairLine(key)).toMatchObject({ told: 1 });
    expect(grantOf(task)).toMatchObject({ holder: 'untold' });
  });
});
