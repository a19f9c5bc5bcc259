import { createHash } from 'node:crypto';
import type { Call } from '../aws/call.ts';
import { headObject } from '../aws/s3.ts';
import { HoldfastError, invalidRequest } from '../errors.ts';
import { uploadTooLarge } from './answers.ts';
import type { CommitDependencies } from './dependencies.ts';
import { abortParts, copyParts, partCount, ranges, type SourceFault, type UploadPart } from './multipart.ts';
import type { StoredObject } from './object.ts';
import { stagingKey } from './paths.ts';
import type { CommitRequest, Headers } from './request.ts';

interface Common {
  size: number;
  headers: Headers;
  /** The ETag that the object will have, wherever ETags name bytes. */
  etag: string;
}

/** What a commit writes, ready for the one write that makes it: with one PUT, one copy, or parts that are copied. */
export type Content = Common &
  ({ bytes: Buffer } | { sourceKey: string } | { sourceKey: string; uploadId: string; parts: UploadPart[] });

type UploadBody = Extract<CommitRequest['body'], { uploadId: string }>;

interface Preparation {
  request: CommitRequest;
  /** What is at the path. Undefined if nothing is, or if this call has not looked. */
  object: StoredObject | undefined;
  /** The metadata that the object will carry. A multipart upload takes it at its beginning. */
  metadata: Record<string, string>;
}

/**
 * Prepares what is written. Parts are copied here, before there is a record for others to wait for.
 * @returns undefined if the object that should replace itself is another one by now
 * @throws HoldfastError NotFound (source), InvalidRequest (the same bytes again), Throttled, Unavailable
 */
export async function prepareContent(
  dependencies: CommitDependencies,
  { request, object, metadata }: Preparation,
  call: Call,
): Promise<Content | undefined> {
  const { path, body } = request;
  if ('seenFence' in body) {
    if (!object) return undefined;
    const { size, headers, etag } = object;
    const content = { size, headers, etag, sourceKey: path };
    const partBytes = otherPartBytes(dependencies, content);
    if (partBytes === undefined) return content;
    const copied = await copyParts(dependencies, { ...content, path, metadata, partBytes }, call);
    return 'sourceFault' in copied ? undefined : { ...content, ...copied };
  }

  const content = 'bytes' in body ? inline(request, body.bytes) : await staged(dependencies, request, call);
  assertChanges(content, request);
  if ('bytes' in content || content.size <= dependencies.multipartThresholdBytes) return content;

  const { partBytes } = dependencies;
  const copied = await copyParts(dependencies, { ...content, path, metadata, partBytes }, call);
  if ('sourceFault' in copied) throw uploadChanged(request, copied.sourceFault);
  const inParts = { ...content, ...copied };
  try {
    assertChanges(inParts, request);
  } catch (error) {
    await abortParts(dependencies, { path, uploadId: copied.uploadId }, call);
    throw error;
  }
  return inParts;
}

/**
 * The size of the parts in which an object is copied onto itself, so that its ETag changes and every commit that was
 * decided on the old one fails. What came in one piece is copied in parts. What came in parts is copied in one
 * piece (undefined), or in another number of parts.
 */
function otherPartBytes(
  { partBytes, multipartThresholdBytes }: CommitDependencies,
  { etag, size }: Common,
): number | undefined {
  const parts = partCount(etag);
  if (parts === 1 || (parts > 1 && size <= multipartThresholdBytes)) return undefined;
  return ranges(size, partBytes).length === parts ? 2 * partBytes : partBytes;
}

function inline({ headers, expectedEtag }: CommitRequest, bytes: Buffer): Common & { bytes: Buffer } {
  // Only a replacement is compared.
  const etag = expectedEtag === null ? '' : `"${createHash('md5').update(bytes).digest('hex')}"`;
  return { bytes, size: bytes.length, headers, etag };
}

/** Of the uploader's headers, only the type goes to the object: the others are in no signature. */
async function staged(
  { s3, bucket, maxUploadBytes }: CommitDependencies,
  { body, headers }: CommitRequest,
  call: Call,
): Promise<Common & { sourceKey: string }> {
  const { uploadId, etag: expectedEtag } = body as UploadBody;
  const sourceKey = stagingKey(uploadId, call.namespace);
  const head = await headObject(s3, { bucket, key: sourceKey }, call);
  if (!head)
    throw new HoldfastError('NotFound', 'no object was uploaded under the uploadId: upload the content, then commit', {
      source: uploadId,
    });
  const { ContentLength: size = 0, ETag: etag = '' } = head;
  if (expectedEtag !== undefined && etag !== expectedEtag)
    throw invalidRequest([
      {
        path: 'sourceEtag',
        message: 'is not the ETag of the present upload: upload the content again, or send the present ETag',
      },
    ]);
  if (size > maxUploadBytes) throw uploadTooLarge(maxUploadBytes);
  return { sourceKey, size, headers: { ...headers, ContentType: headers.ContentType ?? head.ContentType }, etag };
}

function uploadChanged({ body }: CommitRequest, fault: SourceFault): HoldfastError {
  if (fault === 'gone')
    return new HoldfastError('NotFound', 'the staged upload no longer exists: upload the content again', {
      source: (body as UploadBody).uploadId,
    });
  return invalidRequest([{ path: 'source', message: 'was uploaded again during the commit: send the commit again' }]);
}

/** An ETag names bytes. If it stayed the same, nothing could show whether this commit has landed, or which writer won. */
function assertChanges({ etag }: Common, { expectedEtag, body }: CommitRequest): void {
  if (etag !== expectedEtag) return;
  const path = 'bytes' in body ? 'body' : 'source';
  throw invalidRequest([{ path, message: 'equals the object at the path: a commit must change the content' }]);
}
