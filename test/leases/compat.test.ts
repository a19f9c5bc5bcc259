import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { get } from '../support/stack/adapters.ts';
import { aFew, isFull } from '../support/time/rounds.ts';
import { failure, leaseWorld } from '../support/worlds/leases.ts';
import { queueWorld } from '../support/worlds/line.ts';
import { rustClient } from '../support/worlds/rust-lease.ts';

const world = await leaseWorld();
const { acquire, heartbeat, release, breakLease, clock, rawItem, requests } = world;
const rust = rustClient(world.dynamodb, world.table, clock);

/** The start of a whole second, where the crate's arithmetic is easiest to follow. */
function onTheSecond(): number {
  clock.set(Math.ceil(clock.now() / 1000) * 1000);
  return clock.now();
}

describe('records of the Rust crate', () => {
  it('records of the Rust crate are respected as leases of a holder without a name', async () => {
    const now = onTheSecond();
    await rust.tryAcquire('rust-held', 60);
    const { code, context } = await failure(acquire({ key: 'rust-held' }));
    expect(code).toBe('LeaseHeld');
    expect(context).toEqual({
      key: 'rust-held',
      holder: null,
      fence: null,
      expiresAt: new Date(now + 61_000).toISOString(), // the crate holds to the end of the second it names
      retryAfterMs: 61_000 + 500,
    });
    expect(await world.read({ key: 'rust-held' })).toMatchObject({
      state: 'held',
      holder: null,
      fence: null,
      data: null,
    });
  });

  it('records of the Rust crate are taken over when the crate itself would, plus the skew margin, and not a millisecond before', async () => {
    const now = onTheSecond();
    await rust.tryAcquire('rust-expiring', 2);
    clock.set(now + 2999);
    expect(await rust.tryAcquire('rust-expiring', 2)).toBeUndefined();
    clock.set(now + 3499);
    const { context } = await failure(acquire({ key: 'rust-expiring' }));
    expect(context.retryAfterMs).toBe(1);
    clock.set(now + 3500);
    requests.sent.length = 0;
    expect((await acquire({ key: 'rust-expiring' })).repeated).toBe(false);
    expect(requests.sent).toEqual(['PutItem']);
  });

  it('records that the Rust crate extended are respected until the new expiry', async () => {
    const now = onTheSecond();
    const version = await rust.tryAcquire('rust-extended', 2);
    clock.set(now + 2000);
    await rust.extend('rust-extended', version ?? '', 2);
    clock.set(now + 3500);
    expect((await failure(acquire({ key: 'rust-extended' }))).code).toBe('LeaseHeld');
  });

  it('records of the Rust crate cannot be extended, released or broken by a guess', async () => {
    onTheSecond();
    const version = (await rust.tryAcquire('rust-guess', 60)) ?? '';
    expect((await failure(heartbeat({ key: 'rust-guess', leaseId: version }))).context.reason).toBe('taken');
    expect(await release({ key: 'rust-guess', leaseId: version })).toMatchObject({ released: false, reason: 'taken' });
    expect((await failure(breakLease({ key: 'rust-guess', fence: 0 }))).context).toMatchObject({
      actual: { fence: null },
    });
    expect((await rawItem('rust-guess'))?.lease_version).toEqual({ S: version });
  });

  it('records of the Rust crate are gone when the crate drops the lease, and the key is free', async () => {
    const version = (await rust.tryAcquire('rust-drop', 60)) ?? '';
    expect(await rust.release('rust-drop', version)).toBe(true);
    expect((await acquire({ key: 'rust-drop' })).repeated).toBe(false);
  });
});

describe('our records, to the Rust crate', () => {
  it('records of Holdfast have the three attributes of the Rust crate in its types, and a version that rotates', async () => {
    const grant = await acquire({ key: 'ours', ttlSeconds: 60 });
    const item = await rawItem('ours');
    expect(item).toMatchObject({
      key: { S: 'ours' },
      lease_version: { S: expect.stringMatching(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/) },
      lease_expiry: { N: String(Math.ceil((clock.now() + 60_000) / 1000)) },
    });
    const beat = await heartbeat(grant);
    expect(beat.version).toBe(grant.version); // within the millisecond nothing is extended
    clock.advance(1);
    expect((await heartbeat(grant)).version).not.toBe(grant.version);
  });

  it('records of Holdfast are held until their last millisecond to each crate whose clock agrees', async () => {
    onTheSecond();
    clock.advance(1); // so that rounding up has something to do
    const end = clock.now() + 2000;
    await acquire({ key: 'ours-held', ttlSeconds: 2 });
    clock.set(end);
    expect(await rust.tryAcquire('ours-held', 60)).toBeUndefined();
    clock.set(Math.ceil(end / 1000) * 1000 + 999);
    expect(await rust.tryAcquire('ours-held', 60)).toBeUndefined();
    clock.advance(1);
    expect(await rust.tryAcquire('ours-held', 60)).toBeDefined();
  });

  it('records of Holdfast are free to the crate once released, and late calls of Holdfast do not touch the lease of the crate', async () => {
    const grant = await acquire({ key: 'ours-released' });
    await release(grant);
    const version = await rust.tryAcquire('ours-released', 60);
    expect(version).toBeDefined();
    expect((await failure(heartbeat(grant))).context.reason).toBe('taken');
    expect(await release(grant)).toMatchObject({ released: false, reason: 'taken' });
    expect((await rawItem('ours-released'))?.lease_version).toEqual({ S: version });
  });

  it('records of Holdfast cannot be extended or dropped by a crate that lost its lease to Holdfast', async () => {
    onTheSecond();
    const version = (await rust.tryAcquire('ours-now', 2)) ?? '';
    clock.advance(3500);
    const grant = await acquire({ key: 'ours-now' });
    expect(await rust.extend('ours-now', version, 60)).toBeUndefined();
    expect(await rust.release('ours-now', version)).toBe(false);
    expect((await rawItem('ours-now'))?.lease_version).toEqual({ S: grant.version });
  });
});

