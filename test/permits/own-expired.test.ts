import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { requestName } from '../../shared/permits/identity.ts';
import { Timeline } from '../support/time/timeline.ts';
import { failure } from '../support/worlds/leases.ts';
import { poolLineWorld } from '../support/worlds/permits-in-line.ts';

const timeline = new Timeline();
const { later } = timeline;
const world = await poolLineWorld({ clock: timeline });
const { acquire, release, heartbeat, read, rows, rawItem, putRaw, requests, steps } = world;
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
  expect([await rows(key), (await rawItem(key))?.waiters]).toEqual([[], undefined]);
});

it('a request whose own permit has expired, and that others leave no room, is in line like another', async () => {
  const key = 'crowded';
  const other = await acquire({ key, holder: 'h', limit: 5, ttlSeconds: 60 });
  await acquire({ key, ...own, limit: 5, ttlSeconds: 2 });
  timeline.advance(2800);
  requests.sent.length = 0;
  const [granted, newcomer] = await timeline.play(
    () => acquire({ key, ...own, limit: 1, ttlSeconds: 20, waitSeconds: 4 }),
    () => later(1000, () => failure(acquire({ key, holder: 'new', limit: 3 }))),
    () => later(2000, () => release(other)),
  );
  expect(newcomer).toMatchObject({ code: 'LeaseHeld' });
  expect(granted).toMatchObject({ holder: 'R', used: 1, repeated: false });
  expect(granted.waitedMs).toBeLessThan(2600);
  expect(requests.sent.length).toBeLessThan(150);
});

it('a request whose own permit is revived while it waits is answered with that', async () => {
  const key = 'revived';
  await acquire({ key, holder: 'h', limit: 5, ttlSeconds: 60 });
  const { leaseId, fence } = await acquire({ key, ...own, limit: 5, ttlSeconds: 2 });
  timeline.advance(2100);
  const [granted] = await timeline.play(
    () => acquire({ key, ...own, limit: 1, ttlSeconds: 20, waitSeconds: 4 }),
    () => later(1000, () => heartbeat({ key, leaseId, ttlSeconds: 60 })),
  );
  expect(granted).toMatchObject({ leaseId, fence, repeated: true });
  expect((await read(key)).waiting).toBe(0);
});

it('a request whose own permit has expired leaves with its place when its time is over', async () => {
  const key = 'leaves';
  await acquire({ key, holder: 'h', limit: 5, ttlSeconds: 60 });
  await acquire({ key, ...own, limit: 5, ttlSeconds: 2 });
  timeline.advance(2800);
  requests.sent.length = 0;
  const [refused] = await timeline.play(() => failure(acquire({ key, ...own, limit: 1, waitSeconds: 4 })));
  expect(refused).toMatchObject({
    code: 'LeaseHeld',
    context: { place: 1, retryWith: { ticket: expect.any(String) } },
  });
  expect(requests.sent.length).toBeLessThan(200);
});

it('a request that asks again without waiting, whose old place gets the permit, has it', async () => {
  const key = 'old place';
  await acquire({ key, holder: 'f1', limit: 2, ttlSeconds: 10 });
  await acquire({ key, holder: 'f2', limit: 2, ttlSeconds: 600 });
  const [refused] = await timeline.play(() => failure(acquire({ key, ...own, limit: 2, waitSeconds: 1 })));
  const { ticket } = refused.context.retryWith as { ticket: string };
  await world.keepWaiting(key, ticket, timeline.now() + 60_000);
  timeline.advance(1);
  await world.park({ key, holder: 'behind', limit: 2 });
  timeline.advance(12_000);
  requests.sent.length = 0;
  expect(await acquire({ key, ...own, limit: 2 })).toMatchObject({ holder: 'R', repeated: false, used: 2 });
  expect(requests.sent.filter((command) => command === 'UpdateItem')).toHaveLength(3); // its try, the grant, its claim
  expect(await rows(key)).toHaveLength(1);
  const { message } = (await acquire({ key, holder: 'third', limit: 3 }).catch((error: Error) => error)) as Error;
  expect(message).toBe('others are in line: the holders weigh 2, and the limit is 3');
});

