import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { Fault } from '../support/emulators/aws.ts';
import { get, post, throughTask } from '../support/stack/adapters.ts';
import { type CommitWorld, commitWorld, foreignRecord } from '../support/worlds/commits.ts';
import { failure } from '../support/worlds/leases.ts';

const md5 = { one: '"f97c5d29941bfb1b2fdab0874906ab82"', two: '"b8a9f715dbb64fd5c56e7783c6820a61"' };

function clear({ records, objects }: Pick<CommitWorld, 'records' | 'objects'>) {
  records.sent.length = 0;
  objects.sent.length = 0;
}

/** The emulator does not keep versions, so the test adds a version to its answer. */
const ofVersion =
  (version: string): Fault =>
  async (send) => {
    const answer = (await send()) as { response: { headers: Record<string, string> } };
    answer.response.headers['x-amz-version-id'] = version;
    return answer;
  };

describe('protocol dynamo', async () => {
  const world = await commitWorld();
  const { commit, read, clock, records, objects } = world;

  it('a commit (dynamo) creates with one HEAD, one record and one PUT', async () => {
    clear(world);
    const committed = await commit({ path: 'table/_log/0.json', ifNoneMatch: '*', body: 'one', commitId: 'c-1' });
    expect([objects.sent, records.sent]).toEqual([['HeadObject', 'PutObject'], ['PutItem']]);
    expect(committed).toEqual({
      path: 'table/_log/0.json',
      etag: md5.one,
      size: 3,
      commitId: 'c-1',
      generation: 0,
      protocol: 'dynamo',
      repeated: false,
    });
    expect(await world.body('table/_log/0.json')).toBe('one');
  });

  it('a commit adds only commit_id and written_at to the record of object_store', async () => {
    await commit({ path: 'rec/ä b', ifNoneMatch: '*', body: 'one', commitId: 'c-1' });
    const now = clock.now();
    const seconds = Math.ceil(now / 1000) + 3600;
    expect(await world.rawRecord('rec/ä b')).toEqual({
      path: { S: 'rec/ä b' },
      etag: { S: '*' },
      generation: { N: '0' },
      timeout: { N: '20000' },
      ttl: { N: String(seconds) },
      commit_id: { S: 'c-1' },
      written_at: { N: String(now) },
    });
    await commit({ path: 'rec/ä b', ifMatch: md5.one, body: 'two', commitId: 'c-2' });
    expect(await world.rawRecord('rec/ä b', md5.one)).toMatchObject({
      etag: { S: md5.one },
      generation: { N: '0' },
      commit_id: { S: 'c-2' },
    });
  });

  it('a commit counts generations up from its own record, without a wait', async () => {
    await commit({ path: 'again', ifNoneMatch: '*', body: 'one' });
    await world.rawDelete('again');
    const { generation } = await commit({ path: 'again', ifNoneMatch: '*', body: 'two' });
    expect(generation).toBe(1);
    expect(await world.rawRecord('again')).toMatchObject({ generation: { N: '1' } });
  });

  it('a commit names its id if the record was never answered', async () => {
    const path = 'record-unknown';
    const service = world.another();
    service.records.faultsOf.PutItem = ['error500', 'error500', 'error500'];
    const unknown = await failure(service.commit({ path, ifNoneMatch: '*', body: 'one' }));
    const expected = { retryWith: { commitId: expect.any(String) }, retryAfterMs: 1000 };
    expect(unknown).toMatchObject({ code: 'OutcomeUnknown', context: expected });
    const given = unknown.context.retryWith as object;
    expect(await commit({ path, ifNoneMatch: '*', body: 'one', ...given })).toMatchObject({
      ...given,
      repeated: false,
    });
  });

  it('a commit names only the version of the object that it wrote itself', async () => {
    const service = world.another();
    const { faultsOf } = service.objects;
    const input = { path: 'versions', ifNoneMatch: '*', body: 'one', commitId: 'mine' };
    faultsOf.PutObject = [ofVersion('v-1')];
    expect(await service.commit(input)).toMatchObject({ versionId: 'v-1', repeated: false });
    const answer = { path: 'versions', commitId: 'mine', protocol: 'dynamo', repeated: true };
    expect(await service.commit(input)).toEqual({ ...answer, etag: md5.one, size: 3 });
    faultsOf.HeadObject = [ofVersion('v-1')];
    expect(await service.commit(input)).toEqual({ ...answer, etag: md5.one, versionId: 'v-1', size: 3 });

    expect(await service.commit({ path: 'versions', ifMatch: md5.one, body: 'two' })).not.toHaveProperty('versionId');
    faultsOf.HeadObject = [ofVersion('v-2')];
    expect(await service.commit(input)).toEqual({ ...answer, etag: null, currentEtag: md5.two, size: null });
  });

  it('a commit that lost names the object that is there, before any write', async () => {
    await commit({ path: 'lose', ifNoneMatch: '*', body: 'one' });
    clear(world);
    const lost = await failure(commit({ path: 'lose', ifNoneMatch: '*', body: 'two' }));
    const expected = { code: 'PreconditionFailed', context: { path: 'lose', etag: md5.one } };
    expect(lost).toMatchObject({
      ...expected,
      message: 'there is an object at the path: read the object before you commit again',
    });
    const stale = await failure(commit({ path: 'lose', ifMatch: md5.two, body: 'three' }));
    expect(stale).toMatchObject({
      ...expected,
      message: 'the object at the path has another ETag: read the object, and send its current ETag',
    });
    expect([objects.sent, records.sent]).toEqual([['HeadObject', 'HeadObject'], []]);
  });

  it('a commit is tried again if the object in its way is gone', async () => {
    const path = 'came and went';
    const service = world.another();
    service.objects.faultsOf.PutObject = [
      async (send) => {
        await world.rawPut(path, 'foreign');
        return send().finally(() => world.rawDelete(path));
      },
    ];
    const input = { path, ifNoneMatch: '*', body: 'one', commitId: 'mine' };
    expect(await service.commit(input)).toMatchObject({ generation: 1, repeated: false });
    expect(await world.body(path)).toBe('one');
  });

  it('a commit compares and swaps, even with an ETag that lost its quotes', async () => {
    const { etag } = await commit({ path: 'swap', ifNoneMatch: '*', body: 'one' });
    const swapped = await commit({ path: 'swap', ifMatch: String(etag).replaceAll('"', ''), body: 'two' });
    expect(swapped).toMatchObject({ etag: md5.two, repeated: false });
    expect(await world.body('swap')).toBe('two');
  });

  it('a commit answers etag: null to a caller who replaces an absent object', async () => {
    const absent = await failure(commit({ path: 'absent', ifMatch: md5.one, body: 'two' }));
    expect(absent).toMatchObject({ code: 'PreconditionFailed', context: { path: 'absent', etag: null } });
    expect(absent.message).toBe('there is no object at the path: commit with ifNoneMatch to create the object');
  });

  it('a commit refuses identical bytes, because their ETag would not show who won', async () => {
    await commit({ path: 'same', ifNoneMatch: '*', body: 'one' });
    clear(world);
    const same = await failure(commit({ path: 'same', ifMatch: md5.one, body: 'one' }));
    expect(same).toMatchObject({ code: 'InvalidRequest', context: { issues: [{ path: 'body' }] } });
    expect(records.sent).toEqual([]);
  });

  it('a commit keeps content type and metadata, and shows the metadata of the user', async () => {
    const metadata = { 'schema-version': '7', author: 'me' };
    await commit({ path: 'meta', ifNoneMatch: '*', body: '{}', contentType: 'application/json', metadata });
    expect(await read('meta')).toMatchObject({ contentType: 'application/json', metadata, size: 2 });
  });

  it('a commit takes base64', async () => {
    const bytes = Buffer.from([0, 255, 10, 128]);
    const body = bytes.toString('base64');
    const { size } = await commit({ path: 'binary', ifNoneMatch: '*', body, encoding: 'base64' });
    expect(size).toBe(4);
    expect((await read('binary')).etag).toBe(`"${createHash('md5').update(bytes).digest('hex')}"`);
  });

  it('a commit answers through both adapters', async () => {
    const { handlers } = world;
    const payload = { path: 'doors', ifNoneMatch: '*', body: 'one', commitId: 'door' };
    expect(await post(handlers.commit, payload)).toMatchObject({ status: 201, body: { etag: md5.one } });
    expect(await post(handlers.commit, payload)).toMatchObject({ status: 200, body: { repeated: true } });
    expect(await post(handlers.commit, { ...payload, commitId: 'x' })).toMatchObject({
      status: 412,
      outcome: 'PreconditionFailed',
    });
    expect(await throughTask(handlers.commit, { ...payload, commitId: 'y' })).toMatchObject({
      outcome: 'PreconditionFailed',
    });
    expect(await get(handlers.readCommit, { path: 'doors' })).toMatchObject({
      status: 200,
      body: { commitId: 'door' },
    });
  });
});

