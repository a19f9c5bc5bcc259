import { describe, expect, it } from 'vitest';
import { dyingAfter } from '../support/faults/mortal.ts';
import type { LineWorld } from './world.ts';

/** A request may be in line twice: it holds one lock, and its second waiter blocks no other. */
export async function secondWaiters(lineWorld: LineWorld) {
  const world = await lineWorld();
  const {
    acquire,
    release,
    breakGrant,
    park,
    grantOf,
    see,
    repair,
    rows,
    isMarked,
    messages,
    steps,
    newKey,
    timeline,
  } = world;
  const asked = (key: string) => ({ key, holder: 'task', requestId: 'twice', ttlSeconds: 600 });

  /** Two tasks of one request wait behind a holder. */
  async function twoTasks(more: object = {}) {
    const key = newKey();
    const first = await acquire({ key, holder: 'first' });
    const one = await park({ ...asked(key), ...more });
    timeline.advance(1); // a later ticket
    const two = await park({ ...asked(key), ...more });
    return { key, first, one: one.task, two: two.task };
  }

  describe('a request with a second waiter', () => {
    it('that had the lock and gave it back is granted no second one by the schedule: its task receives LeaseLost', async () => {
      const key = newKey();
      await release(await acquire(asked(key)));
      steps.faults.SendTaskFailure = ['refused'];
      const { task } = await park(asked(key));
      expect(task.state).toBe('waiting');
      await repair(key);
      expect(task).toMatchObject({ state: 'failed', error: 'LeaseLost', cause: { reason: 'released' } });
      expect([await rows(key), await see(key)]).toMatchObject([[], { holder: undefined }]);
    });

    it.each(['released', 'broken'])(
      'whose grant was %s is granted no second one: its other task receives LeaseLost',
      async (reason) => {
        const { key, first, one, two } = await twoTasks();
        await release(first);
        await (reason === 'broken' ? breakGrant(grantOf(one)) : release(grantOf(one)));
        await repair(key);
        expect(two).toMatchObject({ state: 'failed', error: 'LeaseLost', cause: { reason } });
        expect([await rows(key), await isMarked(key)]).toEqual([[], false]);
      },
    );

    it('that holds the lock notifies its second task of that grant once the task is overdue, as a repeat', async () => {
      const { key, first, one, two } = await twoTasks({ parkSeconds: 5 });
      await release(first);
      timeline.advance(5000);
      await repair(key);
      const { leaseId } = grantOf(one);
      expect(grantOf(two)).toMatchObject({ leaseId, repeated: true, remainingMs: 600_000 });
      expect(await rows(key)).toEqual([]);
    });

    it('whose first task is gone grants the lock to its second task', async () => {
      const { key, first, one, two } = await twoTasks();
      one.state = 'timedOut';
      await release(first);
      expect(grantOf(two)).toMatchObject({ holder: 'task', repeated: false });
      expect(await rows(key)).toEqual([]);
    });

    it('that a call in line has not claimed yet is not sent to its second task', async () => {
      const key = newKey();
      const first = await acquire({ key, holder: 'first' });
      await dyingAfter(3, () => acquire({ ...asked(key), waitSeconds: 20 }));
      timeline.advance(1); // a later ticket
      const { task } = await park({ ...asked(key), parkSeconds: 1 });
      timeline.advance(999);
      await release(first);
      timeline.advance(1);
      await repair(key);
      expect(await see(key)).toMatchObject({ holder: 'task' });
      expect(task).toMatchObject({ state: 'failed', error: 'LeaseHeld' });
    });

    it('one of which was granted before its call claims it: a message looks again for the task in the other', async () => {
      const key = newKey();
      const first = await acquire({ key, holder: 'first' });
      await dyingAfter(3, () => acquire({ ...asked(key), waitSeconds: 20 }));
      timeline.advance(1); // a later ticket
      await park(asked(key));
      messages.length = 0;
      await release(first);
      expect(messages).toMatchObject([{}]);
    });
  });
}
