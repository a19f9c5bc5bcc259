import { BatchWriteItemCommand } from '@aws-sdk/client-dynamodb';
import { describe, expect, it } from 'vitest';
import { readInput } from '../../shared/locks/inputs.ts';
import type { KeyPage } from '../../shared/locks/listed-keys.ts';
import { failure, leaseWorld } from '../support/worlds/leases.ts';

const SECRETS = ['leaseId', 'version', 'requestId', 'principal'];

describe('read of one key', () => {
  it('a read of one key shows each state, strongly consistent and without secrets', async () => {
    const { acquire, release, read, clock, requests } = await leaseWorld();
    expect(await read({ key: 'k' })).toEqual({
      kind: 'lease',
      key: 'k',
      state: 'free',
      holder: null,
      fence: null,
      acquiredAt: null,
      expiresAt: null,
      remainingMs: null,
      ttlSeconds: null,
      execution: null,
      inGrace: false,
      bound: false,
      ending: false,
      brokenAt: null,
      brokenBy: null,
      data: null,
      hasRecord: false,
      previous: null,
      waiting: 0,
    });
    const grant = await acquire({ key: 'k', holder: 'h', ttlSeconds: 2, data: { a: null } });
    const held = await read({ key: 'k' });
    expect(held).toEqual({
      kind: 'lease',
      key: 'k',
      state: 'held',
      holder: 'h',
      fence: grant.fence,
      acquiredAt: grant.acquiredAt,
      expiresAt: grant.expiresAt,
      remainingMs: 2000,
      ttlSeconds: 2,
      execution: null,
      inGrace: false,
      bound: false,
      ending: false,
      brokenAt: null,
      brokenBy: null,
      data: { a: null },
      hasRecord: true,
      previous: null,
      waiting: 0,
    });
    for (const secret of SECRETS) expect(held).not.toHaveProperty(secret);
    clock.advance(2000);
    expect(await read({ key: 'k' })).toMatchObject({ state: 'expired', remainingMs: 0, expiresAt: grant.expiresAt });
    await release(grant);
    expect(await read({ key: 'k' })).toMatchObject({ state: 'released', fence: grant.fence, expiresAt: null });
    expect(requests.sent.filter((command) => command === 'GetItem')).toHaveLength(4);
    expect(await read({ key: 'never', waiters: true })).toMatchObject({ state: 'free', waiting: 0, waiters: [] });
  });
});

