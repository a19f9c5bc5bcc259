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
  /** Of the source. */
  etag: string;
  size: number;
  headers: Headers;
  metadata: Record<string, string>;
  /** Of every part but the last. */
  partBytes: number;
}

/** One part of a copy. */
interface PartCopy extends Copy {
  uploadId: string;
  range: string | undefined;
  number: number;
}

/** How the source has changed since it was looked at. */
export type SourceFault = 'gone' | 'replaced';

/** Thrown within this module: the first part that finds the source changed stops the others. */
class SourceChanged extends Error {
  readonly fault: SourceFault;

  constructor(fault: SourceFault) {
    super(fault);
    this.fault = fault;
  }
}

/** A copy inside S3 takes seconds for each hundred mebibytes. */
export const COPY_TIMEOUT_MS = 30_000;

/** More workers gain little: eight copy some hundred megabytes in a second. */
const PARALLEL_PARTS = 8;

/**
 * Begins a multipart upload to the path and copies the source into its parts. The object appears when it is completed.
 * @returns the parts, and the ETag that S3 makes of theirs; or what is wrong with the source, with nothing left behind
 * @throws HoldfastError InvalidRequest (what S3 refuses of it), Throttled, Unavailable
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
  // An upload that is begun and not completed leaves no object; the bucket's lifecycle removes it.
  const begun: Attempt<CreateMultipartUploadCommandOutput> = await attempt(s3, { command: create }, call);
  if ('error' in begun)
    throw callersFault(begun.error) ?? toHoldfastError(begun.error, reading(commitBucket(bucket)), begun.unanswered);
  const { UploadId: uploadId = '' } = begun.output;
  try {
    const parts = await inParallel(ranges(copy.size, copy.partBytes), async (range, index) => ({
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
  // S3 copies no empty part.
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

/** Best effort: what stays behind is invisible, and the bucket's lifecycle removes it. */
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

/** The range of the source for each part. Undefined for a single part, because S3 copies no range of a small object. */
export function ranges(size: number, partBytes: number): (string | undefined)[] {
  const count = Math.max(1, Math.ceil(size / partBytes));
  if (count === 1) return [undefined];
  return Array.from({ length: count }, (_, i) => `bytes=${i * partBytes}-${Math.min(size, (i + 1) * partBytes) - 1}`);
}

/** Ends only after the last worker, so that no request outlives a failure. */
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

/** The number of parts of which an object with that ETag was made. 0 if it came in one piece. */
export const partCount = (etag: string): number => Number(/-(\d+)"?$/.exec(etag)?.[1] ?? 0);

/** The ETag of a multipart object as S3 makes it: the MD5 of the parts' MD5s, and their number. */
function multipartEtag(parts: UploadPart[]): string {
  const digests = parts.map(({ ETag }) => Buffer.from(ETag.replaceAll('"', ''), 'hex'));
  return `"${createHash('md5').update(Buffer.concat(digests)).digest('hex')}-${parts.length}"`;
}
