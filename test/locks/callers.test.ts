import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { Holdfast } from '../../client/src/index.ts';
import { systemSurroundings } from '../../client/src/surroundings.ts';
import { WINDOW_MS } from '../../shared/line/times.ts';
import { readWaiters } from '../../shared/line/waiters.ts';
import { call } from '../support/emulators/aws.ts';
import { dyingAfter } from '../support/faults/mortal.ts';
import { startApi } from '../support/stack/api.ts';
import { Timeline } from '../support/time/timeline.ts';
import { failure, leaseWorld } from '../support/worlds/leases.ts';
import { poolLineWorld } from '../support/worlds/permits-in-line.ts';

// What test/line/callers.ts and test/line/asking-again.ts do not say: requests, `previous`, several holders, and calls that race.

const timeline = new Timeline();
const { now, sleep, later } = timeline;
const world = await poolLineWorld({ clock: timeline });
const { acquire, release, withdraw, as, park, read, rows, rawItem, repairLine, precededBy, requests, steps } = world;
const { dependencies } = world;
afterAll(() => steps.stop());
beforeEach(() => {
  requests.faultsOf = {};
});

let keys = 0;
const newKey = () => `key ${keys++}`;
const held = () => acquire({ key: newKey(), holder: 'first', ttlSeconds: 60 });
const waiting = (key: string, holder: string, more: object = {}) =>
  acquire({ key, holder, ttlSeconds: 10, waitSeconds: 20, ...more });

it('a call in line costs seven requests and its looks', async () => {
  const first = await held();
  requests.sent.length = 0;
  const [, grant] = await timeline.play(
    () => later(300, () => release(first)),
    () => waiting(first.key, 'second'),
  );
  expect(requests.sent.filter((command) => command !== 'GetItem')).toEqual([
    ...['UpdateItem', 'PutItem', 'UpdateItem'], // the first try, the ticket, the mark
    ...['UpdateItem', 'Query', 'UpdateItem'], // the release that loses, the line, the transfer
    ...['UpdateItem', 'DeleteItem'], // the claim, the ticket
  ]);
  await release(grant);
});

it('`previous` names the holder before, and no caller that exited before it claimed its grant', async () => {
  const first = await held();
  await timeline.play(() => dyingAfter(3, () => waiting(first.key, 'dead')));
  timeline.advance(1); // a later ticket
  const [at, grant] = await timeline.play(
    () => later(1000, async () => (await release(first)) && new Date(now()).toISOString()),
    () => waiting(first.key, 'next'),
  );
  expect(grant).toMatchObject({ holder: 'next', previous: { holder: 'first', fence: first.fence, ended: 'released' } });
  expect(grant.previous?.at).toBe(at);
});

it('a withdrawal ends an unclaimed grant, and hands off the lease', async () => {
  const owner = as('arn:aws:iam::1:user/owner');
  const first = await held();
  const asked = { key: first.key, holder: 'b', requestId: 'w' };
  await timeline.play(() => dyingAfter(3, () => acquire({ ...asked, waitSeconds: 20 }, owner)));
  timeline.advance(1);
  const { task } = await park({ key: first.key, holder: 'task' });
  await release(first);
  expect(await withdraw(asked, owner)).toMatchObject({ cancelled: true });
  expect(task.output).toMatchObject({ holder: 'task', previous: { holder: 'first' } });
});

it('a call whose ticket is gone does not join again, because its retry may have had the lease', async () => {
  const first = await held();
  const { key } = first;
  const asked = { key, holder: 'b', requestId: 'r', ttlSeconds: 30, waitSeconds: 20 };
  const [disconnected, last] = await timeline.play(
    () => failure(acquire(asked)),
    () => later(3000, () => acquire({ key, holder: 'last', ttlSeconds: 30, waitSeconds: 10 })),
    () =>
      later(4000, async () => {
        await release(first);
        // The retry is answered with the grant, and releases it before the first call has looked.
        await release(await acquire({ ...asked, waitSeconds: 0 }));
      }),
  );
  expect(disconnected).toMatchObject({ code: 'LeaseLost', context: { reason: 'released' } });
  expect(last).toMatchObject({ previous: { holder: 'b', ended: 'released' } });
  expect(await rows(key)).toEqual([]);
  await release(last);
  expect(await acquire({ key, holder: 'next' })).toMatchObject({ previous: { holder: 'last' } });
});