describe('the list', async () => {
  const world = await leaseWorld();
  const { acquire, release, read, clock } = world;
  const keys = (page: unknown) => (page as KeyPage).leases.map(({ key }) => key).sort();

  await acquire({ key: 'a/expired', holder: 'ann', ttlSeconds: 2 });
  clock.advance(5000);
  await acquire({ key: 'a/held', holder: 'ann' });
  await acquire({ key: 'b/held', holder: 'bob' });
  await release(await acquire({ key: 'b/released', holder: 'bob' }));
  const second = Math.floor(clock.now() / 1000);
  await world.putRaw({ key: { S: 'rust/held' }, lease_version: { S: 'v' }, lease_expiry: { N: String(second) } });
  await world.putRaw({
    key: { S: 'rust/expired' },
    lease_version: { S: 'v' },
    lease_expiry: { N: String(second - 1) },
  });
  await world.putRaw({ key: { S: 'foreign' }, note: { S: 'no lease at all' } });

  it.each([
    [{}, ['a/expired', 'a/held', 'b/held', 'b/released', 'foreign', 'rust/expired', 'rust/held']],
    [{ prefix: 'a/' }, ['a/expired', 'a/held']],
    [{ holder: 'bob' }, ['b/held', 'b/released']],
    [{ state: 'held' }, ['a/held', 'b/held', 'rust/held']],
    [{ state: 'expired' }, ['a/expired', 'rust/expired']],
    [{ state: 'released' }, ['b/released']],
    [{ state: 'free' }, ['foreign']],
    [{ state: 'active' }, ['a/expired', 'a/held', 'b/held', 'rust/expired', 'rust/held']],
    [{ prefix: 'b', holder: 'bob', state: 'held' }, ['b/held']],
    [{ prefix: 'nothing' }, []],
  ] as const)('the list filters by %o', async (query, expected) => {
    const page = await read(query);
    expect(keys(page)).toEqual(expected);
    expect(page).toMatchObject({ nextCursor: null });
    for (const secret of SECRETS) expect(JSON.stringify(page)).not.toContain(secret);
  });

  it('the list pages through what matches, and reads no more rows than it may show if all match', async () => {
    const scanned: number[] = [];
    world.dynamodb.middlewareStack.add(
      (next) => async (args) => {
        const result = await next(args);
        scanned.push((result.output as { ScannedCount: number }).ScannedCount);
        return result;
      },
      { step: 'initialize', name: 'rows read' },
    );
    const pagesOf = async (query: object) => {
      const pages: string[][] = [];
      scanned.length = 0;
      for (let cursor: string | null | undefined; cursor !== null; ) {
        const page = (await world.read({ ...query, limit: 1, ...(cursor && { cursor }) })) as KeyPage;
        if (page.leases.length > 0) pages.push(keys(page));
        expect(scanned.length).toBeLessThan(20);
        cursor = page.nextCursor;
      }
      return { pages: pages.sort(), mostRead: Math.max(...scanned) };
    };
    const held = await pagesOf({ state: 'held' });
    expect(held).toEqual({ pages: [['a/held'], ['b/held'], ['rust/held']], mostRead: 7 });
    const one = await pagesOf({ prefix: 'b', holder: 'bob', state: 'held' });
    expect(one).toEqual({ pages: [['b/held']], mostRead: 7 });
    const all = await pagesOf({});
    expect([all.pages.length, all.mostRead]).toEqual([7, 1]);
    world.dynamodb.middlewareStack.remove('rows read');
  });

  it('the list shows the same state as the read of the one key, if no caller waits', async () => {
    for (const { key, ...listed } of ((await read({})) as KeyPage).leases)
      expect({ key, ...listed, hasRecord: true, previous: null }).toEqual(await read({ key }));
  });

  it('pages through a table larger than one read, every key once', async () => {
    const many = await leaseWorld();
    const expected = Array.from({ length: 1203 }, (_, index) => `many/${index}`);
    for (let from = 0; from < expected.length; from += 25) {
      const puts = expected.slice(from, from + 25).map((key) => ({
        PutRequest: { Item: { key: { S: key }, lease_version: { S: 'v' }, lease_expiry: { N: '1' } } },
      }));
      await many.dynamodb.send(new BatchWriteItemCommand({ RequestItems: { [many.table]: puts } }));
    }
    for (const limit of [1000, 250]) {
      const seen: string[] = [];
      let cursor: string | null | undefined;
      do {
        const page = (await many.read({ limit, ...(cursor && { cursor }) })) as KeyPage;
        expect(page.leases.length).toBeLessThanOrEqual(limit);
        seen.push(...keys(page));
        expect(seen.length).toBeLessThanOrEqual(expected.length);
        cursor = page.nextCursor;
      } while (cursor);
      expect(seen.sort()).toEqual(expected.sort());
    }
    // Rows that do not match bound a page too: it is empty, and goes on.
    const first = (await many.read({ holder: 'nobody' })) as KeyPage;
    expect(first.leases).toEqual([]);
    expect(first.nextCursor).not.toBeNull();
    expect(await many.read({ holder: 'nobody', cursor: first.nextCursor ?? '' })).toEqual({
      leases: [],
      nextCursor: null,
    });
  });

  it('the list survives rows with nonsense, and goes on from keys that are long to write', async () => {
    const strange = await leaseWorld();
    const keys = ['\u0001'.repeat(1024), 'beyond', '\u0002'.repeat(1024)];
    for (const key of keys)
      await strange.putRaw({ key: { S: key }, lease_version: { S: 'v' }, lease_expiry: { N: '9000000000000' } });
    const page = (await strange.read({})) as KeyPage;
    const times = page.leases.map(({ state, expiresAt, ttlSeconds }) => [state, expiresAt, ttlSeconds]);
    expect(times).toEqual(keys.map(() => ['held', null, null]));
    const { code, context } = await failure(strange.acquire({ key: 'beyond' }));
    expect([code, context.expiresAt, context.retryAfterMs]).toEqual(['LeaseHeld', null, 1000]);
    const seen: string[] = [];
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const next = await strange.read(readInput().parse({ limit: 1, ...(cursor && { cursor }) }));
      seen.push(...(next as KeyPage).leases.map(({ key }) => key));
      expect(seen.length).toBeLessThanOrEqual(keys.length);
      cursor = (next as KeyPage).nextCursor;
    }
    expect(seen.sort()).toEqual([...keys].sort());
  });

  it('the list shows data of another client as JSON up to 101 levels, and as text beyond', async () => {
    const deep = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);
    for (const levels of [101, 102]) await world.putRaw({ key: { S: `deep/${levels}` }, data: { S: deep(levels) } });
    expect(await read({ key: 'deep/101' })).toMatchObject({ data: JSON.parse(deep(101)) });
    expect(await read({ key: 'deep/102' })).toMatchObject({ data: deep(102) });
  });

  it.each(['garbage', '', ' ', 'Zm9v=', Buffer.from('x'.repeat(2049)).toString('base64url')])(
    'the list refuses the cursor %s',
    async (cursor) => {
      const { code, context } = await failure(read({ cursor }));
      expect(code).toBe('InvalidRequest');
      expect(context.issues).toEqual([
        { path: 'cursor', message: 'is not a cursor of this listing: list again without a cursor' },
      ]);
    },
  );
});
