import { createHash } from 'node:crypto';
import type { Call } from '../aws/call.ts';
import { headObject } from '../aws/s3.ts';
import { HoldfastError, invalidRequest } from '../errors.ts';
import { uploadTooLarge } from './answers.ts';
import type { CommitDependencies } from './dependencies.ts';
import { abortParts, copyParts, partCount, partRanges, type SourceFault, type UploadPart } from './multipart.ts';
import type { StoredObject } from './object.ts';
import { stagingKey } from './paths.ts';
import type { CommitRequest, Headers } from './request.ts';

interface CommonContent {
  size: number;
  headers: Headers;
  /** The ETag that the object will have, if the bucket derives ETags from the bytes. */
  etag: string;
}

/**
 * The content of a commit, ready for the write: bytes for a PUT, a source for a copy, or parts that are copied already.
 */
export type Content = CommonContent &
  ({ bytes: Buffer } | { sourceKey: string } | { sourceKey: string; uploadId: string; parts: UploadPart[] });

type UploadBody = Extract<CommitRequest['body'], { uploadId: string }>;

interface Preparation {
  request: CommitRequest;
  /** The object at the path. Undefined if there is none, or if this call has not read it. */
  object: StoredObject | undefined;
  /** The metadata that the object will have. A multipart upload needs it when it begins. */
  metadata: Record<string, string>;
}

/**
 * Prepares the content of a commit. Parts are copied here, before the intent: once it is declared, other writers wait.
 * @returns undefined if the object whose fence is reset was replaced since the call has read it
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

  const content =
    'bytes' in body ? inlineContent(request, body.bytes) : await stagedContent(dependencies, request, call);
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
 * The size of the parts in which an object is copied onto itself. The ETag of the copy must differ, so that every
 * commit that was decided on the old ETag fails. So an object that came in one piece is copied in parts, and an object
 * that came in parts is copied in one piece (undefined), or in another number of parts.
 */
function otherPartBytes(
  { partBytes, multipartThresholdBytes }: CommitDependencies,
  { etag, size }: CommonContent,
): number | undefined {
  const parts = partCount(etag);
  if (parts === 1 || (parts > 1 && size <= multipartThresholdBytes)) return undefined;
  return partRanges(size, partBytes).length === parts ? 2 * partBytes : partBytes;
}

function inlineContent({ headers, expectedEtag }: CommitRequest, bytes: Buffer): CommonContent & { bytes: Buffer } {
  // The ETag is only needed for a replacement, to compare it with the object's.
  const etag = expectedEtag === null ? '' : `"${createHash('md5').update(bytes).digest('hex')}"`;
  return { bytes, size: bytes.length, headers, etag };
}

/**
 * The content of a staged upload. The object takes over the upload's content type; the uploader's other headers were
 * not signed.
 */
async function stagedContent(
  { s3, bucket, maxUploadBytes }: CommitDependencies,
  { body, headers }: CommitRequest,
  call: Call,
): Promise<CommonContent & { sourceKey: string }> {
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
        message: 'is not the ETag of the current upload: upload the content again, or send the current ETag',
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

/**
 * Refuses a commit of the bytes that are there: the ETag would stay the same, so nothing would show whether the commit
 * landed, or who won.
 */
function assertChanges({ etag }: CommonContent, { expectedEtag, body }: CommitRequest): void {
  if (etag !== expectedEtag) return;
  const path = 'bytes' in body ? 'body' : 'source';
  throw invalidRequest([{ path, message: 'equals the object at the path: a commit must change the content' }]);
}