it('a call that leaves ends the unnotified task whose grant was released', async () => {
  const first = await held();
  const { key } = first;
  const shared = { key, holder: 'task', requestId: 'shared' };
  const { task } = await park(shared);
  steps.faults.SendTaskSuccess = ['refused'];
  await release(first);
  const grant = await acquire(shared);
  const released = precededBy(async () => {
    await release(grant);
    timeline.advance(1000); // the deadline of the call has come before it is in line
  });
  requests.faultsOf.UpdateItem = ['none', released]; // the first try, and the mark
  expect(await failure(waiting(key, 'b', { waitSeconds: 1 }))).toMatchObject({ code: 'LeaseHeld' });
  expect(task).toMatchObject({ state: 'failed', error: 'LeaseLost', cause: { reason: 'released' } });
  expect(await rawItem(key)).not.toHaveProperty('mark');
  expect(await rows(key)).toMatchObject([{ holder: { S: 'b' } }]);
});

it('a call reads its own row consistently, and the record once more if DynamoDB leaves that out', async () => {
  const { key } = await held();
  const { table, waitersTable } = world.dependencies;
  const again: number[] = [];
  requests.faultsOf.GetItem = Array(1000).fill((send: () => Promise<unknown>) => {
    again.push(now());
    return send();
  });
  const { result, asked: looks } = await world.leavingOut(table, () =>
    timeline.play(() => failure(waiting(key, 'b', { waitSeconds: 2 }))),
  );
  requests.faultsOf = {};
  expect(result[0]).toMatchObject({ code: 'LeaseHeld', context: { holder: 'first' } });
  expect(looks[0]?.items).toMatchObject({ [waitersTable]: { ConsistentRead: true } });
  expect(again).toContain(looks[0]?.at);
});

it('a client asks again over HTTP with its ticket, and keeps its position until it has the lease', {
  timeout: 60_000,
}, async () => {
  // A sleep on this clock is over at once, so the test rests on no speed.
  const { acquire: take, release: giveBack, handlers, dependencies } = await leaseWorld({ maxWaitSeconds: 1 });
  const api = await startApi(handlers);
  const asked: { requestId: string; ticket?: string }[] = [];
  const placed: unknown[] = [];
  const first = await take({ key: 'line', holder: 'first', ttlSeconds: 86_400 });
  const watching: typeof fetch = async (url, init) => {
    if (String(url).endsWith('/acquire')) asked.push(JSON.parse(String(init?.body)));
    if (asked.length === 5) await giveBack(first);
    const response = await fetch(url, init);
    const { place, retryWith } = (await response.clone().json()) as { place?: number; retryWith?: object };
    if (retryWith) placed.push({ place, ...retryWith });
    return response;
  };
  try {
    const surroundings = { ...systemSurroundings, random: () => 0 };
    const holdfast = new Holdfast({ endpoint: api.url, holder: 'b', fetch: watching, surroundings });
    const lease = await holdfast.acquire('line', { waitMs: 3_600_000, ttlSeconds: 60 });
    expect(lease.held).toBe(true);
    await lease.release();
  } finally {
    await api.stop();
  }
  const [, , { requestId, ticket } = { requestId: '' }] = asked;
  expect(ticket).toMatch(/^\d{15}-/);
  expect(asked.map((one) => one.ticket)).toEqual([undefined, undefined, ticket, ticket, ticket]);
  expect(new Set(asked.map((one) => one.requestId))).toEqual(new Set([requestId]));
  expect(placed).toEqual(Array.from({ length: 3 }, () => ({ place: 1, requestId, ticket })));
  const kept = await readWaiters(dependencies, { key: 'line' }, call()).next();
  expect(kept.done).toBe(true);
});

