import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { deleteWaiter } from '../../shared/line/waiters.ts';
import { repairLines } from '../../shared/locks/repair.ts';
import { handOff } from '../../shared/permits/hand-off.ts';
import { readPool } from '../../shared/permits/read.ts';
import { call } from '../support/emulators/aws.ts';
import { poolLineWorld } from '../support/worlds/permits-in-line.ts';

const world = await poolLineWorld();
const { acquire, release, heartbeat, park, grantOf, dependencies, rows, clock, steps } = world;
const { putTickets, callerRow } = world;
afterAll(() => steps.stop());
beforeEach(() => {
  steps.requests.length = 0;
  steps.faults = {};
});

describe('a hand-off by an old record of a pool, with an overdue task that joined since', () => {
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

describe('a run of the schedule over one line', () => {
  it('a run of the schedule hands off one line up to ten times if each hand-off runs out of time', async () => {
    const key = 'ten times';
    const first = await acquire({ key, limit: 1, ttlSeconds: 3600 });
    await park({ key, limit: 1 });
    // Three times before the line is served, and then before each try and within it.
    let looks = 0;
    const timeLeftMs = () => (++looks === 1 || (looks % 2 === 0 && looks < 100) ? 6000 : 1000);
    await repairLines(world.dependencies)({ key: key }, call({ timeLeftMs }));
    expect(looks).toBe(3 + 2 * 10);
    await release(first);
  });

  it('a run of the schedule notifies late tasks among the first hundred waiters of a line', async () => {
    const key = 'a hundred';
    const first = await acquire({ key, limit: 1, ttlSeconds: 3600 });
    const { task } = await world.untold(first, { limit: 1, ttlSeconds: 3600 });
    clock.advance(10_000);
    const row = (index: number) => callerRow(key, `caller ${index + 100}`, { weight: { N: '1' } });
    await putTickets(Array.from({ length: 100 }, (_, index) => row(index)));
    expect(await world.repairLine(key)).toMatchObject({ told: 0 });
    await deleteWaiter(world.dependencies, { key: key, ticket: row(0).ticket.S }, call());
    expect(await world.repairLine(key)).toMatchObject({ told: 1 });
    expect(grantOf(task)).toMatchObject({ holder: 'untold' });
  });
});
