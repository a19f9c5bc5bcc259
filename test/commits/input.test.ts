import { afterAll, describe, expect, it } from 'vitest';
import { startGateway } from '../../local/gateway.ts';
import { commitsFromEnvironment, uploadsFromEnvironment } from '../../shared/commits/environment.ts';
import { signUpload } from '../../shared/commits/stage.ts';
import { call } from '../support/emulators/aws.ts';
import { get, post, throughTask } from '../support/stack/adapters.ts';
import { commitWorld } from '../support/worlds/commits.ts';

const MIB = 1024 ** 2;
const world = await commitWorld();
const { handlers } = world;
const valid = { path: 'valid', ifNoneMatch: '*', body: 'x' };
const without = (...fields: string[]) =>
  Object.fromEntries(Object.entries(valid).filter(([field]) => !fields.includes(field)));

const names = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`n${i}`, 'v']));

const wrongNames = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`N${i}`, 1]));
const DAY_MS = 24 * 60 * 60 * 1000;

describe('bad input', () => {
  it.each<[string, object, string]>([
    ['neither precondition', without('ifNoneMatch'), 'ifMatch'],
    ['both preconditions', { ...valid, ifMatch: '"x"' }, 'ifNoneMatch'],
    ['neither body nor source', without('body'), 'body'],
    ['both body and source', { ...valid, source: crypto.randomUUID() }, 'source'],
    ['encoding without a body', { ...without('body'), source: crypto.randomUUID(), encoding: 'utf8' }, 'encoding'],
    ['base64 without a body', { ...without('body'), source: crypto.randomUUID(), encoding: 'base64' }, 'encoding'],
    ['ifNoneMatch other than *', { ...valid, ifNoneMatch: '"x"' }, 'ifNoneMatch'],
    ['a weak ETag', { ...without('ifNoneMatch'), ifMatch: 'W/"abc"' }, 'ifMatch'],
    ['a weak ETag without quotes', { ...without('ifNoneMatch'), ifMatch: 'W/abc' }, 'ifMatch'],
    ['any ETag', { ...without('ifNoneMatch'), ifMatch: '*' }, 'ifMatch'],
    ['an empty ETag', { ...without('ifNoneMatch'), ifMatch: '""' }, 'ifMatch'],
    ['half a quoted ETag', { ...without('ifNoneMatch'), ifMatch: '"abc' }, 'ifMatch'],
    ['the other half of one', { ...without('ifNoneMatch'), ifMatch: 'abc"' }, 'ifMatch'],
    ['an ETag with a blank', { ...without('ifNoneMatch'), ifMatch: 'a b' }, 'ifMatch'],
    ['no path', without('path'), 'path'],
    ['an empty path', { ...valid, path: '' }, 'path'],
    ['a leading slash', { ...valid, path: '/a' }, 'path'],
    ['a trailing slash', { ...valid, path: 'a/' }, 'path'],
    ['an empty segment', { ...valid, path: 'a//b' }, 'path'],
    ['a segment ..', { ...valid, path: 'a/../b' }, 'path'],
    ['a segment .', { ...valid, path: './a' }, 'path'],
    ['1,025 bytes', { ...valid, path: `${'ä'.repeat(512)}a` }, 'path'],
    ['a path of ours', { ...valid, path: '.holdfast/staging/x' }, 'path'],
    ['the folder of ours', { ...valid, path: '.holdfast' }, 'path'],
    ['a lone surrogate in the path', { ...valid, path: 'a\ud800' }, 'path'],
    ['a lone surrogate in the body', { ...valid, body: 'a\ud800' }, 'body'],
    ['a body that is not a string', { ...valid, body: { a: 1 } }, 'body'],
    ['invalid base64', { ...valid, body: 'a===', encoding: 'base64' }, 'body'],
    ['base64 of another alphabet', { ...valid, body: 'a-_b', encoding: 'base64' }, 'body'],
    ['a lone surrogate in base64', { ...valid, body: '\ud800', encoding: 'base64' }, 'body'],
    ['base64 without padding', { ...valid, body: 'YQ', encoding: 'base64' }, 'body'],
    ['an unknown encoding', { ...valid, encoding: 'hex' }, 'encoding'],
    ['a source that is not an uploadId', { ...without('body'), source: '../secret' }, 'source'],
    ['a source with more before the uploadId', { ...without('body'), source: `x${crypto.randomUUID()}` }, 'source'],
    ['a source with more after the uploadId', { ...without('body'), source: `${crypto.randomUUID()}x` }, 'source'],
    ['metadata over 1 KiB', { ...valid, metadata: { a: 'v'.repeat(1024) } }, 'metadata'],
    ['metadata over 2 KiB', { ...valid, metadata: { a: 'v'.repeat(2048) } }, 'metadata'],
    ['metadata with control characters', { ...valid, metadata: { a: 'x\r\ny: z' } }, 'metadata.a'],
    ['metadata beyond ASCII', { ...valid, metadata: { a: 'ä' } }, 'metadata.a'],
    ['metadata with a blank end', { ...valid, metadata: { a: 'x ' } }, 'metadata.a'],
    ['empty metadata', { ...valid, metadata: { a: '' } }, 'metadata.a'],
    ['a metadata name in upper case', { ...valid, metadata: { Author: 'x' } }, 'metadata.Author'],
    ['a metadata name with a line end', { ...valid, metadata: { 'a\nb': 'x' } }, 'metadata.a\nb'],
    ['metadata of ours', { ...valid, metadata: { 'holdfast-fence': '9 a' } }, 'metadata.holdfast-fence'],
    ['metadata under 33 names', { ...valid, metadata: names(33) }, 'metadata'],
    ['wrong metadata names, as many as a request may have', { ...valid, metadata: wrongNames(4900) }, 'metadata'],
    ['metadata that S3 would decode', { ...valid, metadata: { a: 'x =?UTF-8?Q?y?=' } }, 'metadata.a'],
    [
      'metadata under a name that JavaScript takes away',
      JSON.parse(`{"path":"valid","ifNoneMatch":"*","body":"x","metadata":{"__proto__":"x","a":"b"}}`),
      'metadata.__proto__',
    ],
    ['metadata that is not an object', { ...valid, metadata: null }, 'metadata'],
    ['a commitId that S3 would decode', { ...valid, commitId: '=?UTF-8?Q?y?=' }, 'commitId'],
    ['metadata that is a number', { ...valid, metadata: { a: 1 } }, 'metadata.a'],
    ['a content type with a line end', { ...valid, contentType: 'text/plain\r\nx: y' }, 'contentType'],
    ['a content type with a blank before it', { ...valid, contentType: ' text/plain' }, 'contentType'],
    ['a sourceEtag without a source', { ...valid, sourceEtag: '"x"' }, 'sourceEtag'],
    ['a weak sourceEtag', { ...without('body'), source: crypto.randomUUID(), sourceEtag: 'W/"x"' }, 'sourceEtag'],
    ['a Cache-Control with a line end', { ...valid, cacheControl: 'no-store\r\nx: y' }, 'cacheControl'],
    [
      'a Content-Disposition beyond ASCII',
      { ...valid, contentDisposition: 'inline; filename=ä' },
      'contentDisposition',
    ],
    ['a long Content-Encoding', { ...valid, contentEncoding: 'x'.repeat(257) }, 'contentEncoding'],
    ['a Content-Encoding of S3 itself', { ...valid, contentEncoding: 'gzip, AWS-Chunked' }, 'contentEncoding'],
    ['an empty commitId', { ...valid, commitId: '' }, 'commitId'],
    ['a commitId of 65 characters', { ...valid, commitId: 'c'.repeat(65) }, 'commitId'],
    ['a commitId with a blank', { ...valid, commitId: 'a b' }, 'commitId'],
    ['a fence without token', { ...valid, fence: { key: 'k' } }, 'fence.token'],
    ['a fence with a broken token', { ...valid, fence: { key: 'k', token: 1.5 } }, 'fence.token'],
    ['a fence with a negative token', { ...valid, fence: { key: 'k', token: -1 } }, 'fence.token'],
    ['a fence of the far future', { ...valid, fence: { key: 'k', token: Number.MAX_SAFE_INTEGER } }, 'fence.token'],
    ['a fence in microseconds', { ...valid, fence: { key: 'k', token: world.clock.now() * 1000 } }, 'fence.token'],
    [
      'a fence over a day ahead',
      { ...valid, fence: { key: 'k', token: world.clock.now() + DAY_MS + 1 } },
      'fence.token',
    ],
    ['a fence with a long key', { ...valid, fence: { key: 'k'.repeat(257), token: 1 } }, 'fence.key'],
    ['waiting too long', { ...valid, waitSeconds: 21 }, 'waitSeconds'],
    ['an unknown field', { ...valid, force: true }, 'force'],
  ])('bad input names its field and does not write: %s', async (_, payload, field) => {
    const { status, outcome, body } = await post(handlers.commit, payload);
    expect([status, outcome, body.issues]).toEqual([
      400,
      'InvalidRequest',
      [{ path: field, message: expect.any(String) }],
    ]);
    expect((await throughTask(handlers.commit, payload)).outcome).toBe('InvalidRequest');
    expect([await world.allRecords(), await world.allObjects()]).toEqual([[], []]);
  });

  const reset = { path: 'p', ifMatch: '"x"', expectedFence: { key: 'k', token: 1 }, fence: null };
  it.each<[object, string, string]>([
    [{ ...reset, ifMatch: undefined }, 'ifMatch', 'is missing'],
    [{ ...reset, ifMatch: 7 }, 'ifMatch', 'must be an ETag'],
    [{ ...reset, ifMatch: '"' }, 'ifMatch', 'must be a strong ETag, as S3 returns it'],
    [{ ...reset, expectedFence: undefined }, 'expectedFence', 'is missing'],
    [{ ...reset, expectedFence: 'k' }, 'expectedFence', 'must be an object of key and token'],
    [{ ...reset, path: '/p' }, 'path', 'must not begin with a slash'],
  ])('bad input is refused with the reason: %j', async (payload, path, message) => {
    expect((await post(handlers.resetFence, payload)).body.issues).toEqual([{ path, message }]);
  });

  it('bad input of metadata is answered with how metadata must be named', async () => {
    const { body } = await post(handlers.commit, { ...valid, metadata: { Author: 'x' } });
    const message = "must be named in lower case: a-z, 0-9, '.', '_', '-'";
    expect(body.issues).toEqual([{ path: 'metadata.Author', message }]);
  });

  it('a header of a single character is accepted', async () => {
    const elsewhere = await commitWorld();
    await elsewhere.commit({ ...valid, contentType: 'x' });
    expect(await elsewhere.read('valid')).toMatchObject({ contentType: 'x' });
  });

  it('a text as metadata is refused for its type, not for its length', async () => {
    const { body } = await post(handlers.commit, { ...valid, metadata: 'x'.repeat(33) });
    expect(body.issues).toEqual([{ path: 'metadata', message: 'must be an object of strings' }]);
  });

  it('a source that does not exist is NotFound', async () => {
    const source = crypto.randomUUID();
    const { status, body } = await post(handlers.commit, { ...without('body'), source });
    expect([status, body.code, body.source]).toEqual([404, 'NotFound', source]);
    expect([await world.allRecords(), await world.allObjects()]).toEqual([[], []]);
  });

  it('metadata with 32 names is accepted', async () => {
    const elsewhere = await commitWorld();
    await elsewhere.commit({ ...valid, metadata: names(32) });
    expect((await elsewhere.read('valid')).metadata).toEqual(names(32));
  });

  it('a body over 1 MiB is PayloadTooLarge', async () => {
    for (const payload of [
      { ...valid, body: 'x'.repeat(MIB + 1) },
      { ...valid, body: 'ä'.repeat(MIB / 2 + 1) },
      { ...valid, body: Buffer.alloc(MIB + 1).toString('base64'), encoding: 'base64' },
    ]) {
      const { status, body } = await post(handlers.commit, payload);
      expect([status, body.code, body.limitBytes]).toEqual([413, 'PayloadTooLarge', MIB]);
    }
    expect([await world.allRecords(), await world.allObjects()]).toEqual([[], []]);
  });

  it('bad input of uploads and reads names its field', async () => {
    expect((await post(handlers.stageUpload, { sizeBytes: 5 * 1024 ** 3 + 1 })).body.issues).toMatchObject([
      { path: 'sizeBytes' },
    ]);
    expect((await post(handlers.stageUpload, { contentType: '' })).body.issues).toMatchObject([
      { path: 'contentType' },
    ]);
    expect((await get(handlers.readCommit, { path: '/a' })).body.issues).toMatchObject([{ path: 'path' }]);
    expect((await get(handlers.readCommit, {})).body.issues).toMatchObject([{ path: 'path' }]);
  });
});

