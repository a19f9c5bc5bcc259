import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { request } from 'node:http';
import { request as tlsRequest } from 'node:https';
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CopyObjectCommand,
  CreateBucketCommand,
  CreateMultipartUploadCommand,
  DeleteBucketCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  type PutObjectCommandInput,
  UploadPartCommand,
  UploadPartCopyCommand,
} from '@aws-sdk/client-s3';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { s3Client } from '../../shared/aws/s3.ts';
import { copySource } from '../../shared/commits/paths.ts';

/**
 * The demands of the commit protocols on an S3. The emulator of the local stack must meet them. With AWS_ENDPOINT_URL_S3,
 * AWS_REGION and credentials in the environment the tests use that S3 instead, with a bucket that they make and remove.
 */
const s3 = s3Client({ requestChecksumCalculation: 'WHEN_REQUIRED' });
const s3IsEmulator = inject('s3IsEmulator');
const Bucket = `conformance-${randomUUID()}`;

/** `ok`, or how S3 refused: status and code. */
async function outcome(sent: Promise<unknown>): Promise<string> {
  try {
    await sent;
    return 'ok';
  } catch (error) {
    const { name, $metadata } = error as Error & { $metadata?: { httpStatusCode?: number } };
    return `${$metadata?.httpStatusCode} ${name}`;
  }
}

const put = async (Key: string, Body: string | Uint8Array, more: Partial<PutObjectCommandInput> = {}) =>
  (await s3.send(new PutObjectCommand({ Bucket, Key, Body, ...more }))).ETag ?? '';
const head = (Key: string) => s3.send(new HeadObjectCommand({ Bucket, Key }));
const remove = (Key: string, IfMatch?: string) =>
  s3.send(new DeleteObjectCommand({ Bucket, Key, ...(IfMatch !== undefined && { IfMatch }) }));
const copy = (from: string, Key: string, more: object = {}) =>
  s3.send(new CopyObjectCommand({ Bucket, Key, CopySource: copySource(Bucket, from), ...more }));
const body = async (Key: string) => (await s3.send(new GetObjectCommand({ Bucket, Key }))).Body?.transformToString();
const quoted = (bytes: string | Uint8Array) => `"${createHash('md5').update(bytes).digest('hex')}"`;

const FAILED = '412 PreconditionFailed';

beforeAll(async () => {
  const region = await s3.config.region();
  await s3.send(
    new CreateBucketCommand({
      Bucket,
      ...(region !== 'us-east-1' && { CreateBucketConfiguration: { LocationConstraint: region as never } }),
    }),
  );
});

afterAll(async () => {
  const { Contents = [] } = await s3.send(new ListObjectsV2Command({ Bucket }));
  for (const { Key = '' } of Contents) await remove(Key);
  await outcome(s3.send(new DeleteBucketCommand({ Bucket })));
});

describe('PUT', () => {
  it('a PUT with If-None-Match: * creates once', async () => {
    expect(await put('create', 'one', { IfNoneMatch: '*' })).toBe(quoted('one'));
    expect(await outcome(put('create', 'two', { IfNoneMatch: '*' }))).toBe(FAILED);
    expect(await body('create')).toBe('one');
  });

  it('a PUT with If-Match replaces that ETag only', async () => {
    const etag = await put('replace', 'one');
    expect(await outcome(put('replace', 'two', { IfMatch: '"0123456789abcdef0123456789abcdef"' }))).toBe(FAILED);
    expect(await body('replace')).toBe('one');
    expect(await put('replace', 'two', { IfMatch: etag })).toBe(quoted('two'));
    expect(await outcome(put('replace', 'three', { IfMatch: etag }))).toBe(FAILED);
  });

  it('a PUT with If-Match on an absent object is 404 NoSuchKey', async () => {
    expect(await outcome(put('nothing', 'x', { IfMatch: quoted('x') }))).toBe('404 NoSuchKey');
  });

  it('a PUT with If-None-Match: * creates again after a delete', async () => {
    await put('again', 'one');
    await remove('again');
    expect(await outcome(put('again', 'two', { IfNoneMatch: '*' }))).toBe('ok');
  });

  it('a bucket that does not exist is 404 NoSuchBucket', async () => {
    const elsewhere = new PutObjectCommand({ Bucket: `${Bucket}-not`, Key: 'x', Body: 'x', IfNoneMatch: '*' });
    expect(await outcome(s3.send(elsewhere))).toBe('404 NoSuchBucket');
  });

  it('a PUT keeps the content type and two kilobytes of metadata', async () => {
    const Metadata = { 'holdfast-x': 'a b', long: 'v'.repeat(2000), odd: `!"#$%&'()*+,-./:;<=>?@[]^_{|}~` };
    for (const ContentType of ['text/csv', 'application/x-www-form-urlencoded', 'application/json', 'text', '/*;%@']) {
      await put('meta', 'a=b', { ContentType, Metadata });
      expect(await head('meta')).toMatchObject({ ContentType, Metadata, ContentLength: 3 });
      expect(await body('meta')).toBe('a=b');
    }
  });

  it('a PUT keeps keys as they are', async () => {
    const keys = ['a b+c', 'ü/ß', '%25/%2F', 'a?b#c&d=e', "it's(*)!~:@,$;", 'x'.repeat(1024), '...', 'a/b', 'a%2Fb'];
    for (const key of keys) await put(`k/${key}`.slice(0, 1024), key, { IfNoneMatch: '*' });
    const { Contents = [] } = await s3.send(new ListObjectsV2Command({ Bucket, Prefix: 'k/' }));
    expect(Contents.map(({ Key }) => Key).sort()).toEqual(keys.map((key) => `k/${key}`.slice(0, 1024)).sort());
  });
});

