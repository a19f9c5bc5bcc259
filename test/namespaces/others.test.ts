import { afterAll, describe, expect, it } from 'vitest';
import { commitRecord, commitRow, deadPermit, lease, N, waiter } from '../support/worlds/expiry.ts';
import { namespaceWorld } from '../support/worlds/namespaces.ts';

const world = await namespaceWorld();
afterAll(() => world.stop());
const [a, b, all] = [world.of('team-a'), world.of('team-b'), world.of()];

describe('commits', () => {
  const commit = (from: typeof a, path: string, more: object = {}) =>
    from.post('commits', { path, ifNoneMatch: '*', body: 'x', ...more });

  it('a commit in a namespace takes only paths that begin with the namespace', async () => {
    expect((await commit(a, 'team-a/log/1')).body).toMatchObject({ path: 'team-a/log/1', repeated: false });
    const outside = ['team-b/log/1', 'log/1', 'team-a', 'team-ab/x', '/team-a/x'];
    for (const path of outside) {
      const issues = [{ path: 'path', message: 'must begin with team-a/, the namespace of the call' }];
      expect((await commit(a, path)).body, path).toMatchObject({ code: 'InvalidRequest', issues });
      expect((await a.get('commits', { path })).body, path).toMatchObject({ code: 'InvalidRequest', issues });
    }
    const inside = ['team-a/../team-b/x', 'team-a//x', 'team-a/', 'team-a/./x'];
    for (const path of inside) expect((await commit(a, path)).status, path).toBe(400);
    expect(await world.commits.allObjects()).toEqual(['team-a/log/1']);
    expect((await a.get('commits', { path: 'team-a/log/1' })).body).toMatchObject({ size: 1 });
  });

  it('a commit in a namespace has the names of its fences in the namespace', async () => {
    const path = 'team-a/fenced';
    const fence = { key: 'job', token: 7 };
    await commit(a, path, { fence, commitId: 'one' });
    const seen = await a.get('commits', { path });
    expect(seen.body.fence).toEqual(fence);
    expect((await all.get('commits', { path })).body.fence).toEqual({ key: 'team-a/job', token: 7 });
    const { etag: ifMatch } = seen.body;
    const replaced = { path, ifMatch, body: 'y' };
    expect((await all.post('commits', { ...replaced, fence })).body).toMatchObject({ code: 'FenceRejected' });
    const reset = { path, ifMatch, fence: null };
    const wrong = await a.post('commits/reset-fence', { ...reset, expectedFence: { ...fence, token: 6 } });
    expect(wrong.body).toMatchObject({ code: 'PreconditionFailed', fence });
    expect((await a.post('commits/reset-fence', { ...reset, expectedFence: fence })).status).toBe(200);
    const long = { key: 'k'.repeat(256 - 'team-a/'.length), token: 1 };
    expect((await commit(a, 'team-a/long', { fence: long })).status).toBe(201);
    expect((await commit(a, 'team-a/longer', { fence: { ...long, key: `${long.key}k` } })).body.issues).toEqual([
      { path: 'fence.key', message: 'must be at most 256 bytes of UTF-8' },
    ]);
  });

  it('a commit in a namespace finds only uploads of its own namespace', async () => {
    const staged = await a.post('uploads', {});
    expect(new URL(staged.body.url).pathname).toContain(`/.holdfast/staging/team-a/${staged.body.uploadId}`);
    const { uploadId: source } = staged.body;
    await world.commits.rawPut(`.holdfast/staging/team-a/${source}`, 'bytes');
    const of = (path: string) => ({ path, ifNoneMatch: '*', source });
    for (const [from, path] of [
      [b, 'team-b/u'],
      [all, 'u'],
    ] as const)
      expect((await from.post('commits', of(path))).body).toMatchObject({ code: 'NotFound', source });
    expect((await a.post('commits', of('team-a/u'))).body).toMatchObject({ path: 'team-a/u', size: 5 });
  });

  it('a commit in a namespace is listed only to callers of its namespace', async () => {
    const under = (path: string) =>
      world.commits.putRecord({ ...commitRecord(path, 0), written_at: N(world.clock.now()), ttl: N(9_999_999_999) });
    for (const path of ['team-a/flight', 'team-b/flight', 'flight']) await under(path);
    const listed = async (from: typeof a, query: Record<string, string> = {}) => {
      const { body } = await from.get('commits/in-flight', query);
      return body.commits?.map(({ path }: { path: string }) => path) ?? body.issues;
    };
    expect(await listed(a)).toEqual(['team-a/flight']);
    expect(await listed(a, { prefix: 'team-a/fl' })).toEqual(['team-a/flight']);
    expect(await listed(a, { prefix: 'team-a/x' })).toEqual([]);
    expect(await listed(a, { prefix: 'team-b/' })).toMatchObject([{ path: 'prefix' }]);
    expect((await listed(all)).toSorted()).toEqual(['flight', 'team-a/flight', 'team-b/flight']);
  });
});

