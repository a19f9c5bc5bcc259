import { describe, expect, it } from 'vitest';
import { s3Client } from '../../shared/aws/s3.ts';
import { type Fault, patient } from '../support/emulators/aws.ts';
import { networkError } from '../support/faults/cuttable.ts';
import { type CommitWorld, commitWorld, foreignRecord } from '../support/worlds/commits.ts';
import { failure } from '../support/worlds/leases.ts';

const MIB = 1024 ** 2;

interface Sent {
  method: string;
  headers: Record<string, string | undefined>;
  /** How long the client waits for the answer, if that is not its default. */
  timeoutMs: number | undefined;
}

/** A client, and the last of its requests that write. */
function listened() {
  const s3 = s3Client(patient());
  const sent: Sent[] = [];
  const { requestHandler } = s3.config;
  const handle = requestHandler.handle.bind(requestHandler);
  requestHandler.handle = (request, options) => {
    const { method, headers } = request;
    const timeoutMs = options && 'requestTimeout' in options ? options.requestTimeout : undefined;
    if (method !== 'HEAD') sent.push({ method, headers, timeoutMs });
    return handle(request, options);
  };
  return { s3, last: () => sent.at(-1) };
}

describe('the write of a commit', async () => {
  const world = await commitWorld();
  const COPY_MS = 30_000;
  /** The headers with which a copy does not take over the metadata and tags of its source. */
  const replaced = { 'x-amz-metadata-directive': 'REPLACE', 'x-amz-tagging-directive': 'REPLACE' };

  it.each([
    ['of an inline body', 'PUT', undefined, undefined],
    ['of a staged upload', 'PUT', 3, COPY_MS],
    ['of parts', 'POST', 7 * MIB, COPY_MS],
  ])('the write of a commit (%s) has its condition and its time limit', async (path, method, size, timeoutMs) => {
    const { s3, last } = listened();
    const { commit } = world.another({ s3 });
    const content = async (byte: string) =>
      size === undefined ? { body: byte } : { source: await world.stage(byte.repeat(size)) };
    const more = size === 3 ? replaced : {};

    const { etag } = await commit({ path, ifNoneMatch: '*', ...(await content('1')) });
    expect(last()).toMatchObject({ method, headers: { 'if-none-match': '*', ...more } });
    expect(last()?.headers).not.toHaveProperty('if-match');
    expect(last()?.timeoutMs).toBe(timeoutMs);

    await commit({ path, ifMatch: etag, ...(await content('2')) });
    expect(last()).toMatchObject({ method, headers: { 'if-match': etag, ...more } });
    expect(last()?.headers).not.toHaveProperty('if-none-match');
    expect(last()?.timeoutMs).toBe(timeoutMs);
  });

  it.each([
    ['PreconditionFailed', 412],
    ['NoSuchKey', 404],
  ])('a write is not repeated after a lost answer and %s: it may land', async (name, status) => {
    const path = `late after ${name}`;
    const { commit, objects } = world.another();
    const { etag } = await world.commit({ path, ifNoneMatch: '*', body: 'before' });
    let late = async (): Promise<unknown> => undefined;
    objects.faultsOf.PutObject = [
      async (send) => {
        late = send;
        throw networkError('ECONNRESET', 'read');
      },
      { name, status },
    ];
    expect((await failure(commit({ path, ifMatch: etag, body: 'mine', commitId: 'mine' }))).code).toBe(
      'OutcomeUnknown',
    );
    expect(await world.body(path)).toBe('before');
    await late();
    expect(await world.body(path)).toBe('mine');
  });
});

const DENIED: Fault = { name: 'AccessDenied', status: 403 };
const INPUT = { ifNoneMatch: '*', body: 'mine', commitId: 'mine' };

/** A write that never arrives, and whose client sees only a closed connection. */
const vanished: Fault = async () => {
  throw networkError('ECONNRESET', 'read');
};