describe('HEAD', () => {
  it('a HEAD of an absent object is 404 NotFound', async () => {
    expect(await outcome(head('nothing'))).toBe('404 NotFound');
  });
});

describe('DELETE', () => {
  it('a DELETE with If-Match deletes that ETag only', async () => {
    const etag = await put('delete', 'one');
    expect(await outcome(remove('delete', quoted('two')))).toBe(FAILED);
    expect(await body('delete')).toBe('one');
    expect(await outcome(remove('delete', etag))).toBe('ok');
    expect(await outcome(remove('delete', etag))).toBe('404 NoSuchKey');
  });
});

describe('COPY', () => {
  it('a COPY honours conditions on its source', async () => {
    const etag = await put('source', 'one');
    expect(await outcome(copy('source', 'copied', { CopySourceIfMatch: quoted('two') }))).toBe(FAILED);
    expect(await outcome(head('copied'))).toBe('404 NotFound');
    expect((await copy('source', 'copied', { CopySourceIfMatch: etag })).CopyObjectResult?.ETag).toBe(etag);
  });

  it('a COPY honours conditions on its target', async () => {
    await put('from', 'from');
    const etag = await put('to', 'to');
    expect(await outcome(copy('from', 'to', { IfNoneMatch: '*' }))).toBe(FAILED);
    expect(await outcome(copy('from', 'to', { IfMatch: quoted('x') }))).toBe(FAILED);
    expect(await outcome(copy('from', 'not there', { IfMatch: etag }))).toBe('404 NoSuchKey');
    expect(await body('to')).toBe('to');
    expect(await outcome(copy('from', 'to', { IfMatch: etag }))).toBe('ok');
    expect(await outcome(copy('from', 'new', { IfNoneMatch: '*' }))).toBe('ok');
  });

  it('a COPY without its source is 404 NoSuchKey', async () => {
    expect(await outcome(copy('no source', 'x', { IfNoneMatch: '*' }))).toBe('404 NoSuchKey');
  });

  it('a COPY replaces metadata and content type when asked', async () => {
    await put('typed', 'x', { ContentType: 'text/csv', Metadata: { from: 'source' } });
    const replaced = { MetadataDirective: 'REPLACE', TaggingDirective: 'REPLACE', IfNoneMatch: '*' };
    await copy('typed', 'retyped', { ...replaced, ContentType: 'text/plain', Metadata: { to: 'target' } });
    expect(await head('retyped')).toMatchObject({ ContentType: 'text/plain', Metadata: { to: 'target' } });
  });
});

