import { createHash } from 'node:crypto';
import type { Call } from '../aws/call.ts';
import { headObject } from '../aws/s3.ts';
import { HoldfastError, invalidRequest } from '../errors.ts';
import { uploadTooLarge } from './answers.ts';
import type { CommitDependencies } from './dependencies.ts';
import { abortParts, copyParts, type Part } from './multipart.ts';
import { stagingKey } from './paths.ts';
import type { CommitRequest, Headers } from './request.ts';

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

function inline({ headers, expectedEtag }: CommitRequest, bytes: Buffer): Common & { bytes: Buffer } {
  // Only a replacement is compared.
  const etag = expectedEtag === null ? '' : `"${createHash('md5').update(bytes).digest('hex')}"`;
  return { bytes, size: bytes.length, headers, etag };
}

/** Of what the uploader sent along, only the type goes to the object: nobody signed the other headers. */
async function staged(
  { s3, bucket, maxUploadBytes }: CommitDependencies,
  { body, headers }: CommitRequest,
  call: Call,
): Promise<Common & { sourceKey: string }> {
  const { uploadId, etag: expectedEtag } = body as Extract<CommitRequest['body'], { uploadId: string }>;
  const sourceKey = stagingKey(uploadId);
  const head = await headObject(s3, bucket, sourceKey, call);
  if (!head) throw new HoldfastError('NotFound', 'nothing was uploaded under the uploadId', { source: uploadId });
  const { ContentLength: size = 0, ETag: etag = '' } = head;
  if (expectedEtag !== undefined && etag !== expectedEtag)
    throw invalidRequest([{ path: 'sourceEtag', message: 'is not the ETag of what is uploaded now' }]);
  if (size > maxUploadBytes) throw uploadTooLarge(maxUploadBytes);
  return { sourceKey, size, headers: { ...headers, ContentType: headers.ContentType ?? head.ContentType }, etag };
}

/** An ETag names bytes: where it stays the same, nothing tells whether this commit has landed, or who won. */
function assertChanges({ etag }: Common, { expectedEtag, body }: CommitRequest): void {
  if (expectedEtag === null || etag !== expectedEtag) return;
  const path = 'bytes' in body ? 'body' : 'source';
  throw invalidRequest([{ path, message: 'equals the object that it would replace, whose ETag would stay the same' }]);
}
