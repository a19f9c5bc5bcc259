import { BatchWriteItemCommand, PutItemCommand } from '@aws-sdk/client-dynamodb';
import { afterAll, describe, expect, it } from 'vitest';
import { encodeCursor } from '../../shared/listings/cursor.ts';
import { acquire as acquireKey } from '../../shared/locks/calls/acquire.ts';
import { acquireInput, type ReadInput, readInput } from '../../shared/locks/calls/inputs.ts';
import type { KeyPage } from '../../shared/locks/calls/list-keys.ts';
import { readKeyOrList } from '../../shared/locks/calls/read.ts';
import { release as releaseCall } from '../../shared/locks/calls/release.ts';
import { call } from '../support/emulators/aws.ts';
import { documented } from '../support/stack/contract.ts';
import { failure, leaseWorld } from '../support/worlds/leases.ts';
import { lineWorld } from '../support/worlds/line.ts';

/** The rows of all pages. */
async function rowsOf(list: (query: ReadInput) => Promise<unknown>, query: ReadInput) {
  const rows: KeyPage['leases'] = [];
  for (let [cursor, pages]: [string | null | undefined, number] = [undefined, 0]; cursor !== null; pages++) {
    const page = (await list({ ...query, ...(cursor && { cursor }) })) as KeyPage;
    if (query.limit) expect(page.leases.length).toBeLessThanOrEqual(query.limit);
    expect(pages).toBeLessThan(20);
    rows.push(...page.leases);
    cursor = page.nextCursor;
  }
  return rows;
}

const SECRETS = ['leaseId', 'version', 'requestId', 'principal'];

