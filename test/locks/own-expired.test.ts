import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { Timeline } from '../support/time/timeline.ts';
import { failure } from '../support/worlds/leases.ts';
import { permitLineWorld } from '../support/worlds/permits-in-line.ts';

const timeline = new Timeline();
const { later } = timeline;
const world = await permitLineWorld({ clock: timeline });
const { acquire, heartbeat, park, read, rows, rawItem, requests, steps } = world;
afterAll(() => steps.stop());
beforeEach(() => {
  requests.sent.length = 0;
  requests.faultsOf = {};
});

const own = { holder: 'R', requestId: 'r' };

it.each([2000, 2005])('a request whose own permit expires waits for the margin (%i ms)', async (ms) => {
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

describe('an expired own permit without room', () => {
  async function expired(key: string, ms = 2100) {
    const other = await acquire({ key, holder: 'h', limit: 5, ttlSeconds: 60 });
    const lost = await acquire({ key, ...own, limit: 5, ttlSeconds: 2 });
    timeline.advance(ms);
    requests.sent.length = 0;
    return { other, lost };
  }
  const waits = (key: string, waitSeconds = 4) => acquire({ key, ...own, limit: 1, ttlSeconds: 20, waitSeconds });

  it('the request receives its own permit if a heartbeat revives the permit', async () => {
    const { lost } = await expired('revived');
    const [granted] = await timeline.play(
      () => waits('revived'),
      () => later(1000, () => heartbeat({ ...lost, ttlSeconds: 60 })),
    );
    expect(granted).toMatchObject({ leaseId: lost.leaseId, fence: lost.fence, repeated: true });
    expect((await read('revived')).waiting).toBe(0);
  });
});

it('a request has the permit that its earlier ticket receives', async () => {
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
  expect(message).toBe(`${key} has other waiters in line`);
});