describe('the size of a body', async () => {
  const route = { method: 'POST', path: '/v1/commits', name: 'commit', timeoutSeconds: 30 };
  const { url, stop } = await startGateway([{ ...route, handler: handlers.commit }], 0);
  afterAll(stop);
  const send = (body: string) =>
    fetch(`${url}/v1/commits`, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  /** Escapes JSON as clients do that write only ASCII. */
  const ascii = (json: string) =>
    json.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);

  it.each<[string, string, string, number]>([
    // The body is escaped in the request, and once more in the event of Lambda: one byte becomes four, two become up to seven.
    ['quotes', '"'.repeat(MIB), 'utf8', MIB],
    ['backslashes', '\\'.repeat(MIB), 'utf8', MIB],
    ['line ends', '\n'.repeat(MIB), 'utf8', MIB],
    ['two-byte characters, escaped', 'ä'.repeat(MIB / 2), 'utf8', MIB],
    ['characters beyond the basic plane, escaped', '😀'.repeat(MIB / 4), 'utf8', MIB],
    ['zeros in base64', Buffer.alloc(MIB).toString('base64'), 'base64', MIB],
    ['nothing', '', 'utf8', 0],
  ])('1 MiB passes through the gateway: %s', async (name, body, encoding, size) => {
    const response = await send(ascii(JSON.stringify({ path: `size/${name}`, ifNoneMatch: '*', body, encoding })));
    expect([response.status, await response.json()]).toMatchObject([201, { size }]);
    const bytes = Buffer.from(body, encoding as BufferEncoding).toString();
    expect((await world.body(`size/${name}`)) === bytes).toBe(true);
  });

  it('1 MiB of control characters does not pass the gateway, except in base64', async () => {
    const response = await send(JSON.stringify({ path: 'size/control', ifNoneMatch: '*', body: '\u0001'.repeat(MIB) }));
    expect(response.status).toBe(413);
  });

  it('1 MiB of control characters is not too much for the function itself', async () => {
    const input = { path: 'size/control', ifNoneMatch: '*', body: '\u0001'.repeat(MIB) };
    expect(await post(handlers.commit, input)).toMatchObject({ status: 201, body: { size: MIB } });
  });

  it('a path is stored unchanged', async () => {
    for (const path of ['a b+c', 'ü/ß', '%25/%2F', 'a?b#c&d=e', "it's(*)!~:@,$;", 'x'.repeat(1024), '...', '.a/b..']) {
      await world.commit({ path, ifNoneMatch: '*', body: path });
      expect(await world.body(path)).toBe(path);
      expect(await world.rawRecord(path)).toMatchObject({ path: { S: path } });
      expect((await get(handlers.readCommit, { path })).body).toMatchObject({ path, size: Buffer.byteLength(path) });
    }
  });
});