describe('aliases', () => {
  it('an alias of a namespace is another alias than the same name elsewhere', async () => {
    const init = { op: 'initLedger', alias: 'books' };
    for (const from of [a, b, all]) {
      const { status, body } = await from.post('nameservice/publish', init);
      expect([status, body.alias, body.current.name]).toEqual([201, 'books:main', 'books']);
    }
    await a.post('nameservice/publish', { op: 'publishCommit', alias: 'books', address: 'x', t: 5 });
    const t = async (from: typeof a, alias: string) => (await from.get('nameservice', { alias })).body.commit.t;
    expect([await t(a, 'books'), await t(b, 'books:main'), await t(all, 'books')]).toEqual([5, 0, 0]);
    expect(await t(all, 'team-a/books')).toBe(5);
    const source = {
      op: 'publishGraphSource',
      alias: 'view',
      sourceType: 's',
      config: {},
      dependencies: ['books', 'b:c'],
    };
    expect((await a.post('nameservice/publish', source)).body.current).toMatchObject({
      alias: 'view:main',
      dependencies: ['books:main', 'b:c'],
    });
    expect((await all.get('nameservice', { alias: 'team-a/view' })).body.dependencies).toEqual([
      'team-a/books:main',
      'team-a/b:c',
    ]);
    const lost = {
      op: 'compareAndSetRef',
      alias: 'books',
      ref: 'commit',
      expected: null,
      next: { address: 'y', t: 6 },
    };
    expect((await a.post('nameservice/publish', lost)).body).toMatchObject({ code: 'Conflict', alias: 'books:main' });
    expect((await b.get('nameservice', { alias: 'view' })).body).toMatchObject({
      code: 'NotFound',
      alias: 'view:main',
    });
  });

  it('an alias without a name is refused in a namespace too', async () => {
    const fault = { path: 'alias', message: 'must be name or name:branch, without empty parts or further colons' };
    for (const alias of ['', ':main', 'a:b:c', ':']) {
      expect((await a.post('nameservice/publish', { op: 'initLedger', alias })).body.issues, alias).toContainEqual(
        fault,
      );
      expect((await a.get('nameservice', { alias })).body.issues, alias).toContainEqual(fault);
    }
  });

  it('an alias is repaired and listed only in its namespace', async () => {
    const publish = (from: typeof a, op: string, alias: string, more = {}) =>
      from.post('nameservice/publish', { op, alias, ...more });
    for (const from of [a, b]) await publish(from, 'initLedger', 'mended');
    await publish(a, 'publishCommit', 'mended', { address: 'x', t: 5 });
    await publish(a, 'initLedger', 'mended-too');
    const { body } = await a.get('nameservice', { alias: 'mended' });
    const reset = {
      op: 'resetRef',
      alias: 'mended',
      ref: 'commit',
      expected: body.commit,
      next: { address: 'z', t: 1 },
    };
    expect((await b.post('nameservice/repair', reset)).body).toMatchObject({ code: 'Conflict', alias: 'mended:main' });
    expect((await a.post('nameservice/repair', reset)).body).toMatchObject({ alias: 'mended:main', current: { t: 1 } });
    const seen: string[] = [];
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const page = await a.get('nameservice', { prefix: 'mended', limit: '1', ...(cursor && { cursor }) });
      seen.push(...page.body.records.map(({ alias }: { alias: string }) => alias));
      cursor = page.body.nextCursor;
      if (cursor)
        expect((await b.get('nameservice', { prefix: 'mended', cursor })).body.issues).toMatchObject([
          { path: 'cursor' },
        ]);
    }
    expect(seen.toSorted()).toEqual(['mended-too:main', 'mended:main']);
    const others = (await b.get('nameservice', {})).body.records.map(({ alias }: { alias: string }) => alias);
    expect([others.includes('mended:main'), others.includes('mended-too:main')]).toEqual([true, false]);
    expect(others.filter((alias: string) => alias.includes('/'))).toEqual([]);
    expect((await b.get('nameservice', { prefix: 'mended-' })).body.records).toEqual([]);
    expect((await a.get('nameservice', { prefix: 'mended-' })).body.records).toMatchObject([
      { alias: 'mended-too:main' },
    ]);
  });
});