describe('multipart copy', () => {
  const PART = 5 * 1024 ** 2;
  const large = randomBytes(PART + 1024 ** 2);

  beforeAll(async () => void (await put('large', large)));

  async function begin(Key: string, more: object = {}) {
    const { UploadId } = await s3.send(new CreateMultipartUploadCommand({ Bucket, Key, ...more }));
    return { Bucket, Key, UploadId };
  }

  async function parts(upload: { Bucket: string; Key: string; UploadId: string | undefined }) {
    const ranges = [`bytes=0-${PART - 1}`, `bytes=${PART}-${large.length - 1}`];
    const copies = ranges.map((CopySourceRange, index) => {
      const part = { ...upload, PartNumber: index + 1, CopySource: copySource(Bucket, 'large'), CopySourceRange };
      return s3.send(new UploadPartCopyCommand(part));
    });
    const Parts = (await Promise.all(copies)).map(({ CopyPartResult }, index) => ({
      PartNumber: index + 1,
      ETag: CopyPartResult?.ETag,
    }));
    return { Parts };
  }

  const complete = (upload: object, MultipartUpload: object, condition: object) =>
    s3.send(new CompleteMultipartUploadCommand({ ...upload, MultipartUpload, ...condition } as never));

  it('a multipart copy completes under If-None-Match: * once, with its first metadata', async () => {
    const [first, second] = [await begin('big', { Metadata: { a: 'b' }, ContentType: 'text/csv' }), await begin('big')];
    const [firstParts, secondParts] = [await parts(first), await parts(second)];
    const { ETag } = await complete(first, firstParts, { IfNoneMatch: '*' });
    const md5s = [large.subarray(0, PART), large.subarray(PART)].map((part) => createHash('md5').update(part).digest());
    expect(ETag).toBe(`"${createHash('md5').update(Buffer.concat(md5s)).digest('hex')}-2"`);
    expect(await head('big')).toMatchObject({
      ETag,
      Metadata: { a: 'b' },
      ContentType: 'text/csv',
      ContentLength: large.length,
    });
    expect(await outcome(complete(second, secondParts, { IfNoneMatch: '*' }))).toBe(FAILED);
    expect(await outcome(s3.send(new AbortMultipartUploadCommand(second)))).toBe('ok');
  });

  it('a multipart copy does not complete after an abort', async () => {
    const upload = await begin('big-aborted');
    const copied = await parts(upload);
    await s3.send(new AbortMultipartUploadCommand(upload));
    expect(await outcome(complete(upload, copied, { IfNoneMatch: '*' }))).toBe('404 NoSuchUpload');
  });

  it('a multipart copy completes under the current If-Match', async () => {
    const etag = await put('big-replace', 'one');
    const upload = await begin('big-replace');
    const copied = await parts(upload);
    expect(await outcome(complete(upload, copied, { IfMatch: quoted('two') }))).toBe(FAILED);
    expect(await body('big-replace')).toBe('one');
    await remove('big-replace');
    expect(await outcome(complete(upload, copied, { IfMatch: etag }))).toBe('404 NoSuchKey');
    await put('big-replace', 'one');
    expect(await outcome(complete(upload, copied, { IfMatch: etag }))).toBe('ok');
  });

  it('a multipart copy copies a part of that source only', async () => {
    const upload = await begin('big-source');
    const part = { ...upload, PartNumber: 1, CopySource: copySource(Bucket, 'large') };
    expect(await outcome(s3.send(new UploadPartCopyCommand({ ...part, CopySourceIfMatch: quoted('x') })))).toBe(FAILED);
    expect(await outcome(s3.send(new UploadPartCopyCommand({ ...part, CopySource: `${Bucket}/none` })))).toBe(
      '404 NoSuchKey',
    );
    await s3.send(new AbortMultipartUploadCommand(upload));
  });

  it('a multipart copy does not show an upload that is not complete', async () => {
    const upload = await begin('big-unseen');
    await s3.send(new UploadPartCommand({ ...upload, PartNumber: 1, Body: 'x' }));
    expect(await outcome(head('big-unseen'))).toBe('404 NotFound');
    await s3.send(new AbortMultipartUploadCommand(upload));
  });
});

describe('presigned URLs', () => {
  const sign = (Key: string, more: Partial<PutObjectCommandInput>, options: object = {}) =>
    getSignedUrl(s3, new PutObjectCommand({ Bucket, Key, ...more }), { expiresIn: 900, ...options });

  it('a presigned URL takes an upload, its content type and its size', async () => {
    const headers = { 'content-type': 'text/csv', 'content-length': '3' };
    const signed = { ContentType: 'text/csv', ContentLength: 3 };
    const url = await sign('signed', signed, { signableHeaders: new Set(['host', ...Object.keys(headers)]) });
    expect((await fetch(url, { method: 'PUT', headers, body: 'one' })).status).toBe(200);
    expect(await head('signed')).toMatchObject({ ContentType: 'text/csv', ETag: quoted('one') });
  });

  it('a presigned URL expires', async () => {
    const url = await sign('expired', {}, { expiresIn: 60, signingDate: new Date(Date.now() - 120_000) });
    expect((await fetch(url, { method: 'PUT', body: 'late' })).status).toBe(403);
    expect(await outcome(head('expired'))).toBe('404 NotFound');
  });

  it('a presigned URL carries conditions', async () => {
    const url = await sign('once', { IfNoneMatch: '*' });
    const headers = { 'if-none-match': '*' };
    expect((await fetch(url, { method: 'PUT', headers, body: 'one' })).status).toBe(200);
    expect((await fetch(url, { method: 'PUT', headers, body: 'two' })).status).toBe(412);
  });
});

