import { createHash, randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
import { partCount } from '../../shared/commits/multipart.ts';
import { systemClock } from '../../shared/surroundings/clock.ts';
import { seededRandom, testSeed } from '../support/chance/seed.ts';
import { call, type Fault } from '../support/emulators/aws.ts';
import { networkError } from '../support/faults/cuttable.ts';
import { httpEvent, post, throughHttp, throughTask } from '../support/stack/adapters.ts';
import { aFew, expectAllHappened, goesOn, isFull, rounds } from '../support/time/rounds.ts';
import { type CommitWorld, commitWorld, foreignRecord, PROTOCOLS } from '../support/worlds/commits.ts';
import { failure } from '../support/worlds/leases.ts';
import { ObjectStoreWriter } from '../support/worlds/object-store.ts';

const MIB = 1024 ** 2;
const job = (token: number) => ({ key: 'job', token });
const digest = (bytes: Uint8Array | undefined) =>
  createHash('sha256')
    .update(bytes ?? '')
    .digest('hex');

/** Kinds of objects: the number of parts of the upload, and that of the copy, whose ETag must differ. */
const KINDS = {
  empty: [0, 1],
  small: [0, 1],
  'large, in one piece': [0, 2],
  'large, in two parts': [2, 1],
  'large, in three parts': [3, 2],
} as const;
type Kind = keyof typeof KINDS;

const contents: Record<Kind, Uint8Array> = {
  empty: new Uint8Array(),
  small: Buffer.from('small'),
  'large, in one piece': randomBytes(5 * MIB + 1),
  'large, in two parts': randomBytes(6 * MIB + 1),
  'large, in three parts': randomBytes(10 * MIB + 1),
};

const headers = {
  contentType: 'text/csv',
  cacheControl: 'no-store',
  contentDisposition: 'inline',
  contentEncoding: 'gzip',
};

/** An object under a fence so high that a commit cannot exceed it. */
async function fenced(world: CommitWorld, path: string, kind: Kind = 'small') {
  const source = await world.stage(contents[kind]);
  const fence = job(world.clock.now() + 1000);
  const input = { path, ifNoneMatch: '*', source, fence, metadata: { by: 'me' }, commitId: 'first', ...headers };
  const { etag } = await world.commit(input);
  return { path, ifMatch: String(etag), expectedFence: fence };
}

describe.each(aFew(1, PROTOCOLS))('the fence of an object, protocol %s', async (protocol) => {
  const world = await commitWorld({ protocol });
  const { commit, resetFence, read } = world;

  it.each(aFew(3, Object.keys(KINDS) as Kind[]))(
    'the fence of an object can be replaced without another mark changing (%s)',
    async (kind) => {
      const fences = [null, job(7), { key: 'other', token: 7 }];
      for (const fence of contents[kind].length > MIB ? aFew(1, fences) : fences) {
        const path = `reset/${kind}/${fence?.key}`;
        const seen = await fenced(world, path, kind);
        const before = await world.rawHead(path);
        const reset = await resetFence({ ...seen, fence, commitId: 'reset' });
        expect(reset).toMatchObject({
          path,
          commitId: 'reset',
          size: contents[kind].length,
          protocol,
          repeated: false,
        });
        expect(reset.etag).not.toBe(seen.ifMatch);
        expect([seen.ifMatch, reset.etag ?? ''].map(partCount)).toEqual(KINDS[kind]);
        expect(await read(path)).toMatchObject({ etag: reset.etag, fence, commitId: 'reset', metadata: { by: 'me' } });
        expect(digest(await world.bytes(path))).toBe(digest(contents[kind]));
        const { ContentType, CacheControl, ContentDisposition, ContentEncoding } = await world.rawHead(path);
        expect(before).toMatchObject({ ContentType, CacheControl, ContentDisposition, ContentEncoding });
        expect(ContentType).toBe('text/csv');

        // The new fence decides about later commits, and the chain of commits goes on.
        if (fence)
          expect(await failure(commit({ path, ifMatch: reset.etag, body: 'x', fence: job(6) }))).toMatchObject({
            code: 'FenceRejected',
          });
        await commit({ path, ifMatch: reset.etag, body: 'next', ...(fence && { fence }), commitId: 'next' });
        expect(await resetFence({ ...seen, fence, commitId: 'reset' })).toMatchObject({ repeated: true, etag: null });
      }
    },
  );

  it('a fenced object in parts is copied in one piece if that is allowed', async () => {
    const seen = await fenced(world, 'one-piece', 'large, in two parts');
    const multipartThresholdBytes = contents['large, in two parts'].length;
    const { resetFence: inOnePiece, objects } = world.another({ multipartThresholdBytes });
    objects.faultsOf.CopyObject = ['lostReply'];
    const { etag } = await inOnePiece({ ...seen, fence: null });
    expect(partCount(etag ?? '')).toBe(0);
    expect(digest(await world.bytes('one-piece'))).toBe(digest(contents['large, in two parts']));
  });

  it('a fenced object that came in one part is copied in one piece', async () => {
    const inOnePart = { partBytes: 7 * MIB };
    const { commit: commitIt } = world.another(inOnePart);
    const bytes = contents['large, in two parts'];
    const expectedFence = job(1);
    const first = { path: 'one-part', ifNoneMatch: '*', source: await world.stage(bytes), fence: expectedFence };
    const { etag: ifMatch } = await commitIt(first);
    expect(partCount(ifMatch ?? '')).toBe(1);
    const admin = world.administrator(inOnePart);
    const { etag } = await admin.resetFence({ path: 'one-part', ifMatch, expectedFence, fence: null });
    expect(partCount(etag ?? '')).toBe(0);
    expect(digest(await world.bytes('one-part'))).toBe(digest(bytes));
  });

  // S3 cannot copy a part of an empty object.
  it('the fence of an empty object is replaced by an empty upload', async () => {
    const seen = await fenced(world, 'nothing in it', 'empty');
    const admin = world.administrator();
    await admin.resetFence({ ...seen, fence: null });
    expect(admin.objects.sent).toContain('UploadPart');
    expect(admin.objects.sent).not.toContain('UploadPartCopy');
  });

  it.runIf(isFull)('a fence replacement fails if the object changes at each of fifty copies', async () => {
    const seen = await fenced(world, 'restless');
    const admin = world.administrator();
    admin.objects.faultsOf.UploadPartCopy = Array<Fault>(60).fill({ name: 'PreconditionFailed', status: 412 });
    const given = await failure(admin.resetFence({ ...seen, fence: null }));
    expect(given).toMatchObject({ code: 'Unavailable', context: { retryAfterMs: 1000 } });
    expect(admin.objects.sent.filter((command) => command === 'UploadPartCopy')).toHaveLength(50);
  });

  const refused: [string, (world: CommitWorld) => Promise<object>, object][] = [
    ['another ETag', async (w) => ({ ...(await fenced(w, 'refused')), ifMatch: '"other"' }), {}],
    ['a higher token', async (w) => ({ ...(await fenced(w, 'refused')), expectedFence: job(1) }), { fence: job(0) }],
    [
      'another key',
      async (w) => {
        const seen = await fenced(w, 'refused');
        return { ...seen, expectedFence: { ...seen.expectedFence, key: 'other' } };
      },
      { fence: job(0) },
    ],
    ['nothing', async (w) => ({ ...(await fenced(w, 'elsewhere')), path: 'nowhere' }), { etag: null }],
    [
      'no fence',
      async (w) => {
        const { etag } = await w.commit({ path: 'unfenced', ifNoneMatch: '*', body: 'x' });
        return { path: 'unfenced', ifMatch: etag, expectedFence: job(1) };
      },
      { fence: null },
    ],
    [
      'a foreign object',
      async (w) => ({
        ...(await fenced(w, 'refused')),
        ifMatch: await w.rawPut('refused', 'foreign'),
      }),
      { fence: null },
    ],
  ];

  it.each(refused)('the fence of an object is left alone if there is %s', async (_, prepare, context) => {
    const fresh = await commitWorld({ protocol });
    const input = await prepare(fresh);
    const before = [await fresh.allRecords(), await fresh.allObjects()];
    const { code, context: named } = await failure(fresh.resetFence({ ...input, fence: null }));
    expect([code, Object.keys(named)]).toEqual(['PreconditionFailed', expect.arrayContaining(['path', 'etag'])]);
    if ('etag' in context) expect(named.etag).toBeNull();
    if ('fence' in context) expect(named).toHaveProperty('fence');
    expect([await fresh.allRecords(), await fresh.allObjects()]).toEqual(before);
  });

  // Equal bytes have few ETags. After a second replacement the object could have its first ETag again, which a late commit names.
  it('the fence of an object is replaced once between two commits', async () => {
    const seen = await fenced(world, 'twice');
    const { etag } = await resetFence({ ...seen, fence: job(5) });
    const again = { path: 'twice', ifMatch: etag, expectedFence: job(5), fence: null };
    expect((await failure(resetFence(again))).code).toBe('PreconditionFailed');
    const { etag: next } = await commit({ path: 'twice', ifMatch: etag, body: 'next', fence: job(6) });
    await resetFence({ ...again, ifMatch: next, expectedFence: job(6) });
    expect((await read('twice')).fence).toBeNull();
  });

  it('a replaced fence refuses a commit that was decided on the former fence', async () => {
    const seen = await fenced(world, 'decided');
    const holder = world.another();
    holder.objects.faultsOf.PutObject = [
      async (send) => {
        await resetFence({ ...seen, fence: { key: 'other', token: 1 } });
        return send();
      },
    ];
    const late = holder.commit({ path: 'decided', ifMatch: seen.ifMatch, body: 'late', fence: seen.expectedFence });
    expect((await failure(late)).code).toBe('FenceRejected');
    expect(await world.body('decided')).toBe('small');
  });

  it.each(['CompleteMultipartUpload', 'CopyObject'])(
    'a fence is not replaced under a commit that came in before %s',
    async (last) => {
      const path = `between/${last}`;
      const seen = await fenced(world, path, 'large, in two parts');
      const multipartThresholdBytes = last === 'CopyObject' ? 7 * MIB : 6 * MIB;
      const admin = world.administrator({ multipartThresholdBytes });
      admin.objects.faultsOf[last] = [
        async (send) => {
          await commit({ path, ifMatch: seen.ifMatch, body: 'newer', fence: seen.expectedFence });
          return send();
        },
      ];
      expect((await failure(admin.resetFence({ ...seen, fence: null }))).code).toBe('PreconditionFailed');
      expect(await read(path)).toMatchObject({ fence: seen.expectedFence });
      expect(await world.body(path)).toBe('newer');
    },
  );

  it.each(['gone', 'replaced'])(
    'a fence replacement reports that the object is %s while it is copied',
    async (change) => {
      const path = `while/${change}`;
      const seen = await fenced(world, path, 'large, in one piece');
      const admin = world.administrator();
      admin.objects.faultsOf.UploadPartCopy = [
        async (send) => {
          await (change === 'gone' ? world.rawDelete(path) : world.rawPut(path, 'foreign'));
          return send();
        },
      ];
      const { code, context } = await failure(admin.resetFence({ ...seen, fence: null }));
      expect([code, context.etag === null]).toEqual(['PreconditionFailed', change === 'gone']);
      expect(admin.objects.sent).toContain('AbortMultipartUpload');
    },
  );

  const steps = ['HeadObject', 'PutItem', 'CreateMultipartUpload', 'UploadPartCopy', 'CompleteMultipartUpload'].filter(
    (command) => protocol === 'dynamo' || command !== 'PutItem',
  );

  it.each(steps)('a lost reply of %s is found out, and a repeat is recognised', async (command) => {
    const seen = await fenced(world, `lost/${command}`);
    const admin = world.administrator();
    (command === 'PutItem' ? admin.records : admin.objects).faultsOf[command] = ['lostReply'];
    const input = { ...seen, fence: job(3), commitId: 'reset' };
    expect(await admin.resetFence(input)).toMatchObject({ repeated: false });
    expect(await resetFence(input)).toMatchObject({ repeated: true });
    expect((await read(seen.path)).fence).toEqual(job(3));
    // Another call with this commit id is refused.
    expect((await failure(resetFence({ ...input, fence: null }))).code).toBe('InvalidRequest');
    expect(await failure(resetFence(input, call({ principal: 'another caller' })))).toMatchObject({
      code: 'InvalidRequest',
    });
  });

  it('a fence replacement has an unknown outcome if the write may still land', async () => {
    const seen = await fenced(world, 'unknown');
    const admin = world.administrator();
    const vanished: Fault = async () => {
      throw networkError('ECONNRESET', 'read');
    };
    admin.objects.faultsOf.CompleteMultipartUpload = [vanished, vanished, vanished, vanished];
    const unknown = await failure(admin.resetFence({ ...seen, fence: null }));
    expect(unknown).toMatchObject({ code: 'OutcomeUnknown', context: { retryWith: { commitId: expect.any(String) } } });
    const repeat = { ...seen, fence: null, ...(unknown.context.retryWith as object) };
    expect(await resetFence(repeat)).toMatchObject({ repeated: false });
  });
});

describe('replacing a fence', async () => {
  const world = await commitWorld();
  const { handlers } = world;
  const valid = { path: 'p', ifMatch: '"x"', expectedFence: job(1), fence: null };
  const without = (field: string) => Object.fromEntries(Object.entries(valid).filter(([name]) => name !== field));

  it.each<[string, object, string]>([
    ['no ETag', without('ifMatch'), 'ifMatch'],
    ['no fence seen', without('expectedFence'), 'expectedFence'],
    ['a fence seen that is none', { ...valid, expectedFence: null }, 'expectedFence'],
    ['no fence wanted', without('fence'), 'fence'],
    ['the fence that is there', { ...valid, fence: job(1) }, 'fence'],
    ['a fence of the far future', { ...valid, fence: job(Number.MAX_SAFE_INTEGER) }, 'fence.token'],
    ['content', { ...valid, body: 'x' }, 'body'],
  ])('a fence replacement names the field at fault: %s', async (_, payload, field) => {
    const { status, body } = await post(handlers.resetFence, payload);
    expect([status, body.issues]).toEqual([400, [{ path: field, message: expect.any(String) }]]);
    expect((await throughTask(handlers.resetFence, payload)).outcome).toBe('InvalidRequest');
    expect([await world.allRecords(), await world.allObjects()]).toEqual([[], []]);
  });

  // Such a token may have been stored before the service refused it.
  it('a fence replacement accepts a token that was seen, but no commit may name', async () => {
    const { etag } = await world.commit({ path: 'ruined', ifNoneMatch: '*', body: 'x', fence: job(1) });
    const ruined = { ...(await world.rawMetadata('ruined')), 'holdfast-fence': `${Number.MAX_SAFE_INTEGER} am9i` };
    await world.rawPut('ruined', 'x', { Metadata: ruined });
    expect((await world.read('ruined')).fence).toEqual(job(Number.MAX_SAFE_INTEGER));
    const payload = { path: 'ruined', ifMatch: etag, expectedFence: job(Number.MAX_SAFE_INTEGER), fence: null };
    expect(await post(handlers.resetFence, payload)).toMatchObject({ status: 200, body: { repeated: false } });
    expect((await world.read('ruined')).fence).toBeNull();
  });

  it('a fence replacement waits for a Rust writer, as a commit does', async () => {
    const seen = await fenced(world, 'rust');
    const writer = new ObjectStoreWriter({ ...world, clock: world.clock });
    const admin = world.administrator();
    await writer.lock('rust', seen.ifMatch);
    await writer.lock('rust', seen.ifMatch, 0);
    const refused = await failure(admin.resetFence({ ...seen, fence: null }));
    expect(refused.code).toBe('CommitInProgress');
    world.clock.advance(Number(refused.context.retryAfterMs));
    expect(await admin.resetFence({ ...seen, fence: null })).toMatchObject({ generation: 2 });
  });

  it('a fence replacement waits for a Rust writer within the call if asked to', async () => {
    const seen = await fenced(world, 'rust in time');
    await world.putRecord(foreignRecord('rust in time', { etag: seen.ifMatch, timeout: 2000 }));
    const before = world.clock.now();
    expect(await world.resetFence({ ...seen, fence: null, waitSeconds: 20 })).toMatchObject({ generation: 1 });
    expect(world.clock.now() - before).toBeGreaterThanOrEqual(2000);
  });

  it('after a foreign writer only a fence replacement with an id can be unknown', async () => {
    const seen = await fenced(world, 'doubt');
    // The foreign record may have replaced one that named this commit id.
    await world.putRecord(foreignRecord('doubt', { etag: seen.ifMatch, generation: 1 }));
    await world.rawPut('doubt', 'foreign');
    expect((await failure(world.resetFence({ ...seen, fence: null }))).code).toBe('PreconditionFailed');
    const again = { ...seen, fence: null, commitId: 'mine' };
    expect((await failure(world.resetFence(again))).code).toBe('OutcomeUnknown');
  });

  it('a fence replacement does not make callers wait for a write that S3 refused', async () => {
    const seen = await fenced(world, 'refused');
    const admin = world.administrator();
    const slowDown: Fault = { name: 'SlowDown', status: 503 };
    admin.objects.faultsOf.CompleteMultipartUpload = Array<Fault>(20).fill(slowDown);
    expect((await failure(admin.resetFence({ ...seen, fence: null }))).code).toBe('Throttled');
    const records = (await world.allRecords()).filter(({ path, etag }) => path?.S === 'refused' && etag?.S !== '*');
    expect(records).toMatchObject([{ timeout: { N: '0' } }]);
  });

  it('a fence replacement fits the metadata even with the longest values', async () => {
    const fence = { key: 'k'.repeat(256), token: world.clock.now() };
    const metadata = { m: 'v'.repeat(1023) };
    const id = (n: number) => `${n}`.padEnd(64, 'i');
    let { etag } = await world.commit({ path: 'full', ifNoneMatch: '*', body: '0', metadata, fence, commitId: id(0) });
    for (let n = 1; n < 8; n++)
      ({ etag } = await world.commit({ path: 'full', ifMatch: etag, body: `${n}`, metadata, fence, commitId: id(n) }));
    const next = { key: 'q'.repeat(256), token: world.clock.now() + 1 };
    await world.resetFence({ path: 'full', ifMatch: etag, expectedFence: fence, fence: next, commitId: id(8) });
    const stored = await world.rawMetadata('full');
    expect(stored['holdfast-commits']?.split(' ')).toHaveLength(1 + 1 + 8);
    expect(Object.entries(stored).flat().join('').length).toBeLessThanOrEqual(2048);
  });

  it('a fence replacement logs its caller, and the fences seen and wanted', async () => {
    const lines: string[] = [];
    vi.spyOn(process.stdout, 'write').mockImplementation((chunk) => {
      lines.push(String(chunk));
      return true;
    });
    vi.stubEnv('LOG_LEVEL', 'INFO');
    vi.resetModules(); // the logger reads its level when it is loaded
    const { resetFence } = await import('../../functions/commits/reset-fence.ts');
    const seen = await fenced(world, 'logged');
    const principal = 'arn:aws:iam::000000000000:user/administrator';
    const event = httpEvent('POST', {
      body: JSON.stringify({ ...seen, fence: job(2) }),
      authorizer: { iam: { userArn: principal } },
    });
    const { status } = await throughHttp(resetFence(world.dependencies), event);
    vi.restoreAllMocks();
    vi.unstubAllEnvs();
    vi.resetModules();
    expect(status).toBe(200);
    expect(JSON.parse(lines.find((line) => line.includes('"answered"')) ?? '')).toMatchObject({
      function: 'resetFence',
      path: 'logged',
      caller: principal,
      expectedFence: seen.expectedFence,
      fence: job(2),
    });
  });
});

describe.each(aFew(1, PROTOCOLS))('races of a fence that is replaced, protocol %s', async (protocol) => {
  const world = await commitWorld({ protocol, clock: systemClock });

  it('a race of commits and fence replacements has one winner for each state', async () => {
    const seed = testSeed();
    const random = seededRandom(seed);
    const winners = { commit: 0, reset: 0 };
    const played = rounds(100, 4);
    for (let round = 0; goesOn(round, played, winners); round++) {
      const path = `race/${round}`;
      const expectedFence = job(10);
      const { etag } = await world.commit({ path, ifNoneMatch: '*', body: 'first', fence: expectedFence });
      // A commit takes fewer requests than a reset, and some of them must come late enough to lose.
      const pauses = [random() ** 2 * 200, random() * 10, random() * 10];
      const commit = (by: string) =>
        post(world.handlers.commit, { path, ifMatch: etag, body: by, fence: expectedFence, commitId: by });
      const reset = (fence: object | null, commitId: string) =>
        post(world.handlers.resetFence, { path, ifMatch: etag, expectedFence, fence, commitId });
      const contenders = [
        () => commit('holder'),
        () => reset(null, 'lift'),
        () => reset({ key: 'other', token: 1 }, 'replace'),
      ];
      const answers = await Promise.all(
        contenders.map(async (contender, index) => {
          await delay(pauses[index]);
          return contender();
        }),
      );
      const won = answers.filter(({ outcome }) => outcome === 'ok');
      expect([seed, round, won.length]).toEqual([seed, round, 1]);
      const { commitId, fence } = await world.read(path);
      expect(won[0]?.body.commitId).toBe(commitId);
      const left = { holder: expectedFence, lift: null, replace: { key: 'other', token: 1 } };
      expect([seed, round, fence]).toEqual([seed, round, left[commitId as keyof typeof left]]);
      winners[commitId === 'holder' ? 'commit' : 'reset'] += 1;
    }
    expectAllHappened(winners);
  });
});