describe('expired records', () => {
  const HOUR = 3_600_000;

  it('a caller of a namespace sees and cleans only its own expired records', async () => {
    const now = world.clock.now();
    const gone = now - 48 * HOUR;
    for (const prefix of ['team-a/', 'team-b/', '']) {
      await world.expiry.putLease(lease(`${prefix}old`, gone));
      await world.expiry.putCommit(commitRecord(`${prefix}old`, Math.floor(gone / 1000)));
      await world.expiry.putName(commitRow(`${prefix}old:main`, N(Math.floor(gone / 1000))));
      await world.expiry.putWaiter(waiter(`${prefix}old`, gone));
      await world.expiry.putLease(deadPermit(`${prefix}gpus`, gone));
      await world.expiry.putWaiter({ ...waiter(`${prefix}gpus`, gone), weight: N(1) });
    }
    // This key looks like an upload of the namespace, but is none of its names.
    await world.expiry.putLease(lease('.holdfast/staging/team-a/fake', gone));
    const reported = await a.post('expired/report', {});
    const counts = (expired: Record<string, { count: number }>) =>
      Object.fromEntries(Object.entries(expired).flatMap(([kind, { count }]) => (count > 0 ? [[kind, count]] : [])));
    const own = { abandonedLease: 1, abandonedPermit: 1, commit: 1, nameserviceRow: 1, waiter: 2 };
    expect(reported).toMatchObject({ status: 201, body: { complete: true, scanned: 6, readUnits: 0 } });
    expect(counts(reported.body.expired)).toEqual(own);
    const read = await a.get('expired');
    expect(read.body.rows.map(({ key }: { key: object }) => key)).toEqual(
      expect.arrayContaining([
        { key: 'old' },
        { key: 'gpus', fence: String(gone) },
        { path: 'team-a/old', etag: '*' },
        { pk: 'old:main', sk: expect.stringContaining('commit#') },
        { key: 'old', ticket: expect.any(String) },
        { key: 'gpus', ticket: expect.any(String) },
      ]),
    );
    expect(read.body.rows).toHaveLength(6);
    expect(counts(read.body.expired)).toEqual(own);
    expect(JSON.stringify(read.body)).not.toMatch(/team-b|fake/);
    expect((await all.get('expired')).body.rows.length).toBeGreaterThanOrEqual(18);

    // A cursor names a row among those of all namespaces, so it is sealed, and valid only in its own namespace.
    const { nextCursor: cursor } = (await a.get('expired', { limit: '2' })).body;
    expect(Buffer.from(cursor, 'base64url').toString()).not.toContain(read.body.reportId);
    expect((await a.get('expired', { cursor })).body.rows).toHaveLength(4);
    expect((await a.post('expired/clean', { cursor })).body).toMatchObject({ dryRun: true });
    const { nextCursor: plain } = (await all.get('expired', { limit: '2' })).body;
    for (const refused of [
      await b.get('expired', { cursor }),
      await b.post('expired/clean', { cursor }),
      await all.get('expired', { cursor }),
      await a.get('expired', { cursor: plain }),
      await a.post('expired/clean', { cursor: plain }),
    ])
      expect([refused.status, refused.body.issues?.[0]?.path]).toEqual([400, 'cursor']);

    const cleaned = await a.post('expired/clean', { dryRun: false, olderThanSeconds: 0 });
    expect(cleaned.body.deleted.by).toEqual({ abandonedLease: 1, abandonedPermit: 1, commit: 1, nameserviceRow: 1 });
    expect(cleaned.body.spared.by).toEqual({ leftToQueue: 2 });
    expect(cleaned.body.deleted.records).toContainEqual(expect.objectContaining({ key: { key: 'old' } }));
    const { leasesTable, commitsTable, nameserviceTable } = world.locations;
    const inUse = (await world.expiry.itemsOf(leasesTable)).flatMap(({ key, used }) =>
      key?.S?.endsWith('gpus') ? [`${key.S}: ${used?.N}`] : [],
    );
    expect(inUse.toSorted()).toEqual(['gpus: 1', 'team-a/gpus: 0', 'team-b/gpus: 1']);
    const left = async (table: string, attribute: string) =>
      (await world.expiry.itemsOf(table))
        .map((item) => item[attribute]?.S ?? '')
        .filter((name) => /old$|old:|fake/.test(name))
        .toSorted();
    expect(await left(leasesTable, 'key')).toEqual(['.holdfast/staging/team-a/fake', 'old', 'team-b/old']);
    expect(await left(commitsTable, 'path')).toEqual(['old', 'team-b/old']);
    expect(await left(nameserviceTable, 'pk')).toEqual(['old:main', 'team-b/old:main']);
  });
});