describe('races', () => {
  const fifty = (work: (index: number) => Promise<unknown>) =>
    Promise.all(Array.from({ length: 50 }, (_, index) => outcome(work(index))));

  it.each([
    ['creates', 'nothing there', (path: string) => (n: number) => put(path, `writer ${n}`, { IfNoneMatch: '*' })],
    ['replacements', 'one', (path: string) => (n: number) => put(path, `writer ${n}`, { IfMatch: quoted('one') })],
    ['copies', 'nothing there', (path: string) => (n: number) => copy(`race/source/${n}`, path, { IfNoneMatch: '*' })],
  ])('a race of 50 %s has one winner', async (kind, before, write) => {
    const path = `race/${kind}`;
    if (before === 'one') await put(path, 'one');
    if (kind === 'copies') await fifty((n) => put(`race/source/${n}`, `writer ${n}`));
    const outcomes = await fifty(write(path));
    expect(outcomes.filter((result) => result === 'ok')).toHaveLength(1);
    // S3 may answer overlapping writes with a conflict, which says that the write did not land.
    for (const result of outcomes) expect(['ok', FAILED, '409 ConditionalRequestConflict']).toContain(result);
    expect(await body(path)).toBe(`writer ${outcomes.indexOf('ok')}`);
  });

  it('a delete during a conditional create is a conflict, or has no effect', async () => {
    await put('conflict', 'before');
    const url = new URL(await getSignedUrl(s3, new PutObjectCommand({ Bucket, Key: 'conflict', IfNoneMatch: '*' })));
    const answer = new Promise<{ status: number; text: string }>((resolve, reject) => {
      const send = url.protocol === 'https:' ? tlsRequest : request;
      // The answer to the expectation says that the request has begun.
      const headers = { 'if-none-match': '*', 'content-length': '6', expect: '100-continue' };
      const upload = send(url, { method: 'PUT', headers }, async (response) => {
        let text = '';
        for await (const chunk of response) text += chunk;
        resolve({ status: response.statusCode ?? 0, text });
      });
      upload.on('error', reject);
      upload.flushHeaders();
      upload.on('continue', async () => {
        upload.write('new');
        await remove('conflict');
        upload.end('est');
      });
    });
    const { status, text } = await answer;
    // AWS may answer either. The emulator always answers with a conflict, so that callers are tested with it.
    if (s3IsEmulator) expect(status).toBe(409);
    if (status === 409) expect(text).toContain('ConditionalRequestConflict');
    expect([200, 409, 412]).toContain(status);
    expect(await outcome(head('conflict'))).toBe(status === 200 ? 'ok' : '404 NotFound');
    expect(await outcome(put('conflict', 'after', { IfNoneMatch: '*' }))).toBe(status === 200 ? FAILED : 'ok');
  });
});

describe('a listing', () => {
  const keys = [
    '-',
    '00000000000000000001.json',
    'B',
    'Z',
    '_delta_log/1',
    '_last_checkpoint',
    'a',
    'a/1',
    'a/2',
    'b_c/1',
  ];
  // These sort after ASCII, in the order of their bytes: U+FF21, and a character beyond the basic plane.
  const all = [...keys, 'é', '\uff21', '😀'];
  const list = async (more: object) => {
    const names: string[][] = [];
    for (let token: string | undefined, first = true; first || token; first = false) {
      const input = { Bucket, Prefix: 'order/', ...more, ...(token !== undefined && { ContinuationToken: token }) };
      const { Contents = [], CommonPrefixes = [], ...page } = await s3.send(new ListObjectsV2Command(input));
      names.push([...Contents.map(({ Key = '' }) => Key), ...CommonPrefixes.map(({ Prefix = '' }) => Prefix)]);
      token = page.NextContinuationToken;
    }
    return names.map((page) => page.map((name) => name.slice('order/'.length)));
  };

  beforeAll(async () => {
    for (const key of all.toReversed()) await put(`order/${key}`, 'x');
  });

  it('a listing is in the order of the bytes of the keys', async () => {
    expect(await list({})).toEqual([all]);
    expect((await list({ MaxKeys: 3 })).flat()).toEqual(all);
    expect((await list({ StartAfter: 'order/_last_checkpoint' })).flat()).toEqual(all.slice(6));
  });

  it.each([1, 2, 3, 100])('a listing names each group once, in pages of %i', async (MaxKeys) => {
    const grouped = await list({ Delimiter: '/', MaxKeys });
    const expected = ['-', '00000000000000000001.json', 'B', 'Z', '_delta_log/', '_last_checkpoint', 'a', 'a/', 'b_c/'];
    expect(grouped.flat().toSorted()).toEqual([...expected, 'é', '\uff21', '😀'].toSorted());
    for (const page of grouped) expect(page.length).toBeLessThanOrEqual(MaxKeys);
  });
});
