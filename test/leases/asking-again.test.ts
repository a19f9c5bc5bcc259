import { afterAll, describe, expect, it } from 'vitest';
import { Holdfast } from '../../client/src/index.ts';
import { systemSurroundings } from '../../client/src/surroundings.ts';
import { newTicket, readWaiters } from '../../shared/line/waiters.ts';
import { call } from '../support/emulators/aws.ts';
import { dyingAfter } from '../support/faults/mortal.ts';
import { startApi } from '../support/stack/api.ts';
import { Timeline } from '../support/time/timeline.ts';
import { failure, leaseWorld } from '../support/worlds/leases.ts';
import { queueWorld } from '../support/worlds/line.ts';

const timeline = new Timeline();
const { now, later, sleep } = timeline;
const world = await queueWorld({ clock: timeline });
const { acquire, release, park, repair, repairKey, rows, rawItem, putRaw, deleteRaw, requests, steps } = world;
afterAll(() => steps.stop());

let keys = 0;
const newKey = () => `again ${keys++}`;
const asked = (key: string) => ({ key, holder: 'b', requestId: 'rb', ttlSeconds: 10 });

/** Waits for a second, and is answered with its place. */
async function placeOf(key: string): Promise<{ requestId: string; ticket: string }> {
  const [refused] = await timeline.play(() => failure(acquire({ ...asked(key), waitSeconds: 1 })));
  expect(refused.code).toBe('LeaseHeld');
  return refused.context.retryWith as { requestId: string; ticket: string };
}

describe('a call that asks again with what its LeaseHeld said', () => {
  it('keeps its place for as long as it waits then, and five seconds', async () => {
    const key = newKey();
    const first = await acquire({ key, holder: 'first', ttlSeconds: 60 });
    const retryWith = await placeOf(key);
    const askedAt = now();
    const [, , grant] = await timeline.play(
      () =>
        later(5100, async () => {
          await repair(); // its first deadline, and the five seconds after it, are over
          const [row] = await rows(key);
          expect(row).toMatchObject({
            ticket: { S: retryWith.ticket },
            deadline: { N: String(askedAt + 20_000) },
            keep_until: { N: String(askedAt + 25_000) },
            ttl: { N: String(Math.ceil((askedAt + 25_000) / 1000) + 3600) },
          });
        }),
      () => later(5200, () => release(first)),
      () => acquire({ ...asked(key), waitSeconds: 20, ...retryWith }),
    );
    expect(grant).toMatchObject({ holder: 'b', repeated: false });
    expect(await rawItem(key)).toMatchObject({ ticket: { S: retryWith.ticket } });
    expect(await rows(key)).toEqual([]);
  });

  it('and is not to wait, is refused by its first try alone', async () => {
    const key = newKey();
    await acquire({ key, holder: 'first', ttlSeconds: 60 });
    const retryWith = await placeOf(key);
    requests.sent.length = 0;
    const refused = await failure(acquire({ ...asked(key), waitSeconds: 0, ...retryWith }));
    expect([refused.code, requests.sent]).toEqual(['LeaseHeld', ['PutItem']]);
  });

  it('and whose first try meets what another call of the request is about to get: both are answered with it', async () => {
    const key = newKey();
    await acquire({ key, holder: 'dead', ttlSeconds: 3 });
    const retryWith = await placeOf(key);
    await timeline.play(() => sleep(2600)); // the lease can be had
    const again = { ...asked(key), waitSeconds: 1, ...retryWith };
    const duplicate = Promise.withResolvers<Awaited<ReturnType<typeof acquire>>>();
    requests.faultsOf.Query = [
      async (send) => {
        duplicate.resolve(await acquire(again));
        await sleep(1100); // the time of this call is over
        return send();
      },
    ];
    const [answer] = await timeline.play(() => acquire(again));
    expect(answer).toMatchObject({ fence: (await duplicate.promise).fence, repeated: true });
  });

  it('keeps its place where it comes back while the schedule clears that away', async () => {
    const key = newKey();
    const first = await acquire({ key, holder: 'first', ttlSeconds: 60 });
    const retryWith = await placeOf(key);
    timeline.advance(5100); // its place is over
    requests.faultsOf.DeleteItem = [
      async (send) => {
        await sleep(500); // the call comes back
        return send();
      },
    ];
    const [, , grant] = await timeline.play(
      () => repairKey(key), // a run over all keys would delete rows of other keys first
      () =>
        later(1000, async () => {
          expect((await rows(key)).map(({ ticket }) => ticket?.S)).toEqual([retryWith.ticket]);
          await release(first);
        }),
      () => later(100, () => acquire({ ...asked(key), waitSeconds: 20, ...retryWith })),
    );
    expect(grant).toMatchObject({ holder: 'b', repeated: false });
    expect(await rawItem(key)).toMatchObject({ ticket: { S: retryWith.ticket } });
  });

  it('is no new arrival', async () => {
    const key = newKey();
    const first = await acquire({ key, holder: 'first', ttlSeconds: 60 });
    const retryWith = await placeOf(key);
    await timeline.play(
      () =>
        later(1000, async () => {
          expect(await rawItem(key)).toMatchObject({ waiters: { N: '2' }, line_out: { N: '1' } });
          await release(first);
        }),
      () => acquire({ ...asked(key), waitSeconds: 20, ...retryWith }),
    );
  });

  it('looks soon where no hint names it: it may be far in front of the last one to arrive', async () => {
    const key = newKey();
    await acquire({ key, holder: 'first', ttlSeconds: 60 });
    const retryWith = await placeOf(key);
    const ticket = (at: number) => ({ S: newTicket(at, 'another') });
    const long = { waiters: { N: '500' }, pace_ms: { N: '20' }, ticket: ticket(0), next_ticket: ticket(1) };
    await putRaw({ ...(await rawItem(key)), ...long } as never);
    const askedAt = now();
    const { sent } = await dyingAfter(4, () => acquire({ ...asked(key), waitSeconds: 20, ...retryWith }));
    expect(sent).toEqual(['PutItem', 'UpdateItem', 'UpdateItem', 'GetItem']);
    expect(now() - askedAt).toBeLessThan(100);
  });
});