describe('a record after an unanswered try', async () => {
  const world = await commitWorld();

  const rows: [string, Parameters<typeof stand>[2]][] = [
    ['of another time', { age: 1 }],
    ['of another generation', { generation: 1 }],
    ['of another commit', { commitId: 'theirs' }],
  ];

  it.each(rows)(
    "after an unanswered try, a record (%s) is another call's, which may still land",
    async (title, record) => {
      const path = `held/${title}`;
      await stand(world, path, record);
      const { commit, records, objects } = world.another();
      records.faultsOf.PutItem = [vanished];
      objects.faultsOf.PutObject = [DENIED];
      expect((await failure(commit({ path, ...INPUT }))).code).toBe('Unavailable');
      // The record was taken over, and has to keep others waiting.
      expect(await world.rawRecord(path)).toMatchObject({
        generation: { N: String((record.generation ?? 0) + 1) },
        timeout: { N: '20000' },
      });
    },
  );

  it.each(rows)(
    'after an unanswered try, a record (%s) shows whether this commit was tried before',
    async (title, record) => {
      const path = `named/${title}`;
      await stand(world, path, record);
      const { commit, records, objects } = world.another();
      records.faultsOf.PutItem = [vanished];
      objects.faultsOf.PutObject = [
        async (send) => {
          await world.rawPut(path, 'foreign');
          return send();
        },
      ];
      const code = record.commitId === 'theirs' ? 'PreconditionFailed' : 'OutcomeUnknown';
      expect((await failure(commit({ path, ...INPUT }))).code).toBe(code);
    },
  );

  it('a call recognises its own record after a lost reply, and clears it', async () => {
    const path = 'own';
    const { commit, records, objects } = world.another();
    records.faultsOf.PutItem = ['lostReply'];
    objects.faultsOf.PutObject = [DENIED];
    expect((await failure(commit({ path, ...INPUT }))).code).toBe('Unavailable');
    expect(await world.rawRecord(path)).toMatchObject({ timeout: { N: '0' } });
  });
});

describe('a record that replaces another', async () => {
  const world = await commitWorld();

  it.each([
    ['theirs', 'mine theirs'],
    ['mine', 'mine'],
    ['theirs mine', 'mine theirs'],
    // The blank at the end stands for commits that are not named.
    ['theirs ', 'mine theirs '],
    ['mine ', 'mine '],
  ])('a new record names each commit once that may have written: %j becomes %j', async (before, after) => {
    const path = `names/${before}`;
    await stand(world, path, { commitId: before });
    await world.commit({ path, ...INPUT });
    expect((await world.rawRecord(path))?.commit_id).toEqual({ S: after });
  });

  it.each([
    // The first record of a path cannot have replaced another.
    [0, 'PreconditionFailed'],
    [1, 'OutcomeUnknown'],
  ])('a commit after a missed foreign record of generation %i fails with %s', async (generation, code) => {
    const path = `hidden/${generation}`;
    await world.putRecord(foreignRecord(path, { generation }));
    const { retryAfterMs } = (await failure(world.commit({ path, ...INPUT, commitId: 'taker' }))).context;
    world.clock.advance(Number(retryAfterMs));
    const taker = world.another();
    taker.objects.faultsOf.PutObject = [DENIED];
    expect((await failure(taker.commit({ path, ...INPUT, commitId: 'taker' }))).code).toBe('Unavailable');
    await world.rawPut(path, 'foreign');
    expect((await failure(world.commit({ path, ...INPUT }))).code).toBe(code);
  });
});

/** Puts a record of Holdfast at the path, by default the one that the commit `mine` would write now. */
function stand(
  { clock, putRecord }: CommitWorld,
  path: string,
  { age = 0, generation = 0, commitId = 'mine' }: { age?: number; generation?: number; commitId?: string },
) {
  const writtenAt = { N: String(clock.now() - age) };
  return putRecord({ ...foreignRecord(path, { generation }), commit_id: { S: commitId }, written_at: writtenAt });
}
