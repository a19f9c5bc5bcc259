import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { WINDOW_MS } from '../../shared/line/times.ts';
import { Timeline } from '../support/time/timeline.ts';
import { failure } from '../support/worlds/leases.ts';
import { poolLineWorld } from '../support/worlds/permits-in-line.ts';

const timeline = new Timeline();
const { now, sleep, later } = timeline;
const world = await poolLineWorld({ clock: timeline });
const { acquire, release, read, rows, rawItem, form, requests, repairLine, steps, dependencies } = world;
afterAll(() => steps.stop());
beforeEach(() => {
  requests.faultsOf = {};
});

let keys = 0;
const newKey = () => `pool ${keys++}`;
const waiting = (key: string, holder: string, more: object = {}) =>
  acquire({ key, holder, limit: 2, ttlSeconds: 10, waitSeconds: 20, ...more });
/** Acquires, holds for so long, and gives back. */
const turn = async (key: string, holder: string, holdMs: number, more: object = {}) => {
  const grant = await waiting(key, holder, more);
  const grantedAt = now();
  await sleep(holdMs);
  await release(grant);
  return { ...grant, grantedAt, releasedAt: now() };
};
type Turn = Awaited<ReturnType<typeof turn>>;

describe('callers that wait for a permit', () => {
  it('a heavy caller keeps the light callers behind it out until it has its permit', async () => {
    const key = newKey();
    const holders = [await waiting(key, 'x', { limit: 4, weight: 2 }), await waiting(key, 'y', { limit: 4 })];
    const heavy = () => turn(key, 'heavy', 100, { limit: 4, weight: 4 });
    const light = () => later(50, () => turn(key, 'light', 100, { limit: 4 }));
    const free = async () => {
      await later(2000, () => release(holders[0] as { key: string; leaseId: string }));
      const between = await read(key);
      await later(2000, () => release(holders[1] as { key: string; leaseId: string }));
      return between;
    };
    const [h, l, between] = await timeline.play(heavy, light, free);
    expect(between).toMatchObject({ used: 1, waiting: 2 });
    expect(h.fence).toBeLessThan(l.fence);
    expect(l.grantedAt).toBeGreaterThanOrEqual(h.releasedAt);
  });

  it('a writer is served before readers that came later, and then the readers together', async () => {
    const key = newKey();
    const reading = { limit: undefined, mode: 'shared' };
    const readers = [await waiting(key, 'r1', reading), await waiting(key, 'r2', reading)];
    const writer = () => turn(key, 'writer', 500, { limit: undefined, mode: 'exclusive' });
    const late = ['r3', 'r4', 'r5'].map((name) => () => later(100, () => turn(key, name, 500, reading)));
    const free = readers.map((permit) => () => later(1000, () => release(permit)));
    const [w, ...others] = await timeline.play(writer, ...late, ...free);
    const after = others.slice(0, 3) as Turn[];
    for (const one of after) expect(one.grantedAt).toBeGreaterThanOrEqual((w as Turn).releasedAt);
    const [least, most] = [Math.min(...after.map((r) => r.releasedAt)), Math.max(...after.map((r) => r.grantedAt))];
    expect(most).toBeLessThan(least); // at one time
  });

  it('a caller that asks again by other terms has a new position', async () => {
    const key = newKey();
    const [first, second] = [await waiting(key, 'x'), await waiting(key, 'y')];
    const [held] = await timeline.play(() => failure(waiting(key, 'b', { waitSeconds: 1, requestId: 'b' })));
    const retryWith = held.context.retryWith as { requestId: string; ticket: string };
    const [, , grant] = await timeline.play(
      () => later(500, () => release(first)),
      () => later(1500, () => release(second)),
      () => waiting(key, 'b', { limit: 1, ...retryWith }),
    );
    expect(grant).toMatchObject({ limit: 1, used: 1 });
    expect(grant.waitedMs).toBeGreaterThanOrEqual(1500);
    await timeline.play(() => later(10_000, () => repairLine(key)));
    expect(await rows(key)).toEqual([]);
  });

  it('a caller in line costs few requests for its grant', async () => {
    const key = newKey();
    await form(key);
    requests.sent.length = 0;
    const [first, second] = await timeline.play(
      () => turn(key, 'a', 100, { limit: 1 }),
      () => later(10, () => turn(key, 'b', 100, { limit: 1 })),
    );
    expect(first.fence).toBeLessThan(second.fence);
    expect(requests.sent.length).toBeLessThan(16);
  });
});