describe('a client that waits for longer than one call may', () => {
  it('asks again over HTTP with its ticket, and keeps its place until it has the lease', {
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
});

describe('a call whose patience ends', () => {
  it('hands a lease on that has come free, before it leaves', async () => {
    const left = async () => {
      const key = newKey();
      await acquire({ key, holder: 'first', ttlSeconds: 60 });
      const [outcome] = await timeline.play(
        async () => {
          const isHeld = await acquire({ ...asked(key), waitSeconds: 1 }).then(
            () => false,
            ({ code }) => code === 'LeaseHeld',
          );
          return { isHeld, holder: (await rawItem(key))?.holder?.S };
        },
        () =>
          later(999, async () => {
            const { lease_version: _, expires_at: __, heartbeat_at: ___, ...free } = (await rawItem(key)) ?? {};
            await putRaw({ ...free, released_at: { N: String(now()) } } as never);
          }),
        () => later(10, () => acquire({ key, holder: 'c', ttlSeconds: 10, waitSeconds: 20 })),
      );
      return outcome;
    };
    let outcome = await left();
    // A call that happens to look in its last millisecond has the lease itself.
    for (let more = 0; more < 9 && !outcome.isHeld; more++) outcome = await left();
    expect(outcome).toEqual({ isHeld: true, holder: 'c' });
  });

  it('hands on no lease whose record is gone: the others in line find that out', async () => {
    const key = newKey();
    await acquire({ key, holder: 'first', ttlSeconds: 60 });
    await dyingAfter(3, () => acquire({ key, holder: 'c', ttlSeconds: 10, waitSeconds: 20 }));
    timeline.advance(1);
    const [refused] = await timeline.play(
      () => failure(acquire({ ...asked(key), waitSeconds: 1 })),
      () => later(999, () => deleteRaw(key)),
    );
    expect(refused).toMatchObject({ code: 'LeaseHeld', context: { place: 2, waiting: 1 } });
    expect(await rawItem(key)).toBeUndefined();
  });

  it('tells a task that its request has had the lease, where it never heard of that', async () => {
    const key = newKey();
    const first = await acquire({ key, holder: 'first', ttlSeconds: 60 });
    const shared = { key, holder: 'task', requestId: 'shared' };
    const { task } = await park(shared);
    steps.faults.SendTaskSuccess = ['refused'];
    await release(first);
    const grant = await acquire(shared);
    requests.faultsOf.UpdateItem = [
      async (send) => {
        await release(grant);
        timeline.advance(1000); // the time of the call is over before it is in line
        return send();
      },
    ];
    expect(await failure(acquire({ ...asked(key), waitSeconds: 1 }))).toMatchObject({ code: 'LeaseHeld' });
    expect(task).toMatchObject({ state: 'failed', error: 'LeaseLost', cause: { reason: 'released' } });
    expect(await rawItem(key)).not.toHaveProperty('waiters');
    expect(await rows(key)).toMatchObject([{ holder: { S: 'b' } }]);
  });
});

describe('a call in line that looks at its ticket and at the record at once', () => {
  it('looks consistently at its ticket, and once more at the record where DynamoDB leaves that out', async () => {
    const key = newKey();
    await acquire({ key, holder: 'first', ttlSeconds: 60 });
    const { table, waitersTable } = world.dependencies;
    const again: number[] = [];
    const looksAgain = (send: () => Promise<unknown>) => {
      again.push(now());
      return send();
    };
    requests.faultsOf.GetItem = Array(1000).fill(looksAgain);
    const { result, asked: looks } = await world.leavingOut(table, () =>
      timeline.play(() => failure(acquire({ key, holder: 'b', ttlSeconds: 10, waitSeconds: 2 }))),
    );
    requests.faultsOf = {};
    expect(result[0]).toMatchObject({ code: 'LeaseHeld', context: { holder: 'first' } });
    expect(looks[0]?.items).toMatchObject({ [waitersTable]: { ConsistentRead: true } });
    expect(again).toContain(looks[0]?.at);
  });
});