describe('settings', () => {
  const env = { COMMITS_TABLE: 't', BUCKET: 'b' };

  it('the settings of commits have defaults', () => {
    expect(commitsFromEnvironment(env)).toMatchObject({
      protocol: 'dynamo',
      commitTimeoutMs: 20_000,
      maxClockSkewRate: 3,
      clockSkewMs: 500,
      commitTtlSeconds: 3600,
      maxUploadBytes: 1024 * MIB,
      multipartThresholdBytes: 256 * MIB,
      partBytes: 64 * MIB,
    });
  });

  it('a function does not start with wrong or missing settings, and names them', () => {
    expect(() => commitsFromEnvironment({ BUCKET: 'b' })).toThrow('COMMITS_TABLE');
    expect(() => commitsFromEnvironment({ COMMITS_TABLE: 't' })).toThrow('BUCKET');
    expect(() => uploadsFromEnvironment({})).toThrow('BUCKET');
    expect(() => commitsFromEnvironment({ ...env, COMMIT_PROTOCOL: 'etag' })).toThrow(
      "COMMIT_PROTOCOL must be one of dynamo, native, not 'etag'",
    );
    expect(() => commitsFromEnvironment({ ...env, COMMIT_TIMEOUT_MS: '20s' })).toThrow('COMMIT_TIMEOUT_MS');
    expect(() => commitsFromEnvironment({ ...env, COMMIT_TIMEOUT_MS: '0' })).toThrow('COMMIT_TIMEOUT_MS');
    expect(() => commitsFromEnvironment({ ...env, MAX_CLOCK_SKEW_RATE: '0' })).toThrow('MAX_CLOCK_SKEW_RATE');
    // three times the timeout of 20 s, and a minute
    expect(() => commitsFromEnvironment({ ...env, COMMIT_TTL_SECONDS: '119' })).toThrow('COMMIT_TTL_SECONDS');
    expect(commitsFromEnvironment({ ...env, COMMIT_TTL_SECONDS: '120' })).toMatchObject({ commitTtlSeconds: 120 });
    expect(() => commitsFromEnvironment({ ...env, MAX_CLOCK_SKEW_RATE: '200' })).toThrow('COMMIT_TTL_SECONDS');
    expect(() => commitsFromEnvironment({ ...env, MULTIPART_PART_MIB: '4' })).toThrow('MULTIPART_PART_MIB');
    for (const settings of [commitsFromEnvironment, uploadsFromEnvironment])
      for (const wrong of ['0', '5121'])
        expect(() => settings({ ...env, MAX_UPLOAD_MIB: wrong })).toThrow('MAX_UPLOAD_MIB');
  });

  it('the settings of commits are read by their names', () => {
    const set = { CLOCK_SKEW_MS: '700', MULTIPART_THRESHOLD_MIB: '5', MULTIPART_PART_MIB: '6', MAX_UPLOAD_MIB: '5120' };
    expect(commitsFromEnvironment({ ...env, ...set })).toMatchObject({
      clockSkewMs: 700,
      multipartThresholdBytes: 5 * MIB,
      partBytes: 6 * MIB,
      maxUploadBytes: 5120 * MIB,
    });
  });

  it('presigned upload URLs do not ask for a checksum of an empty body', async () => {
    const { url } = await signUpload(uploadsFromEnvironment(env))({});
    expect([...new URL(url).searchParams.keys()].filter((name) => /checksum/i.test(name))).toEqual([]);
  });

  it('the settings name what is missing in the deployment', async () => {
    const elsewhere = world.another({ table: 'test-commits-missing' });
    const unavailable = (error: unknown) => error;
    const table = await elsewhere.commit({ path: 'elsewhere', ifNoneMatch: '*', body: 'x' }).catch(unavailable);
    expect(table).toMatchObject({
      code: 'Unavailable',
      message: expect.stringContaining('table test-commits-missing'),
    });
    const { commit } = world.another({ bucket: 'no-such-bucket' });
    const bucket = await commit({ path: 'elsewhere', ifNoneMatch: '*', body: 'x' }, call()).catch(unavailable);
    expect(bucket).toMatchObject({ code: 'Unavailable', message: expect.stringContaining('bucket no-such-bucket') });
  });
});
