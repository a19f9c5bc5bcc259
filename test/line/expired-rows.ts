import { expect, it } from 'vitest';
import { call } from '../support/emulators/aws.ts';
import { isFull } from '../support/time/rounds.ts';
import { failure } from '../support/worlds/leases.ts';
import type { LineWorld } from './world.ts';

/** Many expired rows, which a hand-off passes or stops at. */
export async function expiredRows(lineWorld: LineWorld) {
  const world = await lineWorld();
  const { acquire, release, park, see, repairAll, rows, isMarked, putTickets, callerRow, requests } = world;
  const { heldKey, newKey, timeline } = world;
  const queries = () => requests.sent.filter((sent) => sent === 'Query').length;
  /** Rows of callers that left, which are expired from this moment on. */
  const over = (key: string, count: number) =>
    Array.from({ length: count }, (_, index) =>
      callerRow(key, `over ${String(index).padStart(5, '0')}`, {
        ...{ deadline: { N: '1' }, keep_until: { N: String(timeline.now()) } },
      }),
    );

  it('one run deletes all expired rows behind a holder', async () => {
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
  ])('a run with %i ms left leaves %i of 12 expired rows', async (leftMs, rest) => {
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
  });

  it('a release stops at 819 expired rows, and the schedule goes on', async () => {
    const { key, first } = await heldKey();
    const { task } = await park({ key });
    await putTickets(over(key, 850));
    requests.sent.length = 0;
    await release(first);
    expect(queries()).toBe(6);
    expect([await rows(key), await isMarked(key), task.state]).toMatchObject([{ length: 841 }, true, 'waiting']);
    expect((await see(key)).holder).toBeUndefined();

    expect(await failure(acquire({ key, holder: 'barger' }))).toMatchObject({ code: 'LeaseHeld' });
    timeline.advance(1); // so that the next ticket is later
    const next = await park({ key });
    expect([next.parked, next.task.state]).toEqual([true, 'waiting']);
    await repairAll();
    expect([task.state, next.task.state]).toEqual(['succeeded', 'waiting']);
    expect(await rows(key)).toHaveLength(1);
  });

  it.runIf(isFull)('a release passes any number of callers that keep their positions', async () => {
    const { key, first } = await heldKey();
    const { task } = await park({ key });
    const kept = { keep_until: { N: String(timeline.now() + 1) } };
    await putTickets(over(key, 850).map((row) => ({ ...row, ...kept })));
    await release(first);
    expect(task.state).toBe('succeeded');
  });

  it('a reader and a leaving call do not count waiters behind many expired rows', async () => {
    const key = newKey();
    await acquire({ key, ttlSeconds: 600 });
    await park({ key });
    await putTickets(over(key, 450));
    expect(await see(key)).toMatchObject({ waiting: 0 });
    const waits = () => failure(acquire({ key, holder: 'leaves', waitSeconds: 1 }));
    const [left] = await timeline.play(waits);
    expect(left).toMatchObject({ code: 'LeaseHeld', context: { waiting: 0, place: 1 } });
    timeline.advance(5000);
    await repairAll();
    expect(await see(key)).toMatchObject({ waiting: 1 });
  });

  it('a reader counts the waiters behind fewer expired rows', async () => {
    const key = newKey();
    await acquire({ key, ttlSeconds: 600 });
    await park({ key });
    await putTickets(over(key, 199));
    expect(await see(key)).toMatchObject({ waiting: 1 });
  });
}