describe('protocol native', async () => {
  const world = await commitWorld({ protocol: 'native' });
  const { commit, records, objects } = world;

  it('a commit (native) creates with one call and replaces with two, without a record', async () => {
    clear(world);
    const created = await commit({ path: 'n', ifNoneMatch: '*', body: 'one' });
    expect(objects.sent).toEqual(['PutObject']);
    expect(created).toMatchObject({ etag: md5.one, protocol: 'native', repeated: false });
    expect(created).not.toHaveProperty('generation');
    objects.sent.length = 0;
    await commit({ path: 'n', ifMatch: md5.one, body: 'two' });
    expect(objects.sent).toEqual(['HeadObject', 'PutObject']);
    expect(records.sent).toEqual([]);
    expect(await world.allRecords()).toEqual([]);
  });

  it('a commit (native) reads only after a refusal', async () => {
    await commit({ path: 'refused', ifNoneMatch: '*', body: 'one' });
    objects.sent.length = 0;
    const lost = await failure(commit({ path: 'refused', ifNoneMatch: '*', body: 'three' }));
    expect(lost).toMatchObject({ code: 'PreconditionFailed', context: { etag: md5.one } });
    expect(objects.sent).toEqual(['PutObject', 'HeadObject']);
  });

  it('a commit (native) recognises its repeat', async () => {
    await commit({ path: 'r', ifNoneMatch: '*', body: 'one', commitId: 'r-1' });
    const repeat = { path: 'r', ifNoneMatch: '*', body: 'one', commitId: 'r-1' };
    expect(await commit(repeat)).toMatchObject({ etag: md5.one, repeated: true });
    // Without a record, the service cannot know of the try after a foreign writer.
    await world.rawPut('r', 'foreign');
    expect((await failure(commit(repeat))).code).toBe('PreconditionFailed');
  });

  it('a commit (native) is read without a table', async () => {
    await commit({ path: 'tableless', ifNoneMatch: '*', body: 'one' });
    const { bucket } = world;
    const { read } = await commitWorld({ protocol: 'native', bucket, table: 'test-commits-missing' });
    expect(await read('tableless')).toMatchObject({ etag: md5.one, inFlight: null });
  });
});