describe('the OpenAPI document', () => {
  it('the document of the API names the routes of the namespace', async () => {
    expect((await a.get('openapi.json')).body).toMatchObject({ openapi: '3.1.0' });
    const { calls } = (await a.get('whoami')).body;
    const routes = calls.map(({ route }: { route: string }) => route);
    expect(routes).toContain('POST /v1/ns/team-a/leases/acquire');
    expect(routes).toContain('GET /v1/ns/team-a/openapi.json');
    expect(routes.every((route: string) => route.includes('/v1/ns/team-a/'))).toBe(true);
  });
});

it('a cursor of one list of a namespace is refused by its other lists', async () => {
  for (const alias of ['list-1', 'list-2']) await a.post('nameservice/publish', { op: 'initLedger', alias });
  for (const key of ['list-1', 'list-2']) await a.post('leases/acquire', { key, holder: 'h' });
  const query = { prefix: 'list-', limit: '1' };
  const names = (await a.get('nameservice', query)).body.nextCursor;
  const leases = (await a.get('leases', query)).body.nextCursor;
  for (const [list, own, others] of [
    ['nameservice', names, leases],
    ['leases', leases, names],
    ['commits/in-flight', undefined, leases],
    ['expired', undefined, names],
  ]) {
    expect(others).toEqual(expect.any(String));
    if (own) expect((await a.get(list, { cursor: own })).status).toBe(200);
    const { status, body } = await a.get(list, { cursor: others });
    expect([status, body.issues]).toEqual([
      400,
      [{ path: 'cursor', message: 'is not a cursor of this listing: list again without a cursor' }],
    ]);
  }
});
