import { expect, it } from 'vitest';
import { call } from '../support/emulators/aws.ts';
import type { Task } from '../support/emulators/step-functions.ts';
import { exitingAfter } from '../support/faults/mortal.ts';
import { failure } from '../support/worlds/leases.ts';
import type { LineWorld } from './world.ts';

/** Who receives a lock that came free, whom the hand-off passes over, and which rows go. */
export async function handOffs(lineWorld: LineWorld) {
  const world = await lineWorld();
  const { acquire, release, breakGrant, park, grantOf, see, repair, rows, isMarked, requests, steps, heldKey, newKey } =
    world;
  const { timeline, answeredLate, precededBy } = world;
  const sent = (action: string) => steps.requests.filter((one) => one.action === action).length;
  const waits = (key: string, holder: string, waitSeconds = 20) =>
    exitingAfter(3, () => acquire({ key, holder, requestId: holder, waitSeconds }));

  it('a plain call takes an expired lock that is released during the call', async () => {
    const { key, first } = await heldKey({ ttlSeconds: 2 });
    await waits(key, 'exited', 1);
    timeline.advance(10_000);
    requests.faultsOf.UpdateItem = ['none', precededBy(() => release(first))];
    expect(await acquire({ key, holder: 'plain' })).toMatchObject({ holder: 'plain', repeated: false });
    expect(await isMarked(key)).toBe(false);
  });

  it('a release ends ten overdue tasks, and serves the task behind', async () => {
    const { key, first } = await heldKey();
    const overdue: Task[] = [];
    for (let nth = 0; nth < 12; nth++) overdue.push((await park({ key, holder: `o${nth}`, parkSeconds: 1 })).task);
    timeline.advance(1); // so that the next ticket is later
    const { task } = await park({ key, holder: 'next' });
    timeline.advance(1000);
    await release(first);
    expect([task.state, sent('SendTaskFailure')]).toEqual(['succeeded', 10]);
    expect(await isMarked(key)).toBe(false); // the schedule finds the other two
    await repair(key);
    expect([await rows(key), overdue.map(({ state }) => state)]).toEqual([[], Array(12).fill('failed')]);
  });

  it('a release deletes ten expired rows of callers, from the first millisecond on', async () => {
    const { key, first } = await heldKey();
    for (let nth = 0; nth < 12; nth++) await waits(key, `c${nth}`, 1);
    timeline.advance(1); // so that the next ticket is later
    const { task } = await park({ key, holder: 'next' });
    timeline.advance(5999);
    await release(first);
    expect([task.state, (await rows(key)).length, await isMarked(key)]).toEqual(['succeeded', 2, false]);
  });

  it.each([
    [2000, 'succeeded'],
    [1999, 'waiting'],
  ])('after a release with %i ms left the task is %s', async (leftMs, state) => {
    const { key, first } = await heldKey();
    const { task } = await park({ key });
    expect(await release(first, call({ timeLeftMs: () => leftMs }))).toMatchObject({ released: true });
    expect(task.state).toBe(state);
  });

  it.each(['release', 'break'])('a hand-off follows a first try without an answer, if that is a %s', async (how) => {
    const { key, first } = await heldKey();
    const { task } = await park({ key });
    requests.faultsOf.UpdateItem = ['lostReply'];
    if (how === 'release') expect(await release(first)).toMatchObject({ released: true });
    else expect(await breakGrant(first)).toMatchObject({ broken: true, fence: first.fence });
    expect(task.state).toBe('succeeded');
  });

  it('a hand-off that is answered after its expiry does not notify a task', async () => {
    const { key, first } = await heldKey();
    const { task } = await park({ key, ttlSeconds: 2 });
    requests.faultsOf.UpdateItem = ['none', answeredLate(2000)];
    expect(await release(first)).toMatchObject({ released: true });
    expect(sent('SendTaskSuccess')).toBe(0);
    const { fence } = await see(key);
    timeline.advance(1000);
    await repair(key);
    expect(grantOf(task).fence).toBeGreaterThan(fence ?? first.fence);
  });

  it('the schedule takes a lock over right after the margin', async () => {
    const key = newKey();
    await acquire({ key, ttlSeconds: 2 });
    const { task } = await park({ key });
    timeline.advance(2500);
    await repair(key);
    expect(task.state).toBe('waiting');
    timeline.advance(1);
    await repair(key);
    expect(task.state).toBe('succeeded');
  });

  it('the schedule serves the line if TTL has deleted the record', async () => {
    const key = newKey();
    await acquire({ key, ttlSeconds: 600 });
    const { task } = await park({ key });
    await world.deleteRecord(key);
    await repair(key);
    expect(task.state).toBe('succeeded');
  });

  it('the schedule puts back the mark that a third-party client removed', async () => {
    const { key, first } = await heldKey({ ttlSeconds: 600 });
    const { task } = await park({ key });
    await world.removeMark(key);
    await repair(key);
    expect([await isMarked(key), task.state]).toEqual([true, 'waiting']);
    await world.removeMark(key);
    await release(first);
    expect(task.state).toBe('waiting'); // the release did not read the line
    await repair(key);
    expect(task.state).toBe('succeeded');
  });

  it('the schedule passes over calls that did not claim their grants', async () => {
    const { key, first } = await heldKey();
    for (const holder of ['c1', 'c2']) {
      await waits(key, holder);
      timeline.advance(1);
    }
    const { task } = await park({ key, holder: 'next' });
    await release(first);
    for (const holder of ['c1', 'c2']) {
      expect(await see(key)).toMatchObject({ holder });
      timeline.advance(2501);
      await repair(key);
    }
    expect(grantOf(task)).toMatchObject({ holder: 'next' });
    expect(await failure(acquire({ key, holder: 'c1', requestId: 'c1' }))).toMatchObject({ code: 'LeaseHeld' });
  });
}