describe('reads', async () => {
  const world = await commitWorld();
  const { commit, read, putRecord } = world;

  it('a read shows an absent path', async () => {
    expect(await read('nothing')).toEqual({
      path: 'nothing',
      etag: null,
      versionId: null,
      size: null,
      contentType: null,
      metadata: null,
      commitId: null,
      fence: null,
      inFlight: null,
    });
  });

  it('a read shows commit id and fence, and the commit in flight', async () => {
    const fence = { key: 'jöb', token: 7 };
    const { etag } = await commit({ path: 'shown', ifNoneMatch: '*', body: 'one', commitId: 'c', fence });
    expect(await read('shown')).toMatchObject({ etag, commitId: 'c', fence, inFlight: null });
    await putRecord({
      path: { S: 'shown' },
      etag: { S: String(etag) },
      generation: { N: '2' },
      timeout: { N: '20000' },
      ttl: { N: '2000000000' },
    });
    const inFlight = { generation: 2, timeoutMs: 20_000, commitId: null, writtenAt: null };
    expect((await read('shown')).inFlight).toEqual(inFlight);
    // A writer that has failed sets the timeout of its record to 0.
    await putRecord(foreignRecord('shown', { etag: String(etag), generation: 2, timeout: 0 }));
    expect((await read('shown')).inFlight).toBeNull();
  });

  it('a read shows an object whose metadata another client has cut', async () => {
    await commit({ path: 'cut', ifNoneMatch: '*', body: 'one', commitId: 'c', fence: { key: 'k', token: 1 } });
    const [tag = ''] = (await world.rawMetadata('cut'))['holdfast-commits']?.split(' ') ?? [];
    await world.rawPut('cut', 'one', { Metadata: { 'holdfast-commits': tag } });
    expect(await read('cut')).toMatchObject({ etag: md5.one, commitId: null, fence: null });
  });
});
