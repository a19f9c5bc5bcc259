import { expect, it } from 'vitest';
import { callInHurry, type LineWorld } from './world.ts';

/** Tasks whose deadline has passed, and which a hand-off or the schedule ends. */
export async function overdueTasks(lineWorld: LineWorld) {
  const world = await lineWorld();
  const { acquire, release, park, repair, grantOf, rows, isMarked, removeMark, handOffLater } = world;
  const { steps, newKey, timeline } = world;

  it('the LeaseHeld of an overdue task names the current holder', async () => {
    const key = newKey();
    const before = await acquire({ key, holder: 'before' });
    const handOff = await handOffLater(key);
    await release(before);
    const { fence } = await acquire({ key, holder: 'now', ttlSeconds: 3600 });
    const { task } = await park({ key, parkSeconds: 1 });
    timeline.advance(1001);
    await handOff();
    const detail = expect.stringMatching(/ is held by now until .*Z.*\. The task has waited for its parkSeconds$/);
    expect(task).toMatchObject({ state: 'failed', error: 'LeaseHeld', cause: { key, holder: 'now', fence, detail } });
    expect(await rows(key)).toEqual([]);
  });

  it('a hand-off with an old record leaves an overdue task to its granter', async () => {
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

  /** A held lock whose only waiter is overdue, while Step Functions refuses each message. */
  async function unreachable() {
    const key = newKey();
    const first = await acquire({ key, holder: 'first', ttlSeconds: 600 });
    const parked = await park({ key, holder: 'unreachable', parkSeconds: 1 });
    timeline.advance(1000);
    steps.faults.SendTaskFailure = Array.from({ length: 20 }, () => 'denied' as const);
    return { ...parked, key, first };
  }

  it('an overdue task that cannot be notified does not keep a lock from others', async () => {
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

  it('a plain caller takes a marked lock if its only waiter cannot be notified', async () => {
    const { key, first } = await unreachable();
    await release(first, callInHurry);
    expect(await isMarked(key)).toBe(true);
    expect(await acquire({ key, holder: 'plain' })).toMatchObject({ holder: 'plain' });
  });

  it('the schedule does not put the mark back for an unreachable overdue task', async () => {
    const { key } = await unreachable();
    await removeMark(key);
    expect(await repair(key)).toMatchObject({ unanswered: 1 });
    expect(await isMarked(key)).toBe(false);
  });
}
