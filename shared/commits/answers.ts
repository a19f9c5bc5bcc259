import type { SdkError } from '../aws/send.ts';
import { HoldfastError, invalidRequest } from '../errors.ts';
import type { Protocol } from './dependencies.ts';
import type { Fence } from './metadata.ts';
import type { StoredObject } from './object.ts';
import type { CommitRequest } from './request.ts';

export interface Committed {
  path: string;
  /** The ETag of the committed object. Null if another commit has replaced the object since. */
  etag: string | null;
  /** The ETag of the object that is there now, if `etag` is null. */
  currentEtag?: string;
  versionId?: string;
  /** The size of the committed object in bytes. Null if `etag` is null. */
  size: number | null;
  commitId: string;
  /** The generation of the commit record: how many intents with this precondition came before. */
  generation?: number;
  protocol: Protocol;
  /** True if the commit may have landed before this call. */
  repeated: boolean;
}

/** The answer for a commit that has landed: its id is in the object's chain. */
export function landedAnswer(
  { path, entry }: CommitRequest,
  object: StoredObject,
  { latest, protocol, repeated }: { latest: boolean; protocol: Protocol; repeated: boolean },
): Committed {
  const objectFields = latest
    ? { etag: object.etag, ...(object.versionId !== undefined && { versionId: object.versionId }), size: object.size }
    : { etag: null, currentEtag: object.etag, size: null };
  return { path, ...objectFields, commitId: entry.commitId, protocol, repeated };
}

export function preconditionFailed({ path, expectedEtag }: CommitRequest, etag: string | null): HoldfastError {
  const detail =
    expectedEtag === null
      ? 'there is an object at the path: read the object before you commit again'
      : etag === null
        ? 'there is no object at the path: commit with ifNoneMatch to create the object'
        : 'the object at the path has another ETag: read the object, and send its current ETag';
  return new HoldfastError('PreconditionFailed', detail, { path, etag });
}

export function fenceRejected({ path, fence }: CommitRequest, stored: Fence): HoldfastError {
  const detail =
    fence === undefined
      ? 'the object was written under a fence, and this commit has none: commit with the fence of your lease'
      : fence.key === stored.key
        ? 'a newer holder of the fence has written the object: acquire the lease again before you commit'
        : 'the object was written under the fence of another key: commit with that key, or replace the fence (resetFence)';
  return new HoldfastError('FenceRejected', detail, { path, token: fence?.token ?? null, highest: stored.token });
}

export function otherFence({ path, expectedEtag }: CommitRequest, fence: Fence | null): HoldfastError {
  const detail =
    'the object at the path has another fence than expectedFence: read the object, and send its current fence';
  return new HoldfastError('PreconditionFailed', detail, { path, etag: expectedEtag, fence });
}

export function fenceAlreadyReset({ path, expectedEtag }: CommitRequest): HoldfastError {
  const detail = 'the fence was replaced after the last commit: commit before you replace the fence again';
  return new HoldfastError('PreconditionFailed', detail, { path, etag: expectedEtag });
}

/**
 * The longest `retryAfterMs`, a day. The record of another client may ask for any time, and a caller should try again
 * earlier than in a month.
 */
const MAX_RETRY_AFTER_MS = 24 * 60 * 60 * 1000;

export function commitInProgress({ path }: CommitRequest, generation: number, retryAfterMs: number): HoldfastError {
  const detail = 'another writer is committing to the path, or was interrupted: send the same call again later';
  const context = { path, generation, retryAfterMs: Math.min(retryAfterMs, MAX_RETRY_AFTER_MS) };
  return new HoldfastError('CommitInProgress', detail, context);
}

export function commitOutcomeUnknown({ path, entry }: CommitRequest, detail: string, cause?: unknown): HoldfastError {
  const context = { path, retryWith: { commitId: entry.commitId }, retryAfterMs: 1000 };
  return new HoldfastError('OutcomeUnknown', detail, { ...context, cause });
}

export function uploadTooLarge(limitBytes: number): HoldfastError {
  return new HoldfastError(
    'PayloadTooLarge',
    `the upload is larger than the limit of this deployment, ${limitBytes} bytes`,
    { limitBytes },
  );
}

/** Errors of S3 that only the caller can correct. Maps the name of the error to the field and the message. */
const CALLERS_FAULTS = new Map([
  ['MetadataTooLarge', { path: 'metadata', message: 'has more bytes than S3 accepts' }],
  ['KeyTooLongError', { path: 'path', message: 'is longer than S3 accepts' }],
  ['EntityTooLarge', { path: 'source', message: 'is larger than S3 accepts' }],
]);

/** @returns undefined if the caller is not at fault */
export function callersFault({ code, name }: SdkError): HoldfastError | undefined {
  const issue = CALLERS_FAULTS.get(code ?? name);
  return issue && invalidRequest([issue]);
}