it('a call in line keeps its place, where its time to claim a permit is over before the write that grants it is answered', async () => {
  const key = 'window over';
  await acquire({ key, holder: 'dead', limit: 1, ttlSeconds: 2 });
  const [granted] = await timeline.play(
    () => acquire({ key, ...own, limit: 1, waitSeconds: 20 }),
    () =>
      later(1000, async () => {
        const { task } = await world.park({ key, holder: 'behind', limit: 1 });
        requests.faultsOf.UpdateItem = [world.answeredLate(2501)];
        await timeline.sleep(9000);
        await release(world.grantOf(task));
      }),
  );
  expect(granted).toMatchObject({ holder: 'R', repeated: false });
  expect(granted.waitedMs).toBeLessThan(10_600);
});

describe('the mark of a line to which a request comes whose own permit has expired', () => {
  /** Others have no room beside h. */
  async function expired(key: string) {
    const other = await acquire({ key, holder: 'h', limit: 5, ttlSeconds: 60 });
    await acquire({ key, ...own, limit: 5, ttlSeconds: 2 });
    timeline.advance(2100);
    return other;
  }
  const waits = (key: string, waitSeconds: number) => acquire({ key, ...own, limit: 1, ttlSeconds: 20, waitSeconds });

  it('takes a new value', async () => {
    const key = 'new value';
    await expired(key);
    await world.park({ key, holder: 'before', limit: 1 });
    const before = (await rawItem(key))?.waiters?.N;
    const [, after] = await timeline.play(
      () => failure(waits(key, 1)),
      () => later(500, async () => (await rawItem(key))?.waiters?.N),
    );
    expect(Number(after)).toBe(Number(before) + 1);
  });

  it('is put back where another client has removed it', async () => {
    const key = 'removed';
    await expired(key);
    const [, , marked] = await timeline.play(
      () => failure(waits(key, 2)),
      () => later(500, () => world.removeMark(key)),
      () => later(1500, async () => (await rawItem(key))?.waiters),
    );
    expect(marked).toBeDefined();
  });

  it('is left alone where another call has put it back first', async () => {
    const key = 'put back';
    const other = await expired(key);
    let putBack: string | undefined;
    const [granted, , after] = await timeline.play(
      () => waits(key, 4),
      () =>
        later(500, async () => {
          await world.removeMark(key);
          requests.faultsOf.UpdateItem = [
            async (send) => {
              requests.faultsOf = {};
              await world.park({ key, holder: 'behind', limit: 1 });
              putBack = (await rawItem(key))?.waiters?.N;
              return send();
            },
          ];
        }),
      () => later(1000, async () => (await rawItem(key))?.waiters?.N),
      () => later(1500, () => release(other)),
    );
    expect(after).toBe(putBack);
    expect(granted).toMatchObject({ holder: 'R', repeated: false });
    expect(await rows(key)).toHaveLength(1);
  });
});

it('a call in line whose entry another client has written in a shape of its own, without the mark, looks at its usual pace', async () => {
  const key = 'ruined';
  await acquire({ key, holder: 'h', limit: 1, ttlSeconds: 60 });
  const entry = `h${requestName({ ...own, principal: undefined })}`;
  const [refused] = await timeline.play(
    () => failure(acquire({ key, ...own, limit: 1, waitSeconds: 3 })),
    () =>
      later(500, async () => {
        const { waiters: _, ...item } = (await rawItem(key)) ?? {};
        await putRaw({ ...item, [entry]: { S: 'odd' } });
        requests.sent.length = 0;
      }),
  );
  expect(refused).toMatchObject({ code: 'LeaseHeld' });
  expect(requests.sent.length).toBeLessThan(300);
});
