import { expect, it } from 'vitest';
import { before, exitingAfter, stepped } from '../support/faults/mortal.ts';
import { Timeline } from '../support/time/timeline.ts';
import { failure } from '../support/worlds/leases.ts';
import { lineWorld, resetting } from '../support/worlds/line.ts';

// Requests that replace older ones: docs/protocols/replace.md.

const timeline = new Timeline();
const world = await lineWorld({ clock: timeline });
stepped(world.dependencies.dynamodb);
const { acquire, release, heartbeat, read, rows, rawItem, park, steps, repairKey } = world;
resetting(world);

let keys = 0;
const newKey = () => `replace ${keys++}`;
const LONG = { ttlSeconds: 3600 };
const waiting = (key: string, holder: string, more: object = {}) => ({
  ...{ key, holder, requestId: `of ${holder}`, waitSeconds: 20, replace: 'waiting', ttlSeconds: 60 },
  ...more,
});
const superseded = (by: string) => ({ code: 'Superseded', context: { by } });
const outcomeOf = (work: Promise<{ holder: string }>) => work.then(({ holder }) => holder).catch((error) => error);

it('a newer request that waits replaces the older one', async () => {
  const key = newKey();
  const first = await acquire({ key, holder: 'first', ...LONG });
  const [older, newer] = await timeline.play(
    () => outcomeOf(acquire(waiting(key, 'older'))),
    () => timeline.later(1000, () => outcomeOf(acquire(waiting(key, 'newer')))),
    () => timeline.later(3000, () => release(first)),
  );
  expect(older).toMatchObject(superseded('newer'));
  expect(newer).toBe('newer');
  expect(await rows(key)).toEqual([]);
  expect((await rawItem(key))?.latest).toBeUndefined();
});

it('the last of three requests has the key, and a waiter without replace stays', async () => {
  const key = newKey();
  const first = await acquire({ key, holder: 'first', ...LONG });
  const [older, plain, newer, last] = await timeline.play(
    () => outcomeOf(acquire(waiting(key, 'older'))),
    () => timeline.later(500, () => outcomeOf(acquire(waiting(key, 'plain', { replace: undefined, ttlSeconds: 2 })))),
    () => timeline.later(1000, () => outcomeOf(acquire(waiting(key, 'newer')))),
    () => timeline.later(2000, () => outcomeOf(acquire(waiting(key, 'last')))),
    () => timeline.later(3000, () => release(first)),
  );
  expect([older, newer]).toMatchObject([superseded('newer'), superseded('last')]);
  expect([plain, last]).toEqual(['plain', 'last']);
});

it('a holder that said running is asked to stop', async () => {
  const key = newKey();
  const old = await acquire({ ...waiting(key, 'old', LONG), replace: 'running' });
  const [newer, seen] = await timeline.play(
    () => acquire({ ...waiting(key, 'newer'), replace: 'running' }),
    () =>
      timeline.later(1000, async () => {
        expect(await failure(heartbeat(old))).toMatchObject({
          code: 'LeaseLost',
          context: { reason: 'superseded', holder: null },
        });
        const state = await read({ key });
        expect(await release(old)).toEqual({ key, released: true });
        return state;
      }),
  );
  expect(seen).toMatchObject({ holder: 'old', ending: true, supersededBy: 'newer', brokenBy: null });
  expect(newer).toMatchObject({ holder: 'newer', previous: { holder: 'old', ended: 'superseded', by: 'newer' } });
  expect(newer.fence).toBeGreaterThan(old.fence);
});

it.each([
  ['waiting', 'running'],
  ['running', 'waiting'],
  [undefined, 'running'],
])('a holder that said %s is not asked by a newcomer that says %s', async (of, by) => {
  const key = newKey();
  const old = await acquire({ ...waiting(key, 'old', LONG), replace: of });
  const [newer] = await timeline.play(
    () => acquire({ ...waiting(key, 'newer'), replace: by }),
    () =>
      timeline.later(1000, async () => {
        expect(await heartbeat(old)).toMatchObject({ holder: 'old' });
        await release(old);
      }),
  );
  expect(newer).toMatchObject({ holder: 'newer', previous: { ended: 'released' } });
});

it('a parked task fails with Superseded if a newer one parks', async () => {
  const key = newKey();
  const first = await acquire({ key, holder: 'first', ...LONG });
  const older = await park({ key, holder: 'older', replace: 'waiting' });
  const newer = await park({ key, holder: 'newer', replace: 'waiting' });
  expect(older.task).toMatchObject({ state: 'failed', error: 'Superseded' });
  expect(await rows(key)).toHaveLength(1);
  await release(first);
  expect(world.grantOf(newer.task)).toMatchObject({ holder: 'newer' });
});

