import { describe, expect, it } from 'vitest';
import { call } from '../support/emulators/aws.ts';
import { dyingAfter } from '../support/faults/mortal.ts';
import type { LineWorld } from './world.ts';

type Send = () => Promise<unknown>;

export async function meetings(lineWorld: LineWorld) {
  const world = await lineWorld();
  const {
    acquire,
    release,
    repair,
    park,
    rows,

    requests,
    steps,
    newKey,
    timeline,
    steady,
    refusedAfter,
    precededBy,
  } = world;
  const { now, later } = timeline;

  const WINDOW_MS = 2000;
  /** When a steady call looks for the first time. */
  const FIRST_LOOK_MS = 25;

  const asked = { holder: 'b', requestId: 'r', ttlSeconds: 10 };
  const played = async <T>(waits: () => Promise<T>) => (await timeline.play(waits))[0];
  /** The lock is held for a second already, so that the first look is the same for both. */
  const held = async (key: string, ttlSeconds = 60) => {
    const first = await acquire({ key, holder: 'first', ttlSeconds });
    timeline.advance(1000);
    return first;
  };
  /** In the first look of a call that comes now, something happens before DynamoDB reads. The call hears of it so long after its arrival. */
  function inFirstLook(what: () => Promise<unknown>, answeredAfterMs?: number) {
    const from = now();
    requests.faultsOf.GetItem = [
      async (send) => {
        await what();
        const seen = await send();
        if (answeredAfterMs !== undefined) timeline.advance(from + answeredAfterMs - now());
        return seen;
      },
    ];
  }

  it('a call in line leaves in the very moment in which its time is over', async () => {
    const key = newKey();
    await held(key);
    const refused = await played(() => refusedAfter(key, { waitSeconds: 1 }));
    expect(refused).toMatchObject({ code: 'LeaseHeld', afterMs: 1000, context: { holder: 'first', place: 1 } });
  });

  describe('a call in line that finds the grant of its request', () => {
    it('given back by another call learns that, and leaves no place, though its own is still there', async () => {
      const key = newKey();
      const first = await held(key);
      await timeline.play(() => dyingAfter(3, () => acquire({ key, ...asked, waitSeconds: 20 })));
      timeline.advance(1); // a later ticket
      let left = 0;
      inFirstLook(async () => {
        await release(first);
        const grant = await acquire({ key, ...asked });
        await release(grant, call({ timeLeftMs: () => 1999 })); // too little to look at the line
        left = (await rows(key)).length;
      });
      const refused = await played(() => refusedAfter(key));
      expect(refused).toMatchObject({ code: 'LeaseLost', context: { reason: 'released' } });
      expect(left).toBe(1);
      expect(await rows(key)).toEqual([]);
    });

    it('unclaimed in the moment in which its window is over has it at once', async () => {
      const key = newKey();
      const first = await held(key);
      inFirstLook(() => release(first), FIRST_LOOK_MS + WINDOW_MS);
      const granted = await played(() => steady(key));
      expect(granted).toMatchObject({ repeated: false, waitedMs: FIRST_LOOK_MS + WINDOW_MS, remainingMs: 10_000 });
    });
  });

  describe('a call in line that leaves', () => {
    /** Too little to look at the line. */
    const short = () => call({ timeLeftMs: () => 1999 });
    /** Its first look shows what is no longer so when its time in line is over. */
    const late = async (send: Send) => {
      const seen = await send();
      timeline.advance(1000);
      return seen;
    };
    const comes = (key: string, requestId: string) =>
      dyingAfter(3, () => acquire({ key, ...asked, requestId, waitSeconds: 20 }));
    const leaving = (key: string, reads: ReturnType<typeof precededBy>) => {
      requests.faultsOf.GetItem = [late, 'none', reads]; // its first look, and then its place and the record
      return steady(key, { waitSeconds: 1 });
    };

    it('hands a free lock on, though its own grant has just been given back', async () => {
      const key = newKey();
      const first = await held(key);
      const grants = async (send: Send) => {
        const seen = await send();
        await release(first);
        timeline.advance(1000);
        return seen;
      };
      const [refused, { task }] = await timeline.play(
        () => {
          const ends = precededBy(async () => release(await acquire({ key, ...asked }), short()));
          requests.faultsOf.GetItem = [grants, 'none', ends];
          return refusedAfter(key, { waitSeconds: 1 });
        },
        () => later(10, () => park({ key, holder: 'behind' })),
      );
      expect(refused).toMatchObject({ code: 'LeaseLost', context: { reason: 'released' } });
      expect(task.state).toBe('succeeded');
    });

    it('has the lock that its own hand-off grants to an older place of its request', async () => {
      const key = newKey();
      const first = await held(key);
      await timeline.play(() => comes(key, 'r'));
      timeline.advance(1);
      const granted = await played(() =>
        leaving(
          key,
          precededBy(() => release(first, short())),
        ),
      );
      expect(granted).toMatchObject({ holder: 'b', repeated: false });
    });
  });

  describe('a call in line that finds the lock free', () => {
    it('takes it, and ends the task before it that never heard of its grant', async () => {
      const key = newKey();
      const first = await held(key);
      const ofTask = { key, holder: 'task', requestId: 'of task' };
      const { task } = await park(ofTask);
      steps.faults.SendTaskSuccess = ['refused', 'refused', 'refused'];
      await release(first);
      steps.faults = {};
      timeline.advance(1); // a later ticket
      inFirstLook(async () => {
        const grant = await acquire(ofTask);
        await release(grant, call({ timeLeftMs: () => 1999 })); // too little to look at the line
        states.push(task.state);
      });
      const states: string[] = [];
      const granted = await played(() => steady(key));
      expect(granted).toMatchObject({ holder: 'b' });
      expect(states).toEqual(['waiting']);
      expect(task).toMatchObject({ state: 'failed', error: 'LeaseLost' });
    });

    it('and the line empty leaves at once, because its place is gone', async () => {
      const key = newKey();
      const execution = 'arn:aws:states:us-east-1:123456789012:execution:machine:empty';
      const first = await held(key);
      let tickets = 0;
      inFirstLook(async () => {
        tickets = (await world.executionEnded(execution)).tickets;
        await release(first);
      });
      const refused = await played(() => refusedAfter(key, { execution }));
      expect(tickets).toBe(1);
      expect(refused).toMatchObject({ code: 'LeaseHeld', afterMs: FIRST_LOOK_MS });
      expect(refused.context).not.toHaveProperty('place');
    });
  });

  describe('a call in line that finds the lock held without its mark', () => {
    it('and has it by the time that it puts the mark back claims it at once', async () => {
      const key = newKey();
      const first = await held(key);
      const granted = async () => {
        await repair(key);
        await release(first);
      };
      inFirstLook(async () => {
        await world.removeMark(key);
        requests.faultsOf.UpdateItem = [precededBy(granted)];
      });
      expect(await played(() => steady(key))).toMatchObject({
        ...{ holder: 'b', repeated: false, waitedMs: FIRST_LOOK_MS, remainingMs: 10_000 },
      });
    });
  });

  it('a task whose expired grant is taken over between its two marks is granted the lock after the new holder', async () => {
    const key = newKey();
    const again = { key, ...asked };
    await acquire({ ...again, ttlSeconds: 2 });
    timeline.advance(2600); // the margin is over too
    const others: Awaited<ReturnType<typeof acquire>>[] = [];
    const takesOver = precededBy(async () => void others.push(await acquire({ key, holder: 'other', ttlSeconds: 60 })));
    requests.faultsOf.UpdateItem = ['none', takesOver]; // the first mark, and the second
    const { task, parked } = await park(again);
    expect([parked, task.state, await world.isMarked(key)]).toEqual([true, 'waiting', true]);
    for (const other of others) await release(other);
    expect(world.grantOf(task)).toMatchObject({ holder: 'b', repeated: false });
  });
}
