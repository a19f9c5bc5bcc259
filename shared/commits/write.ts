import {
  CompleteMultipartUploadCommand,
  type CompleteMultipartUploadCommandOutput,
  CopyObjectCommand,
  type CopyObjectCommandOutput,
  PutObjectCommand,
  type PutObjectCommandOutput,
} from '@aws-sdk/client-s3';
import type { Call } from '../aws/call.ts';
import { type Attempt, attempt, TOO_LATE, toHoldfastError, writing } from '../aws/send.ts';
import type { HoldfastError } from '../errors.ts';
import { callersFault } from './answers.ts';
import type { Content } from './content.ts';
import { type CommitDependencies, commitBucket } from './dependencies.ts';
import { COPY_TIMEOUT_MS } from './multipart.ts';
import { copySource } from './paths.ts';
import type { CommitRequest } from './request.ts';

/**
 * The outcome of the write of a commit. `error` is absent if S3's condition did not hold, or if the object or the
 * source was gone. `mayTryAgain`: the write met another request, or it was too late to send it. `unanswered`: a try was
 * sent and got no answer, so it may have landed, or may still land.
 */
export type CommitWritten =
  | { won: true; etag: string; versionId: string | undefined }
  | { won: false; unanswered: boolean; mayTryAgain: boolean; error?: HoldfastError };

interface Write {
  request: CommitRequest;
  content: Content;
  metadata: Record<string, string>;
  /** No try is sent after this time, in epoch milliseconds. */
  sendBefore: number;
}

/**
 * Sends the write of a commit under a condition of S3. The condition protects the object even if this writer was frozen
 * and another writer has taken over its record.
 */
export async function writeObject(
  dependencies: CommitDependencies,
  { request, content, metadata, sendBefore }: Write,
  call: Call,
): Promise<CommitWritten> {
  const tries = {
    command: conditionalCommand(dependencies, { request, content, metadata }),
    tooLate: () => dependencies.clock.now() > sendBefore,
    ...(!('bytes' in content) && { requestTimeout: COPY_TIMEOUT_MS }),
  };
  const outcome: Attempt<WriteOutput> = await attempt(dependencies.s3, tries, call);
  if ('output' in outcome) return wonWrite(outcome.output);
  const { error, unanswered } = outcome;
  switch (error.code ?? error.name) {
    case 'PreconditionFailed':
    case 'NoSuchKey':
      return { won: false, unanswered, mayTryAgain: false };
    case 'ConditionalRequestConflict':
    case 'OperationAborted':
    case 'NoSuchUpload':
    case TOO_LATE:
      return { won: false, unanswered, mayTryAgain: true };
    default: {
      const operation = writing(commitBucket(dependencies.bucket), { commitId: request.entry.commitId });
      const shown = callersFault(error) ?? toHoldfastError(error, operation, unanswered);
      return { won: false, unanswered, mayTryAgain: false, error: shown };
    }
  }
}

type WriteCommand = PutObjectCommand | CopyObjectCommand | CompleteMultipartUploadCommand;
type WriteOutput = PutObjectCommandOutput | CopyObjectCommandOutput | CompleteMultipartUploadCommandOutput;

function conditionalCommand(
  { bucket }: CommitDependencies,
  { request: { path, expectedEtag }, content, metadata }: Omit<Write, 'sendBefore'>,
): WriteCommand {
  const target = {
    Bucket: bucket,
    Key: path,
    ...(expectedEtag === null ? { IfNoneMatch: '*' } : { IfMatch: expectedEtag }),
  };
  if ('bytes' in content)
    return new PutObjectCommand({ ...target, ...content.headers, Body: content.bytes, Metadata: metadata });
  if ('parts' in content)
    return new CompleteMultipartUploadCommand({
      ...target,
      UploadId: content.uploadId,
      MultipartUpload: { Parts: content.parts },
    });
  return new CopyObjectCommand({
    ...target,
    ...content.headers,
    CopySource: copySource(bucket, content.sourceKey),
    CopySourceIfMatch: content.etag,
    Metadata: metadata,
    MetadataDirective: 'REPLACE',
    // Copying tags would need more permissions.
    TaggingDirective: 'REPLACE',
  });
}

function wonWrite(output: WriteOutput): CommitWritten {
  const etag = 'CopyObjectResult' in output ? output.CopyObjectResult?.ETag : (output as PutObjectCommandOutput).ETag;
  return { won: true, etag: etag ?? '', versionId: output.VersionId };
}
