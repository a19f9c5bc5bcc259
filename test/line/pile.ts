import { describe, expect, it } from 'vitest';
import { call } from '../support/emulators/aws.ts';
import { failure } from '../support/worlds/leases.ts';
import type { LineWorld } from './world.ts';

/** Many rows of callers that gave up, which a hand-off passes or stops at. */
export async function piles(lineWorld: LineWorld) {
  const world = await lineWorld();
  const { acquire, release, park, see, repairAll, rows, isMarked, putTickets, callerRow, requests, newKey, timeline } =
    world;
  const queries = () => requests.sent.filter((sent) => sent === 'Query').length;
  /** Rows of callers that gave up, whose places are over from this moment on. */
  const over = (key: string, count: number) =>
    Array.from({ length: count }, (_, index) =>
      callerRow(key, `over ${String(index).padStart(5, '0')}`, {
        ...{ deadline: { N: '1' }, keep_until: { N: String(timeline.now()) } },
      }),
    );

  describe('a pile of rows of callers that are over', () => {
    it('goes by one run of the schedule, behind a holder that goes on', async () => {
      const key = newKey();
      await acquire({ key, ttlSeconds: 600 });
      await park({ key });
      await putTickets(over(key, 450));
      await repairAll();
      expect(await rows(key)).toHaveLength(1);
    });

    it.each([
      [5000, 0],
      [4999, 7],
    ])(
      'is left to the next run once a run has less than five seconds left: with %i ms, %i of 12 rows',
      async (leftMs, rest) => {
        const key = newKey();
        await acquire({ key, ttlSeconds: 600 });
        await putTickets(over(key, 12));
        let left = 40_000;
        requests.faultsOf.DeleteItem = [
          (send) => {
            left = leftMs;
            return send();
          },
        ];
        await repairAll(call({ timeLeftMs: () => left }));
        expect(await rows(key)).toHaveLength(rest);
        await repairAll();
        expect(await rows(key)).toEqual([]);
      },
    );

    it('of 818 rows: a release passes them, and grants the lock to the task behind', async () => {
      const key = newKey();
      const first = await acquire({ key });
      const { task } = await park({ key });
      await putTickets(over(key, 818));
      await release(first);
      expect(task.state).toBe('succeeded');
    });

    it('of 819 rows and more: a release stops there, the line keeps its mark, and the schedule gives the task behind its turn', async () => {
      const key = newKey();
      const first = await acquire({ key });
      const { task } = await park({ key });
      await putTickets(over(key, 850));
      requests.sent.length = 0;
      await release(first);
      expect(queries()).toBe(6);
      expect([await rows(key), await isMarked(key), task.state]).toMatchObject([{ length: 841 }, true, 'waiting']);
      expect((await see(key)).holder).toBeUndefined();

      expect(await failure(acquire({ key, holder: 'barger' }))).toMatchObject({ code: 'LeaseHeld' });
      timeline.advance(1); // a later ticket
      const next = await park({ key });
      expect([next.parked, next.task.state]).toEqual([true, 'waiting']);
      await repairAll();
      expect([task.state, next.task.state]).toEqual(['succeeded', 'waiting']);
      expect(await rows(key)).toHaveLength(1);
    });

    it('of callers that keep their places is none: the quota counts those, and a release passes them all', async () => {
      const key = newKey();
      const first = await acquire({ key });
      const { task } = await park({ key });
      const kept = { keep_until: { N: String(timeline.now() + 1) } };
      await putTickets(over(key, 850).map((row) => ({ ...row, ...kept })));
      await release(first);
      expect(task.state).toBe('succeeded');
    });

    it('ends the count of those who wait, for a reader and for a call that leaves', async () => {
      const key = newKey();
      await acquire({ key, ttlSeconds: 600 });
      await park({ key });
      await putTickets(over(key, 450));
      expect(await see(key)).toMatchObject({ waiting: 0 });
      const waits = () => failure(acquire({ key, holder: 'leaves', waitSeconds: 1 }));
      const [left] = await timeline.play(waits);
      expect(left).toMatchObject({ code: 'LeaseHeld', context: { waiting: 0, place: 1 } });
      await repairAll();
      expect(await see(key)).toMatchObject({ waiting: 1 });
    });

    it('counts to its end if it is smaller', async () => {
      const key = newKey();
      await acquire({ key, ttlSeconds: 600 });
      await park({ key });
      await putTickets(over(key, 199));
      expect(await see(key)).toMatchObject({ waiting: 1 });
    });
  });
}