describe('what any other client may write', async () => {
  const world = await queueWorld();
  const { acquire, heartbeat, release, breakLease, read, park, repair } = world;
  const { grantOf, rawItem, putRaw, clock, requests, steps } = world;
  afterAll(() => steps.stop());
  beforeEach(() => {
    requests.sent.length = 0;
  });

  const past = { N: '1600000000' };

  describe('a mark that another client wrote', () => {
    const MARKS: [string, AttributeValue][] = [
      ['a number that JavaScript rounds', { N: '9007199254740993' }],
      ['a number beyond every counter', { N: '9.9E+125' }],
      ['a fraction', { N: '1.5' }],
      ['a text', { S: 'yes' }],
      ['a flag', { BOOL: true }],
      ['a list', { L: [{ N: '1' }] }],
    ];

    it.each(aFew(1, MARKS))(
      'a mark that another client wrote (%s) is removed by the first call that finds no parked task',
      async (what, waiters) => {
        const free = `free ${what}`;
        await putRaw({ key: { S: free }, waiters });
        expect(await acquire({ key: free })).toMatchObject({ repeated: false });
        const expired = `expired ${what}`;
        await putRaw({ key: { S: expired }, lease_version: { S: 'v' }, lease_expiry: past, waiters });
        expect(await acquire({ key: expired })).toMatchObject({ repeated: false });
        const held = `held ${what}`;
        const first = await acquire({ key: held });
        await putRaw({ ...(await rawItem(held)), waiters } as never);
        expect(await heartbeat(first)).toMatchObject({ fence: first.fence });
        expect(await release(first)).toEqual({ key: held, released: true });
        expect(await read({ key: held })).toMatchObject({ state: 'released', waiting: 0 });
        for (const key of [free, expired, held]) expect(await rawItem(key)).not.toHaveProperty('waiters');
        expect(requests.sent.length).toBeLessThan(40);
      },
    );

    it.each(aFew(1, MARKS))(
      'a mark that another client wrote (%s) does not keep parked tasks from their grants',
      async (what, waiters) => {
        const key = `parked ${what}`;
        const first = await acquire({ key });
        const tasks = [await park({ key }), await park({ key }), await park({ key })].map(({ task }) => task);
        await putRaw({ ...(await rawItem(key)), waiters } as never);
        requests.sent.length = 0;
        await release(first);
        tasks.push((await park({ key })).task); // now there is a mark that counts
        for (const task of tasks) expect(await release(grantOf(task))).toMatchObject({ released: true });
        expect(await rawItem(key)).not.toHaveProperty('waiters');
        expect(requests.sent.length).toBeLessThan(40);
      },
    );
  });

  it('a call gives up at the fifth mark, if the mark comes back whenever it is removed', async () => {
    const key = { S: 'marked again' };
    await putRaw({ key, waiters: { N: '1' } });
    requests.sent.length = 0;
    requests.faultsOf.UpdateItem = Array.from({ length: 5 }, () => async (send) => {
      const answer = await send();
      await putRaw({ key, waiters: { N: '1' } });
      return answer;
    });
    const { code, context } = await failure(acquire({ key: key.S }));
    requests.faultsOf = {};
    expect({ code, context }).toMatchObject({ code: 'LeaseHeld', context: { holder: null, retryAfterMs: 1000 } });
    expect(requests.sent.filter((command) => command === 'UpdateItem')).toHaveLength(4);
    expect(await acquire({ key: key.S })).toMatchObject({ repeated: false });
  });

  it('a grant from the line without its ticket is still a full grant for its request', async () => {
    const asked = { key: 'without ticket', holder: 'h', requestId: 'r', ttlSeconds: 60 };
    await acquire(asked);
    const expiresAt = { N: String(clock.now() + 2000) };
    const unclaimed = { ttl_ms: { N: '2000' }, claim_ttl_ms: { N: '60000' }, expires_at: expiresAt };
    await putRaw({ ...(await rawItem(asked.key)), ...unclaimed } as never);
    expect(await acquire(asked)).toMatchObject({ repeated: true, remainingMs: 60_000 });
    expect(await rawItem(asked.key)).not.toHaveProperty('claim_ttl_ms');
  });

  describe('a record that no condition fits', () => {
    const RECORDS: [string, Record<string, AttributeValue>][] = [
      ['lease_version', { lease_version: { N: '1' }, lease_expiry: { N: '9000000000' } }],
      ['expires_at', { lease_version: { S: 'v' }, lease_expiry: past, expires_at: { S: 'soon' } }],
      [
        'lease_expiry',
        { lease_version: { S: 'v' }, lease_expiry: { S: 'soon' }, expires_at: { N: '1' }, fence: { S: '1' } },
      ],
      ['fence', { fence: { S: '7' } }],
    ];

    it.each(RECORDS)(
      'a record that no condition fits by its %s is named after one write, also to a caller who would wait',
      async (name, attributes) => {
        const key = `bad ${name}`;
        await putRaw({ key: { S: key }, ...attributes });
        const { code, context } = await failure(acquire({ key, waitSeconds: 20 }));
        expect({ code, context }).toEqual({ code: 'Unavailable', context: { key, retryAfterMs: 1000 } });
        expect(requests.sent).toEqual(['PutItem', 'PutItem']);
      },
    );

    it.each(aFew(1, RECORDS))(
      'a record that no condition fits by its %s fails the call of a parked task, and stops no other key of the schedule',
      async (name, attributes) => {
        const key = `bad for tasks ${name}`;
        const beside = `beside ${key}`;
        for (const one of [key, beside]) await acquire({ key: one, ttlSeconds: 2 });
        await park({ key });
        const { task } = await park({ key: beside });
        await putRaw({ key: { S: key }, ...attributes });
        clock.advance(3000);
        requests.sent.length = 0;
        await repair().catch(({ code }) => expect(code).toBe('Unavailable'));
        if (attributes.fence) expect(await rawItem(key)).toMatchObject({ fence: attributes.fence });
        expect(task.state).toBe('succeeded');
        expect(requests.sent.length).toBeLessThan(60);
      },
    );

    it('a record that no condition fits can still be read, and broken by its fence', async () => {
      await putRaw({ key: { S: 'odd' }, lease_version: { N: '1' }, fence: { N: '7' }, waiters: { S: 'x' } });
      expect(await read({ key: 'odd' })).toMatchObject({ fence: 7 });
      expect((await failure(breakLease({ key: 'odd', fence: 7 }))).code).toBe('NotFound');
    });
  });

  describe('what another client wrote as data', () => {
    it.each(aFew(1, ['[', '{"a":']))(
      'data of another client is shown as text if it is nested too deep for an answer: %s',
      async (open) => {
        const deep =
          open === '[' ? '['.repeat(150_000) + ']'.repeat(150_000) : `${open.repeat(60_000)}1${'}'.repeat(60_000)}`;
        const prefix = `deep ${open}`;
        await putRaw({ key: { S: `${prefix} 1` }, data: { S: deep } });
        await putRaw({ key: { S: `${prefix} 2` }, data: { S: '{"a":[1]}' } });
        const { outcome, body } = await get(world.handlers.readLeases, { prefix });
        expect(outcome).toBe('ok');
        const leases = body.leases as { key: string; data: unknown }[];
        expect(new Map(leases.map(({ key, data }) => [key, data]))).toEqual(
          new Map<string, unknown>([
            [`${prefix} 1`, deep],
            [`${prefix} 2`, { a: [1] }],
          ]),
        );
        expect((await get(world.handlers.readLeases, { key: `${prefix} 1` })).body.data).toBe(deep);
      },
    );
  });

  it.runIf(isFull)('a list is cut if its answer would be larger than a function may give', async () => {
    const sizes = await queueWorld();
    const data = { S: '\u0001'.repeat(300_000) };
    for (let at = 0; at < 9; at++) await sizes.putRaw({ key: { S: `large ${at}` }, data });
    const seen: string[] = [];
    let cursor: string | null = null;
    let pages = 0;
    do {
      const answer = await sizes.handlers.readLeases(
        {
          version: '2.0',
          rawQueryString: new URLSearchParams({ limit: '100', ...(cursor !== null && { cursor }) }).toString(),
          headers: {},
          requestContext: { http: { method: 'GET' } },
        } as never,
        (await import('../support/stack/adapters.ts')).apiContext(),
      );
      expect(Buffer.byteLength(JSON.stringify(answer))).toBeLessThan(6_291_556);
      const { leases, nextCursor } = JSON.parse((answer as { body: string }).body);
      seen.push(...leases.map(({ key }: { key: string }) => key));
      cursor = nextCursor;
      pages++;
    } while (cursor !== null);
    expect(seen.toSorted()).toEqual(Array.from({ length: 9 }, (_, at) => `large ${at}`));
    expect(pages).toBeGreaterThan(3);
    await sizes.steps.stop();
  });
});