describe('pages', async () => {
  const world = await leaseWorld();
  const { acquire, release, read, clock } = world;
  const keys = (page: unknown) => (page as KeyPage).leases.map(({ key }) => key).sort();

  await acquire({ key: 'a/expired', holder: 'ann', ttlSeconds: 2 });
  for (const holder of ['ann', 'cid']) await acquire({ key: 'c/shared', holder, limit: 5, ttlSeconds: 600 });
  await release(await acquire({ key: 'c/free', limit: 5 }));
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
    [{}, ['a/expired', 'a/held', 'b/held', 'b/released', 'c/free', 'c/shared', 'foreign', 'rust/expired', 'rust/held']],
    [{ prefix: 'a/' }, ['a/expired', 'a/held']],
    [{ holder: 'bob' }, ['b/held', 'b/released']],
    [{ holder: 'cid' }, ['c/shared']],
    [{ state: 'held' }, ['a/held', 'b/held', 'c/shared', 'rust/held']],
    [{ state: 'expired' }, ['a/expired', 'rust/expired']],
    [{ state: 'released' }, ['b/released']],
    [{ state: 'free' }, ['c/free', 'foreign']],
    [{ state: 'active' }, ['a/expired', 'a/held', 'b/held', 'c/shared', 'rust/expired', 'rust/held']],
    [{ prefix: 'b', holder: 'bob', state: 'held' }, ['b/held']],
    [{ prefix: 'nothing' }, []],
  ] as const)('the list filters by %o', async (query, expected) => {
    const page = await read(query);
    expect(keys(page)).toEqual(expected);
    expect(page).toMatchObject({ nextCursor: null });
    for (const secret of SECRETS) expect(JSON.stringify(page)).not.toContain(secret);
  });

  it('the list pages through what matches, and reads no more rows than needed', async () => {
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
      return { pages: pages.sort(), maxRead: Math.max(...scanned) };
    };
    const held = await pagesOf({ state: 'held' });
    expect(held).toEqual({ pages: [['a/held'], ['b/held'], ['c/shared'], ['rust/held']], maxRead: 9 });
    const one = await pagesOf({ prefix: 'b', holder: 'bob', state: 'held' });
    expect(one).toEqual({ pages: [['b/held']], maxRead: 9 });
    const all = await pagesOf({});
    expect([all.pages.length, all.maxRead]).toEqual([9, 1]);
    world.dynamodb.middlewareStack.remove('rows read');
  });

  it('the list shows the same state as the read of a key without waiters', async () => {
    for (const { key, ...listed } of ((await read({})) as KeyPage).leases)
      expect(await read({ key })).toMatchObject({ key, ...listed, holders: { length: listed.holders } });
  });

  it('the list pages through a table larger than one read, every key once', async () => {
    const many = await leaseWorld();
    const expected = Array.from({ length: 1203 }, (_, index) => `many/${index}`);
    for (let from = 0; from < expected.length; from += 25) {
      const puts = expected.slice(from, from + 25).map((key) => ({
        PutRequest: { Item: { key: { S: key }, lease_version: { S: 'v' }, lease_expiry: { N: '1' } } },
      }));
      await many.dynamodb.send(new BatchWriteItemCommand({ RequestItems: { [many.table]: puts } }));
    }
    for (const limit of [1000, 250]) {
      const seen = await rowsOf(many.read, { limit });
      expect(seen.map(({ key }) => key).sort()).toEqual(expected.sort());
    }
    // Rows that do not match also count for the size of a page, so a page may be empty and still have a cursor.
    const first = (await many.read({ holder: 'nobody' })) as KeyPage;
    expect(first.leases).toEqual([]);
    expect(first.nextCursor).not.toBeNull();
    expect(await many.read({ holder: 'nobody', cursor: first.nextCursor ?? '' })).toEqual({
      leases: [],
      nextCursor: null,
    });
  });

  it('the list survives nonsense in rows, and goes on after long keys', async () => {
    const strange = await leaseWorld();
    const keys = ['\u0001'.repeat(1024), 'beyond', '\u0002'.repeat(1024)];
    for (const key of keys)
      await strange.putRaw({ key: { S: key }, lease_version: { S: 'v' }, lease_expiry: { N: '9000000000000' } });
    const page = (await strange.read({})) as KeyPage;
    const times = page.leases.map(({ state, expiresAt, ttlSeconds }) => [state, expiresAt, ttlSeconds]);
    expect(times).toEqual(keys.map(() => ['held', null, null]));
    const { code, context } = await failure(strange.acquire({ key: 'beyond' }));
    expect([code, context.expiresAt, context.retryAfterMs]).toEqual(['LeaseHeld', null, 1000]);
    const seen = await rowsOf((query) => strange.read(readInput().parse(query)), { limit: 1 });
    expect(seen.map(({ key }) => key).sort()).toEqual([...keys].sort());
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

describe('keys', async () => {
  const { dependencies, clock, steps } = await lineWorld();
  afterAll(() => steps.stop());
  const taken = documented('acquire', acquireKey(dependencies));
  const released = documented('release', releaseCall(dependencies));
  const lookedUp = documented('readLeases', readKeyOrList(dependencies));

  const input = acquireInput();
  const acquire = async (asked: object) => {
    clock.advance(1);
    const answer = await taken(input.parse({ holder: 'tester', ...asked }), call());
    return answer as Extract<typeof answer, { leaseId: string }>;
  };
  const park = (asked: object) => acquire({ holder: 'waits', taskToken: steps.newTask().token, ...asked });
  const list = async (query: ReadInput) => (await lookedUp(query, call())) as KeyPage;

  const keysOf = async (query: ReadInput) => (await rowsOf(list, query)).map(({ key }) => key);

  await acquire({ key: 'b alone', holder: 'x', ttlSeconds: 10 });
  for (const holder of ['p', 'q']) await acquire({ key: 'a shared', holder, limit: 2, ttlSeconds: 60 });
  await park({ key: 'a shared', limit: 2 });
  await acquire({ key: 'c shared', holder: 'p', limit: 5, ttlSeconds: 5 });

  it('the list of keys shows for each key its holders, use and line', async () => {
    expect(await list({ sort: 'key' })).toMatchObject({
      leases: [
        { key: 'a shared', state: 'held', holder: 'p', used: 2, limit: 2, holders: 2, waiting: 1 },
        { key: 'b alone', state: 'held', holder: 'x', used: 1, limit: null, holders: 1, waiting: 0 },
        { key: 'c shared', state: 'held', holder: 'p', used: 1, limit: 5, holders: 1, waiting: 0 },
      ],
      nextCursor: null,
    });
    expect(await keysOf({ sort: 'expiry', limit: 1 })).toEqual(['c shared', 'b alone', 'a shared']);
    expect(await keysOf({ sort: 'key', limit: 2 })).toEqual(['a shared', 'b alone', 'c shared']);
    expect((await keysOf({ holder: 'p' })).toSorted()).toEqual(['a shared', 'c shared']);
    clock.advance(5001);
    expect(await keysOf({ state: 'expired' })).toEqual(['c shared']);
  });

  it('the list of keys sorts by the longest hold, and by the longest line', async () => {
    const prefix = 'sorted/';
    const first = await acquire({ key: 'sorted/shared', holder: 'old', limit: 3, ttlSeconds: 600 });
    await acquire({ key: 'sorted/alone', ttlSeconds: 600 });
    await acquire({ key: 'sorted/shared', holder: 'ends first', limit: 3, ttlSeconds: 60 });
    const gone = await acquire({ key: 'sorted/released' });
    await released({ key: gone.key, leaseId: gone.leaseId }, call());
    for (let count = 0; count < 2; count++) await park({ key: 'sorted/alone' });
    await park({ key: 'sorted/shared', limit: 3, weight: 2 });
    for (const limit of [1, 10]) {
      expect(await keysOf({ prefix, sort: 'held', limit })).toEqual([
        'sorted/shared',
        'sorted/alone',
        'sorted/released',
      ]);
      expect(await keysOf({ prefix, sort: 'waiting', limit })).toEqual([
        'sorted/alone',
        'sorted/shared',
        'sorted/released',
      ]);
    }
    const [oldest] = await rowsOf(list, { prefix, sort: 'held' });
    expect(oldest).toMatchObject({ holder: 'old', acquiredAt: first.acquiredAt, holders: 2 });
    // A list shows one holder of each key: the one that has held it for longest. A list by expiry shows the one that ends first.
    for (const sort of ['key', 'waiting'] as const)
      expect(await rowsOf(list, { prefix, sort })).toContainEqual(expect.objectContaining({ holder: 'old' }));
    expect(await rowsOf(list, { prefix })).toContainEqual(expect.objectContaining({ holder: 'old' }));
    const [endsFirst] = await rowsOf(list, { prefix, sort: 'expiry' });
    expect(endsFirst).toMatchObject({ key: 'sorted/shared', holder: 'ends first' });
  });
});

describe('cursors', async () => {
  const { dependencies, steps } = await lineWorld();
  afterAll(() => steps.stop());
  const acquire = acquireKey(dependencies);
  const read = documented('readLeases', readKeyOrList(dependencies));
  const list = async (query: object) => (await read(readInput().parse(query), call())) as KeyPage;

  const longest = ['a', '"', '\u0001', 'é'].map((text) => text.repeat(1024 / Buffer.byteLength(text)));
  for (const [nth, key] of longest.entries())
    await acquire(
      acquireInput().parse({ key, holder: 'tester', ttlSeconds: 60 + nth, ...(nth % 2 && { limit: 2 }) }),
      call(),
    );

  const foreign = 'z'.repeat(2048);
  await dependencies.dynamodb.send(
    new PutItemCommand({
      TableName: dependencies.table,
      Item: { key: { S: foreign }, lease_version: { S: 'da91f8eb' }, lease_expiry: { N: '9999999999' } },
    }),
  );
  longest.push(foreign);

  it.each(['key', 'expiry'])('a cursor of a list sorted by %s continues behind the longest keys', async (sort) => {
    const seen = (await rowsOf(list, { sort, limit: 1 } as ReadInput)).map(({ key }) => key);
    expect(seen).toEqual(sort === 'key' ? longest.toSorted() : longest);
  });

  it('a cursor is refused by a list with another sort', async () => {
    const sorts = [{}, { sort: 'key' }, { sort: 'expiry' }];
    for (const of of sorts)
      for (const other of sorts.filter((one) => one !== of)) {
        const { nextCursor } = await list({ ...of, limit: 1 });
        const refused = await failure(list({ ...other, cursor: nextCursor }));
        expect(refused.context.issues).toEqual([
          { path: 'cursor', message: 'belongs to a list with another sort: send that sort, or no cursor' },
        ]);
      }
  });

  it.each(['', 'key', 'key:', '["a","b"]', '[1]', '[['])(
    'a cursor of a sorted list is refused if it reads %j',
    async (text) => {
      const refused = await failure(list({ sort: 'key', cursor: encodeCursor(text) || '-' }));
      expect(refused.context.issues).toMatchObject([{ path: 'cursor' }]);
    },
  );
});
