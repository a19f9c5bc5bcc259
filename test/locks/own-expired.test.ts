import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { requestName } from '../../shared/permits/identity.ts';
import { Timeline } from '../support/time/timeline.ts';
import { failure } from '../support/worlds/leases.ts';
import { poolLineWorld } from '../support/worlds/permits-in-line.ts';

const timeline = new Timeline();
const { later } = timeline;
const world = await poolLineWorld({ clock: timeline });
const { acquire, release, heartbeat, park, read, rows, rawItem, putRaw, requests, steps } = world;
afterAll(() => steps.stop());
beforeEach(() => {
  requests.sent.length = 0;
  requests.faultsOf = {};
});

const own = { holder: 'R', requestId: 'r' };

it.each([2000, 2005])('a request whose own permit expires waits for the margin, and no longer (%i ms)', async (ms) => {
  const key = `margin ${ms}`;
  const before = await acquire({ key, ...own, limit: 1, ttlSeconds: 2 });
  timeline.advance(ms);
  requests.sent.length = 0;
  const [after] = await timeline.play(() => acquire({ key, ...own, limit: 1, waitSeconds: 4 }));
  expect(after).toMatchObject({ holder: 'R', repeated: false, previous: { holder: 'R', ended: 'expired' } });
  expect(after.fence).toBeGreaterThan(before.fence);
  expect(after.waitedMs).toBeLessThan(600);
  expect(requests.sent.length).toBeLessThan(40);
  expect([await rows(key), (await rawItem(key))?.mark]).toEqual([[], undefined]);
});

describe('a request whose own permit has expired, and that another holder leaves no room', () => {
  async function expired(key: string, ms = 2100) {
    const other = await acquire({ key, holder: 'h', limit: 5, ttlSeconds: 60 });
    const lost = await acquire({ key, ...own, limit: 5, ttlSeconds: 2 });
    timeline.advance(ms);
    requests.sent.length = 0;
    return { other, lost };
  }
  const waits = (key: string, waitSeconds = 4) => acquire({ key, ...own, limit: 1, ttlSeconds: 20, waitSeconds });
  const mark = async (key: string) => (await rawItem(key))?.mark?.S;

  it('the request waits in line like another', async () => {
    const { other } = await expired('crowded', 2800);
    const [granted, newcomer] = await timeline.play(
      () => waits('crowded'),
      () => later(1000, () => failure(acquire({ key: 'crowded', holder: 'new', limit: 3 }))),
      () => later(2000, () => release(other)),
    );
    expect(newcomer).toMatchObject({ code: 'LeaseHeld' });
    expect(granted).toMatchObject({ holder: 'R', used: 1, repeated: false });
    expect(granted.waitedMs).toBeLessThan(2600);
    expect(requests.sent.length).toBeLessThan(150);
  });

  it('the request receives its own permit if a heartbeat revives the permit', async () => {
    const { lost } = await expired('revived');
    const [granted] = await timeline.play(
      () => waits('revived'),
      () => later(1000, () => heartbeat({ ...lost, ttlSeconds: 60 })),
    );
    expect(granted).toMatchObject({ leaseId: lost.leaseId, fence: lost.fence, repeated: true });
    expect((await read('revived')).waiting).toBe(0);
  });

  it('the request gives the mark a new value, and puts the mark back if another client removes it, and keeps its position at its deadline', async () => {
    const key = 'new value';
    await expired(key);
    await park({ key, holder: 'before', limit: 1 });
    timeline.advance(1); // a later ticket
    const before = await mark(key);
    const [refused, after, , again] = await timeline.play(
      () => failure(waits(key, 2)),
      () => later(500, () => mark(key)),
      () => later(600, () => world.removeMark(key)),
      () => later(1600, () => mark(key)),
    );
    expect(after).not.toBe(before);
    expect(again).toBeDefined();
    const context = { place: 2, retryWith: { ticket: expect.any(String) } };
    expect(refused).toMatchObject({ code: 'LeaseHeld', context });
    expect(requests.sent.length).toBeLessThan(200);
  });

  it('the request leaves the mark alone if another call has put the mark back first', async () => {
    const key = 'put back';
    const { other } = await expired(key);
    let putBack: string | undefined;
    const [granted, , after] = await timeline.play(
      () => waits(key),
      () =>
        later(500, async () => {
          await world.removeMark(key);
          requests.faultsOf.UpdateItem = [
            world.precededBy(async () => {
              await park({ key, holder: 'behind', limit: 1 });
              putBack = await mark(key);
            }),
          ];
        }),
      () => later(1000, () => mark(key)),
      () => later(1500, () => release(other)),
    );
    expect(after).toBe(putBack);
    expect(granted).toMatchObject({ holder: 'R', repeated: false });
    expect(await rows(key)).toHaveLength(1);
  });
});

it('a request that asks again without waiting has the permit that its earlier ticket receives', async () => {
  const key = 'old place';
  await acquire({ key, holder: 'f1', limit: 2, ttlSeconds: 10 });
  await acquire({ key, holder: 'f2', limit: 2, ttlSeconds: 600 });
  const [refused] = await timeline.play(() => failure(acquire({ key, ...own, limit: 2, waitSeconds: 1 })));
  const { ticket } = refused.context.retryWith as { ticket: string };
  await world.keepWaiting(key, ticket, timeline.now() + 60_000);
  timeline.advance(1);
  await park({ key, holder: 'behind', limit: 2 });
  timeline.advance(12_000);
  requests.sent.length = 0;
  expect(await acquire({ key, ...own, limit: 2 })).toMatchObject({ holder: 'R', repeated: false, used: 2 });
  expect(world.sent('UpdateItem')).toBe(3); // its try, the grant, its claim
  expect(await rows(key)).toHaveLength(1);
  const { message } = await failure(acquire({ key, holder: 'third', limit: 3 }));
  expect(message).toBe('other waiters are in line');
});

it('a call in line keeps its ticket if its grant window ends before the write that grants is answered', async () => {
  const key = 'window over';
  await acquire({ key, holder: 'dead', limit: 1, ttlSeconds: 2 });
  const [granted] = await timeline.play(
    () => acquire({ key, ...own, limit: 1, waitSeconds: 20 }),
    () =>
      later(1000, async () => {
        const { task } = await park({ key, holder: 'behind', limit: 1 });
        requests.faultsOf.UpdateItem = [world.answeredLate(2501)];
        await timeline.sleep(9000);
        await release(world.grantOf(task));
      }),
  );
  expect(granted).toMatchObject({ holder: 'R', repeated: false });
  expect(granted.waitedMs).toBeLessThan(10_600);
});

it('a call in line looks at its usual pace if another client has overwritten its entry and removed the mark', async () => {
  const key = 'ruined';
  await acquire({ key, holder: 'h', limit: 1, ttlSeconds: 60 });
  const entry = `h${requestName({ ...own, principal: undefined })}`;
  const [refused] = await timeline.play(
    () => failure(acquire({ key, ...own, limit: 1, waitSeconds: 3 })),
    () =>
      later(500, async () => {
        const { mark: _, ...item } = (await rawItem(key)) ?? {};
        await putRaw({ ...item, [entry]: { S: 'odd' } });
        requests.sent.length = 0;
      }),
  );
  expect(refused).toMatchObject({ code: 'LeaseHeld' });
  expect(requests.sent.length).toBeLessThan(300);
});