it('a retry of a superseded request fails with Superseded again', async () => {
  const key = newKey();
  await acquire({ key, holder: 'first', ...LONG });
  await timeline.play(
    () => outcomeOf(acquire(waiting(key, 'older', { waitSeconds: 2 }))),
    () => timeline.later(1000, () => outcomeOf(acquire(waiting(key, 'newer', { waitSeconds: 2 })))),
  );
  expect(await failure(acquire(waiting(key, 'older')))).toMatchObject(superseded('newer'));
});

it('a request that comes back between two calls learns that it was replaced', async () => {
  const key = newKey();
  const first = await acquire({ key, holder: 'first', ...LONG });
  const [held] = await timeline.play(() => failure(acquire(waiting(key, 'older', { waitSeconds: 1 }))));
  const { retryWith } = held.context as { retryWith: object };
  await release(first);
  expect((await rawItem(key))?.mark).toBeUndefined();
  const [newer] = await timeline.play(() => acquire(waiting(key, 'newer')));
  expect(newer).toMatchObject({ holder: 'newer' });
  expect(await failure(acquire(waiting(key, 'older', retryWith)))).toMatchObject(superseded('newer'));
});

it('the repair notifies a superseded task if the newcomer exited after its mark', async () => {
  const key = newKey();
  const old = await acquire({ ...waiting(key, 'old', LONG), replace: 'running' });
  const older = await park({ key, holder: 'older', replace: 'running' });
  steps.faults = { SendTaskFailure: ['throttled', 'throttled', 'throttled', 'throttled'] } as never;
  await park({ key, holder: 'newer', replace: 'running' });
  expect(older.task.state).toBe('waiting');
  steps.faults = {};
  await repairKey(key);
  expect(older.task).toMatchObject({ state: 'failed', error: 'Superseded' });
  expect(await failure(heartbeat(old))).toMatchObject({ context: { reason: 'superseded' } });
});

/** Whether the task has its grant, was superseded, or waits. */
const fateOf = ({ task }: Awaited<ReturnType<typeof park>>) => (task.output ? 'granted' : (task.error ?? 'waits'));

it('a newcomer during a release replaces the older task, or starts after it', async () => {
  for (let at = 0; ; at++) {
    const key = newKey();
    const first = await acquire({ key, holder: 'first', ...LONG });
    const older = await park({ key, holder: 'older', replace: 'waiting' });
    await park({ key, holder: 'plain' });
    let newer: Awaited<ReturnType<typeof park>> | undefined;
    const join = async () => {
      newer = await park({ key, holder: 'newer', replace: 'waiting' });
    };
    const happened = await before(at, join, () => release(first));
    if (!happened) return expect(at).toBeGreaterThan(2);
    const wasGranted = fateOf(older) === 'granted';
    expect(['granted', 'Superseded'], `before request ${at}`).toContain(fateOf(older));
    if (wasGranted) await release(world.grantOf(older.task));
    for (const row of await rows(key)) if (row.holder?.S === 'plain') await world.cancel(key, row.ticket?.S ?? '');
    const { h } = (await rawItem(key)) ?? {};
    if (h?.M?.h?.S === 'plain') await release({ key, leaseId: `e.${h.M.m?.S}.${h.M.i?.S}` });
    expect(fateOf(newer as never), `before request ${at}`).toBe('granted');
  }
});

it('an older request that joins again does not replace the newer one', async () => {
  const key = newKey();
  const first = await acquire({ key, holder: 'first', ...LONG });
  const asked = { key, holder: 'older', requestId: 'same', replace: 'waiting' };
  const older = await park(asked);
  const newer = await park({ key, holder: 'newer', replace: 'waiting' });
  await park(asked, older.task);
  expect([fateOf(older), fateOf(newer)]).toEqual(['Superseded', 'waits']);
  await release(first);
  expect(fateOf(newer)).toBe('granted');
});

it('a newcomer that exits at any step does not leave an older task waiting', async () => {
  for (let calls = 1; ; calls++) {
    const key = newKey();
    await acquire({ key, holder: 'first', ...LONG });
    const older = await park({ key, holder: 'older', replace: 'waiting' });
    const newcomer = () => park({ key, holder: 'newer', replace: 'waiting' });
    const { survived } = await exitingAfter(calls, newcomer);
    const hasJoined = (await rawItem(key))?.latest?.M?.h?.S === 'newer';
    await repairKey(key);
    expect(fateOf(older), `after request ${calls}`).toBe(hasJoined ? 'Superseded' : 'waits');
    if (survived) return expect(calls).toBeGreaterThan(2);
  }
});
