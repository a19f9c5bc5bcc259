import { beforeEach, describe, expect, it } from 'vitest';
import { HoldfastError } from '../../shared/errors.ts';
import { call } from '../support/emulators/aws.ts';
import type { LineWorld } from './world.ts';

/** With so little time left, a release leaves the line to others: the lock is free, and keeps its mark. */
const late = call({ timeLeftMs: () => 1999 });

/** Tasks whose deadline has passed, and which a hand-off or the schedule ends. */
export async function overdueTasks(lineWorld: LineWorld) {
  const world = await lineWorld();
  const { acquire, release, park, cancel, repair, grantOf, rows, isMarked, removeMark, handOffLater } = world;
  const { dependencies, steps, newKey, timeline } = world;
  beforeEach(() => {
    steps.onTheWay = async () => {};
  });

  describe('a hand-off by an old record, with an overdue task that joined since', () => {
    it('the LeaseHeld of an overdue task names the current holder, even if the hand-off has an old record', async () => {
      const key = newKey();
      const before = await acquire({ key, holder: 'before' });
      const handOff = await handOffLater(key);
      await release(before);
      const { fence } = await acquire({ key, holder: 'now', ttlSeconds: 3600 });
      const { task } = await park({ key, parkSeconds: 1 });
      timeline.advance(1001);
      await handOff();
      expect(task).toMatchObject({ state: 'failed', error: 'LeaseHeld', cause: { key, holder: 'now', fence } });
      expect(await rows(key)).toEqual([]);
    });

    it('a hand-off with an old record sends no message to an overdue task that has just received the lock, because the granting call sends the message', async () => {
      const key = newKey();
      const before = await acquire({ key, ttlSeconds: 3600 });
      const handOff = await handOffLater(key);
      const { task } = await park({ key, parkSeconds: 1, ttlSeconds: 3600 });
      timeline.advance(999);
      let handOffs = 0;
      steps.onTheWay = async (action) => {
        if (action !== 'SendTaskSuccess') return;
        timeline.advance(400); // now its deadline has passed
        await handOff();
        handOffs++;
      };
      expect(await release(before)).toMatchObject({ released: true });
      expect([handOffs, steps.requests.map(({ action }) => action)]).toEqual([1, ['SendTaskSuccess']]);
      expect(grantOf(task).fence).toBeGreaterThan(before.fence);
    });
  });

  describe('a task that is overdue and cannot be notified', () => {
    /** A held lock whose only waiter is overdue, while Step Functions refuses each message. */
    async function unreachable() {
      const key = newKey();
      const first = await acquire({ key, holder: 'first', ttlSeconds: 600 });
      const parked = await park({ key, holder: 'unreachable', parkSeconds: 1 });
      timeline.advance(1000);
      steps.faults.SendTaskFailure = Array.from({ length: 20 }, () => 'denied' as const);
      return { ...parked, key, first };
    }

    it('an overdue task that cannot be notified does not keep a plain caller from the free lock, and the schedule notifies the task later', async () => {
      const { key, first, task } = await unreachable();
      await release(first);
      expect(await isMarked(key)).toBe(false);
      expect(await acquire({ key, holder: 'plain' })).toMatchObject({ holder: 'plain', repeated: false });
      expect(await rows(key)).toHaveLength(1);
      steps.faults = {};
      await repair(key);
      expect(task).toMatchObject({ state: 'failed', error: 'LeaseHeld' });
      expect(await rows(key)).toEqual([]);
    });

    it('a plain caller hands off a free lock with a mark to itself if the only waiter is an overdue task that cannot be notified', async () => {
      const { key, first } = await unreachable();
      await release(first, late);
      expect(await isMarked(key)).toBe(true);
      expect(await acquire({ key, holder: 'plain' })).toMatchObject({ holder: 'plain' });
    });

    it('the schedule puts no mark back for an overdue task that cannot be notified', async () => {
      const { key } = await unreachable();
      await removeMark(key);
      expect(await repair(key)).toMatchObject({ unanswered: 1 });
      expect(await isMarked(key)).toBe(false);
    });

    it('an overdue task does not keep the lock from a caller whose process has no client of Step Functions', async () => {
      const { key, first } = await unreachable();
      const { stepFunctions } = dependencies;
      dependencies.stepFunctions = () => Promise.reject(new HoldfastError('Unavailable', 'no client'));
      try {
        await release(first);
        expect(await acquire({ key, holder: 'plain' })).toMatchObject({ holder: 'plain' });
      } finally {
        dependencies.stepFunctions = stepFunctions;
      }
      expect(await rows(key)).toHaveLength(1);
    });

    it('an overdue task that cannot be notified keeps its ticket if an operator cancels the ticket', async () => {
      const { key, first, ticket } = await unreachable();
      await release(first);
      await expect(cancel(key, ticket)).rejects.toMatchObject({ code: 'Unavailable' });
      expect(await rows(key)).toHaveLength(1);
    });
  });
}
