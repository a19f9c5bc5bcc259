import { createHash } from 'node:crypto';
import type { Call } from '../aws/call.ts';
import { headObject } from '../aws/s3.ts';
import { HoldfastError, invalidRequest } from '../errors.ts';
import type { CommitDependencies } from './dependencies.ts';
import { abortParts, copyParts, type Part } from './multipart.ts';
import { stagingKey } from './paths.ts';
import type { CommitRequest } from './request.ts';

/** What a stored object says about itself besides its metadata. */
export interface Headers {
  ContentType?: string;
  ContentEncoding?: string;
  ContentDisposition?: string;
  ContentLanguage?: string;
  CacheControl?: string;
}

interface Common {
  size: number;
  headers: Headers;
  /** What the ETag of the object will be, wherever ETags name bytes. */
  etag: string;
}

/** What a commit writes, ready for the one write that makes it: with one PUT, one copy, or parts that are copied. */
export type Content = Common &
  ({ bytes: Buffer } | { sourceKey: string } | { sourceKey: string; uploadId: string; parts: Part[] });

/**
 * Prepares what is written. The parts of a large upload are copied here, before there is a record for others to wait for.
 * @param metadata what the object will carry: a multipart upload takes it at its beginning
 * @throws HoldfastError NotFound (source), InvalidRequest (the same bytes again), Throttled, Unavailable
 */
export async function prepareContent(
  dependencies: CommitDependencies,
  request: CommitRequest,
  metadata: Record<string, string>,
  call: Call,
): Promise<Content> {
  const content =
    'bytes' in request.body ? inline(request, request.body.bytes) : await staged(dependencies, request, call);
  assertChanges(content, request);
  if ('bytes' in content || content.size <= dependencies.multipartThresholdBytes) return content;

  const { path } = request;
  const copied = await copyParts(dependencies, { ...content, path, metadata }, call);
  const inParts = { ...content, ...copied };
  try {
    assertChanges(inParts, request);
  } catch (error) {
    await abortParts(dependencies, path, copied.uploadId, call);
    throw error;
  }
  return inParts;
}

function inline({ contentType, expectedEtag }: CommitRequest, bytes: Buffer): Common & { bytes: Buffer } {
  // Only a replacement is compared.
  const etag = expectedEtag === null ? '' : `"${createHash('md5').update(bytes).digest('hex')}"`;
  return { bytes, size: bytes.length, headers: contentType === undefined ? {} : { ContentType: contentType }, etag };
}

async function staged(
  { s3, bucket }: CommitDependencies,
  { body, contentType }: CommitRequest,
  call: Call,
): Promise<Common & { sourceKey: string }> {
  const uploadId = 'uploadId' in body ? body.uploadId : '';
  const sourceKey = stagingKey(uploadId);
  const head = await headObject(s3, bucket, sourceKey, call);
  if (!head) throw new HoldfastError('NotFound', 'nothing was uploaded under the uploadId', { source: uploadId });
  const { ContentType, ContentEncoding, ContentDisposition, ContentLanguage, CacheControl } = head;
  const headers = {
    ContentType: contentType ?? ContentType,
    ContentEncoding,
    ContentDisposition,
    ContentLanguage,
    CacheControl,
  };
  const given = Object.entries(headers).filter(([, value]) => value !== undefined);
  return { sourceKey, size: head.ContentLength ?? 0, headers: Object.fromEntries(given), etag: head.ETag ?? '' };
}

/** An ETag names bytes: where it stays the same, nothing tells whether this commit has landed, or who won. */
function assertChanges({ etag }: Common, { expectedEtag, body }: CommitRequest): void {
  if (expectedEtag === null || etag !== expectedEtag) return;
  const path = 'bytes' in body ? 'body' : 'source';
  throw invalidRequest([{ path, message: 'equals the object that it would replace, whose ETag would stay the same' }]);
}
