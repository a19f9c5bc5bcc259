import { createHash } from 'node:crypto';
import {
  AbortMultipartUploadCommand,
  CreateMultipartUploadCommand,
  type CreateMultipartUploadCommandOutput,
  UploadPartCommand,
  type UploadPartCommandOutput,
  UploadPartCopyCommand,
  type UploadPartCopyCommandOutput,
} from '@aws-sdk/client-s3';
import type { Call } from '../aws/call.ts';
import { type Attempt, attempt, reading, toHoldfastError } from '../aws/send.ts';
import { callersFault } from './answers.ts';
import { type CommitDependencies, commitBucket } from './dependencies.ts';
import { copySource } from './paths.ts';
import type { Headers } from './request.ts';

export interface UploadPart {
  PartNumber: number;
  ETag: string;
}

interface Copy {
  path: string;
  sourceKey: string;
  /** The ETag of the source. */
  etag: string;
  size: number;
  headers: Headers;
  metadata: Record<string, string>;
  /** The size of each part except for the last. */
  partBytes: number;
}

interface PartCopy extends Copy {
  uploadId: string;
  range: string | undefined;
  number: number;
}

/** How the source has changed since it was read. */
export type SourceFault = 'gone' | 'replaced';

/** Stops the copies of the other parts if one part finds that the source has changed. Only `copyParts` catches it. */
class SourceChanged extends Error {
  readonly fault: SourceFault;

  constructor(fault: SourceFault) {
    super(fault);
    this.fault = fault;
  }
}

/** The time for a copy within S3, which takes seconds for each hundred mebibytes. */
export const COPY_TIMEOUT_MS = 30_000;

/** Eight copies at once reach several hundred megabytes a second. More gain little. */
const PARALLEL_PARTS = 8;

/**
 * Begins a multipart upload to the path, and copies the source into its parts. The object appears when `write.ts`
 * completes the upload.
 * @returns the parts with the ETag that the object will have; or how the source has changed, and then the upload is
 *   aborted
 * @throws HoldfastError InvalidRequest (S3 refuses path or metadata), Throttled, Unavailable
 */
export async function copyParts(
  dependencies: CommitDependencies,
  copy: Copy,
  call: Call,
): Promise<{ uploadId: string; parts: UploadPart[]; etag: string } | { sourceFault: SourceFault }> {
  const { s3, bucket } = dependencies;
  const create = new CreateMultipartUploadCommand({
    Bucket: bucket,
    Key: copy.path,
    ...copy.headers,
    Metadata: copy.metadata,
  });
  // Counts as a read: an upload that was begun and never completed does not change the object, and the bucket's
  // lifecycle removes it.
  const begun: Attempt<CreateMultipartUploadCommandOutput> = await attempt(s3, { command: create }, call);
  if ('error' in begun)
    throw callersFault(begun.error) ?? toHoldfastError(begun.error, reading(commitBucket(bucket)), begun.unanswered);
  const { UploadId: uploadId = '' } = begun.output;
  try {
    const parts = await inParallel(partRanges(copy.size, copy.partBytes), async (range, index) => ({
      PartNumber: index + 1,
      ETag: await copyPart(dependencies, { ...copy, uploadId, range, number: index + 1 }, call),
    }));
    return { uploadId, parts, etag: multipartEtag(parts) };
  } catch (error) {
    await abortParts(dependencies, { path: copy.path, uploadId }, call);
    if (error instanceof SourceChanged) return { sourceFault: error.fault };
    throw error;
  }
}

async function copyPart(
  { s3, bucket }: CommitDependencies,
  { path, sourceKey, etag, size, uploadId, range, number }: PartCopy,
  call: Call,
): Promise<string> {
  const part = { Bucket: bucket, Key: path, UploadId: uploadId, PartNumber: number };
  const source = { CopySource: copySource(bucket, sourceKey), CopySourceRange: range, CopySourceIfMatch: etag };
  const requestTimeout = COPY_TIMEOUT_MS;
  // S3 cannot copy an empty part, so an empty part is uploaded.
  const outcome: Attempt<UploadPartCommandOutput | UploadPartCopyCommandOutput> =
    size === 0
      ? await attempt(s3, { command: new UploadPartCommand({ ...part, Body: '' }) }, call)
      : await attempt(s3, { command: new UploadPartCopyCommand({ ...part, ...source }), requestTimeout }, call);
  if ('output' in outcome) {
    const { output } = outcome;
    return ('CopyPartResult' in output ? output.CopyPartResult?.ETag : (output as UploadPartCommandOutput).ETag) ?? '';
  }
  switch (outcome.error.name) {
    case 'NoSuchKey':
      throw new SourceChanged('gone');
    case 'PreconditionFailed':
      throw new SourceChanged('replaced');
    default:
      throw toHoldfastError(outcome.error, reading(commitBucket(bucket)), outcome.unanswered);
  }
}

/**
 * Aborts a multipart upload. An error is ignored: readers do not see the parts, and the bucket's lifecycle removes
 * them.
 */
export async function abortParts(
  { s3, bucket }: CommitDependencies,
  { path, uploadId }: { path: string; uploadId: string },
  call: Call,
): Promise<void> {
  await attempt(
    s3,
    { command: new AbortMultipartUploadCommand({ Bucket: bucket, Key: path, UploadId: uploadId }) },
    call,
  );
}

/** The range of the source for each part. Undefined for a single part, because S3 refuses ranges of a small object. */
export function partRanges(size: number, partBytes: number): (string | undefined)[] {
  const count = Math.max(1, Math.ceil(size / partBytes));
  if (count === 1) return [undefined];
  return Array.from({ length: count }, (_, i) => `bytes=${i * partBytes}-${Math.min(size, (i + 1) * partBytes) - 1}`);
}

/**
 * Works on items in parallel. After a failure it waits until the requests under way have ended.
 * @throws the first failure
 */
async function inParallel<In, Out>(items: In[], work: (item: In, index: number) => Promise<Out>): Promise<Out[]> {
  const results: Out[] = [];
  let next = 0;
  let failed = false;
  const worker = async () => {
    while (next < items.length && !failed) {
      const index = next++;
      try {
        results[index] = await work(items[index] as In, index);
      } catch (error) {
        failed = true;
        throw error;
      }
    }
  };
  const ended = await Promise.allSettled(Array.from({ length: PARALLEL_PARTS }, worker));
  const failure = ended.find((end) => end.status === 'rejected');
  if (failure) throw failure.reason;
  return results;
}

/** How many parts an object was made from, as its ETag shows. 0 if it came in one piece. */
export const partCount = (etag: string): number => Number(/-(\d+)"?$/.exec(etag)?.[1] ?? 0);

/** The ETag that S3 gives a multipart object: the MD5 of the parts' MD5s, and the number of parts. */
function multipartEtag(parts: UploadPart[]): string {
  const digests = parts.map(({ ETag }) => Buffer.from(ETag.replaceAll('"', ''), 'hex'));
  return `"${createHash('md5').update(Buffer.concat(digests)).digest('hex')}-${parts.length}"`;
}
