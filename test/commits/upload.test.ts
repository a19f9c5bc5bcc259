import { createHash, randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { partCount, partRanges } from '../../shared/commits/multipart.ts';
import { signUpload } from '../../shared/commits/stage.ts';
import { systemClock } from '../../shared/surroundings/clock.ts';
import { call, type Fault } from '../support/emulators/aws.ts';
import { isPresignedFor } from '../support/emulators/signatures.ts';
import { httpEvent, post, throughHttp } from '../support/stack/adapters.ts';
import { ManualClock } from '../support/time/clock.ts';
import { aFew } from '../support/time/rounds.ts';
import { commitWorld, PROTOCOLS } from '../support/worlds/commits.ts';
import { failure } from '../support/worlds/leases.ts';

const MIB = 1024 ** 2;
/** The smallest object that is copied in parts. It already takes the emulator as long as fifty small ones. */
const large = randomBytes(6 * MIB + 1);
const sha = (bytes: string | Uint8Array | undefined) =>
  createHash('sha256')
    .update(bytes ?? '')
    .digest('hex');

interface Staged {
  uploadId: string;
  url: string;
  headers: Record<string, string>;
}

describe('a staged upload', async () => {
  const world = await commitWorld({ clock: systemClock });
  const { handlers } = world;
  const stage = async (payload: object) => (await post(handlers.stageUpload, payload)).body as unknown as Staged;

  it('a staged upload is put to a presigned URL and committed with its type', async () => {
    const answer = await post(handlers.stageUpload, { contentType: 'text/csv', sizeBytes: 7 });
    expect(answer).toMatchObject({
      status: 201,
      body: {
        uploadId: expect.stringMatching(/^[0-9a-f-]{36}$/),
        method: 'PUT',
        headers: { 'content-type': 'text/csv', 'content-length': '7' },
        expiresAt: expect.stringMatching(/^\d{4}-.*Z$/),
      },
    });
    const { uploadId, url, headers } = answer.body as unknown as Staged;
    expect((await fetch(url, { method: 'PUT', headers, body: 'a,b\n1,2' })).status).toBe(200);

    const metadata = { rows: '1' };
    const { body } = await post(handlers.commit, { path: 'a.csv', ifNoneMatch: '*', source: uploadId, metadata });
    expect(body).toMatchObject({ path: 'a.csv', size: 7, repeated: false });
    expect(await world.read('a.csv')).toMatchObject({ contentType: 'text/csv', metadata, etag: body.etag });
    expect(await world.body('a.csv')).toBe('a,b\n1,2');
  });

  it('a staged upload signs type and size, but not its content', async () => {
    const { url, headers } = await stage({ contentType: 'text/csv', sizeBytes: 7 });
    for (const [change, isSigned] of [
      [{}, true],
      [{ 'content-type': 'text/html' }, false],
      [{ 'content-length': '8' }, false],
    ] as const)
      expect(isPresignedFor(url, { ...headers, ...change }, process.env.AWS_SECRET_ACCESS_KEY ?? '')).toBe(isSigned);
    const query = new URL(url).searchParams;
    expect(query.get('X-Amz-SignedHeaders')?.split(';').sort()).toEqual(['content-length', 'content-type', 'host']);
    expect(query.get('X-Amz-Expires')).toBe('900');
    expect([...query.keys()].filter((name) => /checksum/i.test(name))).toEqual([]);
  });

  it('a staged upload does not sign a header that was not announced', async () => {
    const { url, headers } = await stage({});
    expect(headers).toEqual({});
    expect(new URL(url).searchParams.get('X-Amz-SignedHeaders')).toBe('host');
  });

  it('the URL of a staged upload expires after a quarter of an hour', async () => {
    const clock = new ManualClock(Date.parse('2026-03-01T10:00:00.000Z'));
    const { url, expiresAt } = await signUpload({ ...world.dependencies, clock })({});
    expect(expiresAt).toBe('2026-03-01T10:15:00.000Z');
    expect(new URL(url).searchParams.get('X-Amz-Date')).toBe('20260301T100000Z');
  });

  it('a staged upload of a namespace is found only by that namespace', async () => {
    const team = { namespace: 'team-a' };
    const { uploadId, url } = await signUpload(world.dependencies)({}, team);
    expect((await fetch(url, { method: 'PUT', body: 'x' })).status).toBe(200);
    const input = { ifNoneMatch: '*', source: uploadId };
    for (const as of [call(), call({ namespace: 'team-b' })])
      expect((await failure(world.commit({ path: 'team-b/x', ...input }, as))).code).toBe('NotFound');
    const route = { routeKey: 'POST /v1/ns/{ns}/commits', rawPath: '/v1/ns/team-a/commits' };
    for (const [path, status] of [
      ['team-b/x', 400],
      ['team-a/x', 201],
    ]) {
      const event = httpEvent('POST', { body: JSON.stringify({ path, ...input }) });
      expect((await throughHttp(handlers.commit, { ...event, ...route })).status).toBe(status);
    }
    expect(await world.body('team-a/x')).toBe('x');
  });

  it('a staged upload cannot be put to a URL that has expired', async () => {
    const clock = { ...systemClock, now: () => Date.now() - 901_000 };
    const { url } = await signUpload({ ...world.dependencies, clock })({});
    expect((await fetch(url, { method: 'PUT', body: 'late' })).status).toBe(403);
  });

  it('a staged upload takes the content type of the commit, if it has one', async () => {
    const source = await world.stage('x', { ContentType: 'text/csv' });
    await world.commit({ path: 'typed', ifNoneMatch: '*', source, contentType: 'text/plain' });
    expect(await world.read('typed')).toMatchObject({ contentType: 'text/plain' });
  });

  it('a staged upload over the limit can neither be announced nor committed', async () => {
    const limitBytes = 16 * MIB;
    const announced = await post(handlers.stageUpload, { sizeBytes: limitBytes + 1 });
    expect(announced).toMatchObject({ status: 413, body: { code: 'PayloadTooLarge', limitBytes } });
    expect((await post(handlers.stageUpload, { sizeBytes: limitBytes })).status).toBe(201);
    const source = await world.stage(randomBytes(limitBytes + 1));
    const refused = await failure(world.commit({ path: 'over', ifNoneMatch: '*', source }));
    expect(refused).toMatchObject({ code: 'PayloadTooLarge', context: { limitBytes } });
    expect([await world.body('over'), await world.rawRecord('over')]).toEqual([undefined, undefined]);
  });

  it('a staged upload of just the limit is committed', async () => {
    const { commit } = world.another({ maxUploadBytes: 7 });
    expect(await commit({ path: 'just', ifNoneMatch: '*', source: await world.stage('7 bytes') })).toMatchObject({
      size: 7,
    });
  });
});

describe.each(['body', 'copy', 'parts'] as const)('the headers of an object, from a %s', async (kind) => {
  const world = await commitWorld();
  const unsigned = { CacheControl: 'no-store', ContentDisposition: 'attachment', ContentEncoding: 'br' };
  const brought = async () =>
    kind === 'body' ? { body: 'x' } : { source: await world.stage(kind === 'copy' ? 'x' : large, unsigned) };

  it('the headers of an object are those that the commit names', async () => {
    const headers = { cacheControl: 'max-age=60', contentDisposition: 'inline', contentEncoding: 'gzip' };
    await world.commit({ path: 'named', ifNoneMatch: '*', ...(await brought()), ...headers });
    expect(await world.rawHead('named')).toMatchObject({
      CacheControl: 'max-age=60',
      ContentDisposition: 'inline',
      ContentEncoding: 'gzip',
    });
  });

  it('the headers of an object are not those that the uploader chose', async () => {
    await world.commit({ path: 'unnamed', ifNoneMatch: '*', ...(await brought()) });
    for (const header of Object.keys(unsigned)) expect(await world.rawHead('unnamed')).not.toHaveProperty(header);
  });
});

describe.each(aFew(1, PROTOCOLS))('a copy, protocol %s', async (protocol) => {
  const world = await commitWorld({ protocol });
  const { commit } = world;
  const uploads = { small: 'small', large };

  it.each(['small', 'large'] as const)('a copy creates, loses, replaces and repeats (%s)', async (kind) => {
    const path = `copy/${kind}`;
    const source = await world.stage(uploads[kind], { ContentType: 'text/csv' });
    const first = { path, ifNoneMatch: '*', source, metadata: { by: 'me' }, commitId: 'first' };
    const { etag } = await commit(first);
    expect(etag).toMatch(kind === 'large' ? /^"[0-9a-f]{32}-2"$/ : /^"[0-9a-f]{32}"$/);
    expect(await world.read(path)).toMatchObject({
      etag,
      contentType: 'text/csv',
      metadata: { by: 'me' },
      commitId: 'first',
    });
    expect(sha(await world.bytes(path))).toBe(sha(uploads[kind]));

    const lost = await failure(commit({ ...first, commitId: 'second' }));
    expect(lost).toMatchObject({ code: 'PreconditionFailed', context: { etag } });
    const again = world.another();
    const same = await failure(again.commit({ path, ifMatch: etag, source }));
    expect(same).toMatchObject({ code: 'InvalidRequest', context: { issues: [{ path: 'source' }] } });
    // The copied parts, whose ETag showed the same bytes, are removed.
    if (kind === 'large') expect(again.objects.sent.at(-1)).toBe('AbortMultipartUpload');
    expect(again.records.sent).toEqual([]);

    const next = await world.stage(`${kind} next`);
    const { etag: currentEtag } = await commit({ path, ifMatch: etag, source: next });
    await world.rawDelete(`.holdfast/staging/${source}`);
    expect(await commit(first)).toMatchObject({ repeated: true, etag: null, currentEtag });
  });

  it.each(['small', 'large'] as const)('a copy takes exactly the bytes that sourceEtag names (%s)', async (kind) => {
    const path = `exact/${kind}`;
    const source = await world.stage(uploads[kind]);
    const sourceEtag = await world.rawEtag(`.holdfast/staging/${source}`);
    const wrong = await failure(commit({ path, ifNoneMatch: '*', source, sourceEtag: '"other"' }));
    expect(wrong).toMatchObject({ code: 'InvalidRequest', context: { issues: [{ path: 'sourceEtag' }] } });

    // The upload is replaced after the commit has checked it.
    const racing = world.another();
    racing.objects.faultsOf[kind === 'small' ? 'CopyObject' : 'UploadPartCopy'] = [
      async (send) => {
        await world.rawPut(`.holdfast/staging/${source}`, 'other'.repeat(kind === 'small' ? 1 : 2 * MIB));
        return send();
      },
    ];
    const replaced = await failure(racing.commit({ path, ifNoneMatch: '*', source, sourceEtag }));
    expect(replaced.code).toBe('InvalidRequest');
    expect(await world.body(path)).toBeUndefined();

    await world.rawPut(`.holdfast/staging/${source}`, uploads[kind]);
    const exact = { path, ifNoneMatch: '*', source, sourceEtag, commitId: 'exact' };
    await commit(exact);
    expect(sha(await world.bytes(path))).toBe(sha(uploads[kind]));
    expect(await commit(exact)).toMatchObject({ repeated: true });
    // The fingerprint of a commit id includes `sourceEtag`.
    const { sourceEtag: _, ...inexact } = exact;
    expect((await failure(commit(inexact))).code).toBe('InvalidRequest');
  });

  it('a copy goes in parts, side by side, before there is a record', async () => {
    const { commit, objects, records } = world.another();
    let running = 0;
    const together = Promise.withResolvers<void>();
    const counted: Fault = async (send) => {
      if (++running === 2) together.resolve();
      expect(records.sent).toEqual([]);
      await together.promise;
      return send();
    };
    objects.faultsOf.UploadPartCopy = [counted, counted];
    await commit({ path: 'parallel', ifNoneMatch: '*', source: await world.stage(large) });
    expect(objects.sent.filter((command) => command === 'UploadPartCopy')).toHaveLength(2);
    expect(objects.sent.at(-1)).toBe('CompleteMultipartUpload');
  });

  it('a copy of at most the threshold is made in one request', async () => {
    const { commit, objects } = world.another({ multipartThresholdBytes: large.length });
    await commit({ path: 'at the threshold', ifNoneMatch: '*', source: await world.stage(large) });
    expect(objects.sent.filter((command) => command !== 'HeadObject')).toEqual(['CopyObject']);
  });

  it('a copy that loses on completion removes its parts', async () => {
    const { commit, objects } = world.another();
    objects.faultsOf.CompleteMultipartUpload = [
      async (send) => {
        await world.commit({ path: 'beaten', ifNoneMatch: '*', body: 'theirs' });
        return send();
      },
    ];
    const lost = await failure(commit({ path: 'beaten', ifNoneMatch: '*', source: await world.stage(large) }));
    expect(lost.code).toBe('PreconditionFailed');
    expect(objects.sent).toContain('AbortMultipartUpload');
    expect(await world.body('beaten')).toBe('theirs');
  });

  it.each([
    ['vanishes', 'NotFound', (source: string) => world.rawDelete(`.holdfast/staging/${source}`)],
    [
      'is uploaded again',
      'InvalidRequest',
      (source: string) => world.rawPut(`.holdfast/staging/${source}`, randomBytes(large.length)),
    ],
  ])('a copy whose source %s in the middle is %s, and does not write', async (name, code, change) => {
    const { commit, objects, records } = world.another();
    const source = await world.stage(large);
    objects.faultsOf.UploadPartCopy = [
      async (send) => {
        await change(source);
        return send();
      },
    ];
    expect(await failure(commit({ path: `source/${name}`, ifNoneMatch: '*', source }))).toMatchObject({
      code,
      context: code === 'NotFound' ? { source } : { issues: [{ path: 'source' }] },
    });
    expect(objects.sent.at(-1)).toBe('AbortMultipartUpload');
    expect(records.sent).toEqual([]);
    expect(await world.body(`source/${name}`)).toBeUndefined();
  });

  it('a copy whose part is refused ends, and its parts are removed', async () => {
    const { commit, objects, records } = world.another({ partBytes: MIB / 2 });
    const refused = Promise.withResolvers<void>();
    const underWay: Fault = async (send) => {
      await refused.promise;
      return send();
    };
    objects.faultsOf.UploadPartCopy = [
      async () => {
        refused.resolve();
        throw Object.assign(new Error('no'), { name: 'AccessDenied', $metadata: { httpStatusCode: 403 } });
      },
      ...Array<Fault>(7).fill(underWay),
    ];
    const denied = await failure(commit({ path: 'denied', ifNoneMatch: '*', source: await world.stage(large) }));
    expect(denied.code).toBe('Unavailable');
    expect(objects.sent.filter((command) => command === 'UploadPartCopy')).toHaveLength(8); // of thirteen
    expect(objects.sent.at(-1)).toBe('AbortMultipartUpload');
    expect([records.sent, await world.body('denied')]).toEqual([[], undefined]);
  });

  it('a copy takes what is there if its source was uploaded again', async () => {
    const { commit, objects } = world.another();
    const source = await world.stage('before');
    objects.faultsOf.CopyObject = [
      async (send) => {
        await world.rawPut(`.holdfast/staging/${source}`, 'after');
        return send();
      },
    ];
    const { etag, size } = await commit({ path: 'reupload', ifNoneMatch: '*', source });
    // The upload that was checked before the copy had another size.
    expect(size).toBe(5);
    expect(objects.sent.filter((command) => command === 'CopyObject')).toHaveLength(2);
    expect(await world.read('reupload')).toMatchObject({ etag, size: 5 });
    expect(await world.body('reupload')).toBe('after');
  });
});

describe('ranges', () => {
  it.each([
    [0, 5, [undefined]],
    [1, 5, [undefined]],
    [10, 5, ['bytes=0-4', 'bytes=5-9']],
    [11, 5, ['bytes=0-4', 'bytes=5-9', 'bytes=10-10']],
  ])('the ranges cover %i bytes by %i', (size, part, expected) => {
    expect(partRanges(size, part)).toEqual(expected);
  });
});

it.each([
  ['"d41d8cd98f00b204e9800998ecf8427e"', 0],
  ['"d41d8cd98f00b204e9800998ecf8427e-1"', 1],
  ['"d41d8cd98f00b204e9800998ecf8427e-12"', 12],
  ['d41d8cd98f00b204e9800998ecf8427e-10000', 10_000],
  // an ETag of another store
  ['"16-5f2a-77b"', 0],
])('the ETag %s belongs to an object of %i parts', (etag, parts) => {
  expect(partCount(etag)).toBe(parts);
});