const asking = (key: string, holder: string, more: object = {}) => waiting(key, holder, { limit: 2, ...more });
/** Acquires, holds for so long, and gives back. */
const turn = async (key: string, holder: string, holdMs: number, more: object = {}) => {
  const grant = await asking(key, holder, more);
  const grantedAt = now();
  await sleep(holdMs);
  await release(grant);
  return { ...grant, grantedAt, releasedAt: now() };
};
type Turn = Awaited<ReturnType<typeof turn>>;

describe('callers that wait for a permit', () => {
  it('a heavy caller keeps the light callers behind it out until it has its permit', async () => {
    const key = newKey();
    const holders = [await asking(key, 'x', { limit: 4, weight: 2 }), await asking(key, 'y', { limit: 4 })];
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
    const readers = [await asking(key, 'r1', reading), await asking(key, 'r2', reading)];
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
    const [first, second] = [await asking(key, 'x'), await asking(key, 'y')];
    const [held] = await timeline.play(() => failure(asking(key, 'b', { waitSeconds: 1, requestId: 'b' })));
    const retryWith = held.context.retryWith as { requestId: string; ticket: string };
    const [, , grant] = await timeline.play(
      () => later(500, () => release(first)),
      () => later(1500, () => release(second)),
      () => asking(key, 'b', { limit: 1, ...retryWith }),
    );
    expect(grant).toMatchObject({ limit: 1, used: 1 });
    expect(grant.waitedMs).toBeGreaterThanOrEqual(1500);
    await timeline.play(() => later(10_000, () => repairLine(key)));
    expect(await rows(key)).toEqual([]);
  });
});

describe('callers that race', () => {
  const own = { holder: 'R', requestId: 'r', limit: 1, fair: false };
  const writes = () => requests.sent.filter((command) => command === 'UpdateItem').length;

  it('a call that races has no position, and writes no record while it sees no room', async () => {
    const key = newKey();
    await asking(key, 'x', { limit: 1, ttlSeconds: 60 });
    requests.sent.length = 0;
    const [refused] = await timeline.play(() => failure(acquire({ key, ...own, waitSeconds: 2 })));
    expect(refused.code).toBe('LeaseHeld');
    expect(refused.context).not.toHaveProperty('place');
    expect([writes(), await rows(key)]).toEqual([1, []]);
  });

  it('a call that races is answered with the permit of a duplicate call', async () => {
    const key = newKey();
    await asking(key, 'x', { limit: 1, ttlSeconds: 60 });
    const [answer, { leaseId }] = await timeline.play(
      () => acquire({ key, ...own, waitSeconds: 4 }),
      () => later(1000, () => acquire({ key, ...own, limit: 2 })),
    );
    expect(answer).toMatchObject({ leaseId, repeated: true });
    expect(answer.waitedMs).toBeLessThan(1300);
  });

  it('a call that races does not write for the expired permit of a duplicate call if there is no room', async () => {
    const key = newKey();
    await asking(key, 'x', { limit: 1, ttlSeconds: 60 });
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

it('the mark of a line never has a value twice, though the line is empty in between', async () => {
  const key = newKey();
  const seen: (string | undefined)[] = [];
  for (const name of ['b', 'c', 'd']) {
    const first = await asking(key, 'x', { limit: 1 });
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
  const first = await asking(key, 'x', { limit: 1, ttlSeconds: 60 });
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
    () => asking(key, 'second', { limit: 1 }),
    () => later(5000, async () => Promise.all(others.map((other) => release(other)))),
  );
  expect(others).toHaveLength(1);
  expect(grant).toMatchObject({ holder: 'second', repeated: false, remainingMs: 10_000 });
  expect(await rows(key)).toEqual([]);
});
