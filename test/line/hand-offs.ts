import { describe, expect, it } from 'vitest';
import { call } from '../support/emulators/aws.ts';
import type { Task } from '../support/emulators/step-functions.ts';
import { dyingAfter } from '../support/faults/mortal.ts';
import { failure } from '../support/worlds/leases.ts';
import type { LineWorld } from './world.ts';

type Send = () => Promise<unknown>;

/** Who receives a lock that came free, whom the hand-off passes over, and which rows go. */
export async function handOffs(lineWorld: LineWorld) {
  const world = await lineWorld();
  const { acquire, release, breakGrant, park, grantOf, see, repair, rows, isMarked, requests, steps, newKey } = world;
  const { timeline, answeredLate, precededBy } = world;
  const sent = (action: string) => steps.requests.filter((one) => one.action === action).length;
  const waits = (key: string, holder: string, waitSeconds = 20) =>
    dyingAfter(3, () => acquire({ key, holder, requestId: holder, waitSeconds }));

  describe('a release', () => {
    it('ends ten overdue tasks, grants the lock to the one behind them, and leaves the rest to the schedule', async () => {
      const key = newKey();
      const first = await acquire({ key });
      const overdue: Task[] = [];
      for (let nth = 0; nth < 12; nth++) overdue.push((await park({ key, holder: `o${nth}`, parkSeconds: 1 })).task);
      timeline.advance(1); // a later ticket
      const { task } = await park({ key, holder: 'next' });
      timeline.advance(1000);
      await release(first);
      expect([task.state, sent('SendTaskFailure')]).toEqual(['succeeded', 10]);
      expect(await isMarked(key)).toBe(false); // the schedule finds the other two
      await repair(key);
      expect([await rows(key), overdue.map(({ state }) => state)]).toEqual([[], Array(12).fill('failed')]);
    });

    it('deletes ten rows of callers, from the millisecond on in which their place is over', async () => {
      const key = newKey();
      const first = await acquire({ key });
      for (let nth = 0; nth < 12; nth++) await waits(key, `c${nth}`, 1);
      timeline.advance(1); // a later ticket
      const { task } = await park({ key, holder: 'next' });
      timeline.advance(5999);
      await release(first);
      expect([task.state, (await rows(key)).length, await isMarked(key)]).toEqual(['succeeded', 2, false]);
    });

    it('deletes the row of an overdue task that has ended by itself', async () => {
      const key = newKey();
      const first = await acquire({ key });
      const { task } = await park({ key, parkSeconds: 1 });
      task.state = 'timedOut';
      timeline.advance(1000);
      await release(first);
      expect([await rows(key), await isMarked(key)]).toEqual([[], false]);
    });

    it.each([
      [2000, 'succeeded'],
      [1999, 'waiting'],
    ])('with %i ms left: the task is %s', async (leftMs, state) => {
      const key = newKey();
      const first = await acquire({ key });
      const { task } = await park({ key });
      expect(await release(first, call({ timeLeftMs: () => leftMs }))).toMatchObject({ released: true });
      expect(task.state).toBe(state);
    });

    it.each(['release', 'break'])(
      'whose first try gets no answer hands on all the same, if it is a %s',
      async (how) => {
        const key = newKey();
        const first = await acquire({ key });
        const { task } = await park({ key });
        requests.faultsOf.UpdateItem = ['lostReply'];
        if (how === 'release') expect(await release(first)).toMatchObject({ released: true });
        else expect(await breakGrant(first)).toMatchObject({ broken: true, fence: first.fence });
        expect(task.state).toBe('succeeded');
      },
    );

    it('whose grant to a task gets no answer notifies the task', async () => {
      const key = newKey();
      const first = await acquire({ key });
      const { task } = await park({ key });
      requests.faultsOf.UpdateItem = ['none', 'lostReply'];
      expect(await release(first)).toMatchObject({ released: true });
      expect(grantOf(task).fence).toBeGreaterThan(first.fence);
    });

    it('whose grant to a task is answered late gives the task its whole ttl', async () => {
      const key = newKey();
      const first = await acquire({ key });
      const { task } = await park({ key, ttlSeconds: 20 });
      requests.faultsOf.UpdateItem = ['none', answeredLate(6000)];
      await release(first);
      expect(grantOf(task)).toMatchObject({ remainingMs: 20_000 });
      expect(grantOf(task).expiresAt).toBe(new Date(timeline.now() + 20_000).toISOString());
    });

    it('whose grant to a task is over before it is answered notifies no task, and the schedule grants it another', async () => {
      const key = newKey();
      const first = await acquire({ key });
      const { task } = await park({ key, ttlSeconds: 2 });
      requests.faultsOf.UpdateItem = ['none', answeredLate(2000)];
      expect(await release(first)).toMatchObject({ released: true });
      expect(sent('SendTaskSuccess')).toBe(0);
      const { fence } = await see(key);
      timeline.advance(1000);
      await repair(key);
      expect(grantOf(task).fence).toBeGreaterThan(fence ?? first.fence);
    });
  });

  it('a task that comes between a look at a line without waiters and the write that takes the mark off has its turn', async () => {
    const key = newKey();
    const first = await acquire({ key });
    await park({ key, parkSeconds: 1 });
    timeline.advance(1000);
    const late = steps.newTask();
    requests.faultsOf.Query = [
      async (send: Send) => {
        const seen = await send();
        await park({ key }, late);
        return seen;
      },
    ];
    await release(first);
    expect(late.state).toBe('succeeded');
  });

  it('a task whose ticket is written late finds what was released meanwhile, and does not wait for the schedule', async () => {
    const key = newKey();
    const first = await acquire({ key });
    requests.faultsOf.PutItem = [precededBy(() => release(first))];
    const { task, parked } = await park({ key });
    expect([parked, task.state]).toEqual([false, 'succeeded']);
  });

  it('a task whose ticket is written without an answer has one row, and one grant', async () => {
    const key = newKey();
    await release(await acquire({ key, holder: 'before' }));
    requests.faultsOf.PutItem = ['lostReply'];
    expect((await park({ key })).task.state).toBe('succeeded');
    expect(await rows(key)).toEqual([]);
  });

  describe('the schedule', () => {
    it('takes no lock from a holder whose margin is not over, and takes it in the millisecond after that', async () => {
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

    it('grants the lock to those in line if TTL has deleted the record', async () => {
      const key = newKey();
      await acquire({ key, ttlSeconds: 600 });
      const { task } = await park({ key });
      await world.deleteRecord(key);
      await repair(key);
      expect(task.state).toBe('succeeded');
    });

    it('puts back a mark that another client has dropped', async () => {
      const key = newKey();
      const first = await acquire({ key, ttlSeconds: 600 });
      const { task } = await park({ key });
      await world.removeMark(key);
      await repair(key);
      expect([await isMarked(key), task.state]).toEqual([true, 'waiting']);
      await world.removeMark(key);
      await release(first);
      expect(task.state).toBe('waiting'); // the release did not look at the line
      await repair(key);
      expect(task.state).toBe('succeeded');
    });

    it('passes over calls that did not claim their grants in time, and grants none of them another', async () => {
      const key = newKey();
      const first = await acquire({ key });
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
  });
}
