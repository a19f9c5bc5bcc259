import { afterAll, expect, it } from 'vitest';
import { Holdfast } from '../../client/src/index.ts';
import { systemSurroundings } from '../../client/src/surroundings.ts';
import { newTicket, readWaiters } from '../../shared/line/waiters.ts';
import { call } from '../support/emulators/aws.ts';
import { dyingAfter } from '../support/faults/mortal.ts';
import { startApi } from '../support/stack/api.ts';
import { Timeline } from '../support/time/timeline.ts';
import { failure, leaseWorld } from '../support/worlds/leases.ts';
import { queueWorld } from '../support/worlds/line.ts';

// What test/line/callers.ts and test/line/asking-again.ts do not say of a lease: requests, hints, and `previous`.

const timeline = new Timeline();
const { now, later } = timeline;
const world = await queueWorld({ clock: timeline });
const { acquire, release, withdraw, as, park, rows, rawItem, putRaw, precededBy, requests, steps } = world;
afterAll(() => steps.stop());

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
    ...['PutItem', 'PutItem', 'UpdateItem'], // the first try, the ticket, the mark
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

it('a call whose claim comes after another has the lease receives LeaseHeld, and may ask again', async () => {
  const first = await held();
  const { key } = first;
  const others: Awaited<ReturnType<typeof acquire>>[] = [];
  const [, grant] = await timeline.play(
    () =>
      later(100, async () => {
        await release(first);
        const taken = precededBy(async () => {
          timeline.advance(2501); // the grant window and the margin
          others.push(await acquire({ key, holder: 'other' }));
        });
        requests.faultsOf.UpdateItem = [taken];
      }),
    async () => {
      const { code, context } = await failure(waiting(key, 'second', { requestId: 'late claim' }));
      expect({ code, ...context }).toMatchObject({ code: 'LeaseHeld', retryWith: { requestId: 'late claim' } });
      expect(context).not.toHaveProperty('place');
      return waiting(key, 'second', context.retryWith as object);
    },
    () =>
      later(5000, async () => {
        expect((await rawItem(key))?.lease_version?.S).toBe(others[0]?.version);
        for (const other of others) await release(other);
      }),
  );
  expect(grant).toMatchObject({ holder: 'second', previous: { holder: 'other' }, remainingMs: 10_000 });
  expect(await rows(key)).toEqual([]);
});

it('a withdrawal flags a waiter once, ends its unclaimed grant, and hands off the lease', async () => {
  const owner = as('arn:aws:iam::1:user/owner');
  const first = await held();
  const asked = { key: first.key, holder: 'b', requestId: 'w' };
  await timeline.play(() => dyingAfter(3, () => acquire({ ...asked, waitSeconds: 20 }, owner)));
  timeline.advance(1);
  const { task } = await park({ key: first.key, holder: 'task' });
  await release(first);
  requests.sent.length = 0;
  expect(await withdraw(asked, owner)).toMatchObject({ cancelled: true });
  expect(requests.sent.slice(0, 5)).toEqual(['Query', 'UpdateItem', 'GetItem', 'UpdateItem', 'Query']);
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
  expect(disconnected).toMatchObject({ code: 'LeaseHeld', context: { retryWith: { requestId: 'r' } } });
  expect(disconnected.context).not.toHaveProperty('place');
  expect(last).toMatchObject({ previous: { holder: 'b', ended: 'released' } });
  expect(await rows(key)).toEqual([]);
  await release(last);
  expect(await acquire({ key, holder: 'next' })).toMatchObject({ previous: { holder: 'last' } });
});

it('a call that asks again looks soon if no hint names it, because it may be next', async () => {
  const { key } = await held();
  const asked = { key, holder: 'b', requestId: 'rb', ttlSeconds: 10 };
  const [left] = await timeline.play(() => failure(acquire({ ...asked, waitSeconds: 1 })));
  const ticket = (at: number) => ({ S: newTicket(at, 'another') });
  const long = { waiters: { N: '500' }, pace_ms: { N: '20' }, ticket: ticket(0), next_ticket: ticket(1) };
  await putRaw({ ...(await rawItem(key)), ...long } as never);
  const askedAt = now();
  const again = { ...asked, waitSeconds: 20, ...(left.context.retryWith as object) };
  const { sent } = await dyingAfter(4, () => acquire(again));
  expect(sent).toEqual(['PutItem', 'UpdateItem', 'UpdateItem', 'GetItem']);
  expect(now() - askedAt).toBeLessThan(100);
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
  requests.faultsOf.UpdateItem = [released];
  expect(await failure(waiting(key, 'b', { waitSeconds: 1 }))).toMatchObject({ code: 'LeaseHeld' });
  expect(task).toMatchObject({ state: 'failed', error: 'LeaseLost', cause: { reason: 'released' } });
  expect(await rawItem(key)).not.toHaveProperty('waiters');
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
