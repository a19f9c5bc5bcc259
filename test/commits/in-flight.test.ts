import { describe, expect, it } from 'vitest';
import { listInFlight } from '../../shared/commits/in-flight.ts';
import { call, testClient } from '../support/emulators/aws.ts';
import { get } from '../support/stack/adapters.ts';
import { commitWorld } from '../support/worlds/commits.ts';
import { failure } from '../support/worlds/leases.ts';

const CREATE = { ifNoneMatch: '*', body: 'one' };

/** A record as the crate object_store leaves it: nothing in it says when it began. */
const foreign = (path: string, more: object = {}) => ({
  path: { S: path },
  etag: { S: '*' },
  generation: { N: '0' },
  timeout: { N: '20000' },
  ttl: { N: '9999999999' },
  ...more,
});

/** A record of this service whose commit has not reached S3: its writer has crashed, or is on its way. */
const ours = (path: string, writtenAt: number, more: object = {}) =>
  foreign(path, { commit_id: { S: `of-${path.replaceAll(' ', '-')}` }, written_at: { N: String(writtenAt) }, ...more });

describe('commits in flight', () => {
  it('the list of commits in flight shows only those that may still land', async () => {
    const world = await commitWorld();
    const { commit, clock, inFlight, putRecord, rawPut } = world;
    const { etag } = await commit({ path: 'landed', ...CREATE });
    await putRecord(ours('creating', clock.now() - 5000));
    await putRecord(ours('landed', clock.now() - 1000, { etag: { S: etag }, generation: { N: '3' } }));
    await putRecord(ours('failed', clock.now(), { timeout: { N: '0' } }));
    await putRecord(ours('out of time', clock.now() - 20_001));
    await putRecord(foreign('of another client'));
    await putRecord(foreign('landed by another client'));
    await rawPut('landed by another client', 'x');
    await putRecord(foreign('noted', { etag: { S: 'holdfast:first-sight:*' }, seen_at: { N: '1' } }));
    await putRecord(foreign('nonsense', { generation: { N: '1.5' } }));
    await putRecord(foreign('p'.repeat(1025)));
    const longest = 'p'.repeat(1024); // S3's longest key
    await putRecord(foreign(longest));
    const { commits, nextCursor } = await inFlight();
    expect(nextCursor).toBeNull();
    const at = (ago: number) => new Date(clock.now() - ago).toISOString();
    const common = { expectedEtag: null, generation: 0, timeoutMs: 20_000 };
    expect(commits.toSorted((a, b) => (a.path < b.path ? -1 : 1))).toEqual([
      { ...common, path: 'creating', commitId: 'of-creating', writtenAt: at(5000), remainingMs: 15_000 },
      {
        ...common,
        path: 'landed',
        expectedEtag: etag,
        generation: 3,
        commitId: 'of-landed',
        writtenAt: at(1000),
        remainingMs: 19_000,
      },
      { ...common, path: 'of another client', commitId: null, writtenAt: null, remainingMs: null },
      { ...common, path: longest, commitId: null, writtenAt: null, remainingMs: null },
    ]);
  });

  it('the list of commits in flight agrees with a read of each path', async () => {
    const { clock, inFlight, putRecord, read } = await commitWorld();
    await putRecord(ours('a', clock.now() - 5));
    await putRecord(foreign('b'));
    const { commits } = await inFlight();
    expect(commits).toHaveLength(2);
    for (const { path, expectedEtag, remainingMs: _, ...listed } of commits)
      expect(await read(path)).toMatchObject({ etag: expectedEtag, inFlight: listed });
  });

  it('the list takes one scan, and a HEAD for each record under way', async () => {
    const world = await commitWorld();
    const { clock, putRecord, handlers } = world;
    for (const path of ['a', 'b']) await putRecord(ours(path, clock.now()));
    await putRecord(ours('long over', clock.now() - 60_000));
    await putRecord(foreign('noted', { etag: { S: 'holdfast:first-sight:*' }, seen_at: { N: '1' } }));
    expect((await get(handlers.readInFlight, {})).body.commits).toHaveLength(2);
    const sent = ({ listRequests }: typeof world) => listRequests.flatMap((requests) => requests.sent);
    await world.inFlight();
    expect(sent(world)).toEqual(['Scan', 'HeadObject', 'HeadObject']);
  });

  it('the list under the native protocol still shows the writers of other clients', async () => {
    const { commit, putRecord, inFlight } = await commitWorld({ protocol: 'native' });
    await commit({ path: 'landed', ...CREATE });
    expect(await inFlight()).toEqual({ protocol: 'native', commits: [], nextCursor: null });
    await putRecord(foreign('of another client'));
    expect(await inFlight()).toMatchObject({
      protocol: 'native',
      commits: [{ path: 'of another client', commitId: null }],
    });
  });

  it('the list of commits in flight has every path once, and takes a prefix', async () => {
    const { clock, putRecord, inFlight } = await commitWorld();
    const paths = Array.from({ length: 23 }, (_, index) => `${index % 2 ? 'odd' : 'even'}/${index}`);
    for (const path of paths) await putRecord(ours(path, clock.now()));
    const seen: string[] = [];
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const page = await inFlight({ limit: 4, ...(cursor && { cursor }) });
      expect(page.commits.length).toBeLessThanOrEqual(4);
      seen.push(...page.commits.map(({ path }) => path));
      cursor = page.nextCursor;
    }
    expect(seen.toSorted()).toEqual(paths.toSorted());
    expect((await inFlight({ prefix: 'odd/' })).commits).toHaveLength(11);
    const all = await inFlight();
    expect([all.commits.map(({ path }) => path).toSorted(), all.nextCursor]).toEqual([paths.toSorted(), null]);
  });

  it('the list goes on after the scan, even between two records of a path', async () => {
    const world = await commitWorld();
    const { commit, clock, putRecord, dependencies } = world;
    const { etag } = await commit({ path: 'a', ...CREATE });
    const of = (etag: string) => ours('a', clock.now(), { etag: { S: etag } });
    for (const one of ['"0"', String(etag), '"g"']) await putRecord(of(one));
    // A scan reads a thousand records at most. Here it reads one.
    const dynamodb = testClient();
    dynamodb.middlewareStack.add(
      (next) => (args) => {
        Object.assign(args.input, { Limit: 1 });
        return next(args);
      },
      { step: 'initialize' },
    );
    const list = listInFlight({ ...dependencies, dynamodb });
    const seen: (string | null)[] = [];
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const page = await list({ ...(cursor && { cursor }) }, call());
      seen.push(...page.commits.map(({ expectedEtag }) => expectedEtag));
      cursor = page.nextCursor;
    }
    expect(seen).toEqual([etag]);
  });

  it.each(['garbage', 'Zm9v', Buffer.from('\0*').toString('base64url'), Buffer.from('path\0').toString('base64url')])(
    'the list of commits in flight refuses the cursor %s',
    async (cursor) => {
      const { inFlight } = await commitWorld();
      const { code, context } = await failure(inFlight({ cursor }));
      expect([code, context.issues]).toEqual([
        'InvalidRequest',
        [{ path: 'cursor', message: 'is not a cursor of this listing: list again without a cursor' }],
      ]);
    },
  );

  it('the list of commits in flight names the field at fault', async () => {
    const { handlers } = await commitWorld();
    for (const [query, path] of [
      [{ limit: '0' }, 'limit'],
      [{ prefix: '' }, 'prefix'],
      [{ path: 'a' }, 'path'],
    ] as const)
      expect((await get(handlers.readInFlight, query)).body.issues).toMatchObject([{ path }]);
  });

  it('the list of commits in flight names the missing table', async () => {
    const { inFlight } = await commitWorld({ table: 'test-commits-missing' });
    const error = await failure(inFlight());
    expect([error.code, String(error)]).toEqual(['Unavailable', expect.stringContaining('test-commits-missing')]);
  });
});