describe('callers that race', () => {
  const own = { holder: 'R', requestId: 'r', limit: 1, fair: false };
  const writes = () => requests.sent.filter((command) => command === 'UpdateItem').length;

  it('a call that races has no position, and writes no record while it sees no room', async () => {
    const key = newKey();
    await waiting(key, 'x', { limit: 1, ttlSeconds: 60 });
    requests.sent.length = 0;
    const [refused] = await timeline.play(() => failure(acquire({ key, ...own, waitSeconds: 2 })));
    expect(refused.code).toBe('LeaseHeld');
    expect(refused.context).not.toHaveProperty('place');
    expect([writes(), await rows(key)]).toEqual([1, []]);
  });

  it('a call that races is answered with the permit of a duplicate call', async () => {
    const key = newKey();
    await waiting(key, 'x', { limit: 1, ttlSeconds: 60 });
    const [answer, { leaseId }] = await timeline.play(
      () => acquire({ key, ...own, waitSeconds: 4 }),
      () => later(1000, () => acquire({ key, ...own, limit: 2 })),
    );
    expect(answer).toMatchObject({ leaseId, repeated: true });
    expect(answer.waitedMs).toBeLessThan(1300);
  });

  it('a call that races does not write for the expired permit of a duplicate call if there is no room', async () => {
    const key = newKey();
    await form(key);
    await waiting(key, 'x', { limit: 1, ttlSeconds: 60 });
    requests.sent.length = 0;
    requests.faultsOf.GetItem = [
      async (send: () => Promise<unknown>) => {
        await acquire({ key, ...own, limit: 2, ttlSeconds: 2 });
        const seen = await send();
        timeline.advance(2000); // to its very end
        return seen;
      },
    ];
    const [refused] = await timeline.play(() => failure(acquire({ key, ...own, waitSeconds: 4 })));
    expect(refused).toMatchObject({ code: 'LeaseHeld', context: { used: 2 } });
    expect(writes()).toBe(2);
  });
});

it('the mark of a pool never has a value twice, though the line is empty in between', async () => {
  const key = newKey();
  const seen: (string | undefined)[] = [];
  for (const name of ['b', 'c', 'd']) {
    const first = await waiting(key, 'x', { limit: 1 });
    await timeline.play(
      () => turn(key, name, 10, { limit: 1 }),
      async () => {
        await sleep(500);
        seen.push((await rawItem(key))?.mark?.S);
        await release(first);
      },
    );
  }
  expect(new Set(seen).size).toBe(3);
  expect(seen).not.toContain(undefined);
});

it('a call that claims its permit after a plain call has taken the permit over keeps its position and waits on', async () => {
  const key = newKey();
  const first = await waiting(key, 'x', { limit: 1, ttlSeconds: 60 });
  timeline.advance(1000);
  const others: { key: string; leaseId: string }[] = [];
  const [, grant] = await timeline.play(
    () =>
      later(100, async () => {
        const takesOver = world.precededBy(async () => {
          timeline.advance(WINDOW_MS + dependencies.clockSkewMs + 1);
          requests.faultsOf.UpdateItem = [];
          others.push(await acquire({ key, holder: 'other', limit: 1 }));
        });
        await release(first);
        requests.faultsOf.UpdateItem = [takesOver]; // the claim
      }),
    () => waiting(key, 'second', { limit: 1 }),
    () => later(5000, async () => Promise.all(others.map((other) => release(other)))),
  );
  expect(others).toHaveLength(1);
  expect(grant).toMatchObject({ holder: 'second', repeated: false, remainingMs: 10_000 });
  expect(await rows(key)).toEqual([]);
});
