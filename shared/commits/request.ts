import { createHash } from 'node:crypto';
import { HoldfastError, invalidRequest } from '../errors.ts';

import type { CommitDependencies } from './dependencies.ts';
import type { CommitInput, ResetFenceInput } from './inputs.ts';
import { type CommitEntry, type Fence, fingerprint } from './metadata.ts';

/**
 * The content of a commit: bytes, a staged upload, or the object's own bytes for a reset of the fence that the operator
 * saw.
 */
type Body = { bytes: Buffer } | { uploadId: string; etag: string | undefined } | { seenFence: Fence };

/** The headers that S3 stores with an object besides its metadata, and sends to readers. */
export interface Headers {
  ContentType?: string | undefined;
  ContentEncoding?: string | undefined;
  ContentDisposition?: string | undefined;
  ContentLanguage?: string | undefined;
  CacheControl?: string | undefined;
}

export interface CommitRequest {
  path: string;
  /** The ETag that the object must have, with its quotes. Null if the path must be empty. */
  expectedEtag: string | null;
  body: Body;
  headers: Headers;
  metadata: Record<string, string>;
  entry: CommitEntry;
  /** Whether the caller chose the commit id. Only then an earlier call may have used it. */
  idWasGiven: boolean;
  fence: Fence | undefined;
  waitMs: number;
}

/** The most decoded bytes in a request. Callers stage larger content as an upload. */
const MAX_INLINE_BYTES = 1024 ** 2;

/**
 * How far a fence token may be ahead of the clock: a day. Tokens are epoch milliseconds. A token that is further ahead
 * is a mistake, such as microseconds, and later holders would have lower ones, so none of them could write.
 */
const MAX_TOKEN_AHEAD_MS = 24 * 60 * 60 * 1000;

/** @throws HoldfastError PayloadTooLarge, InvalidRequest (a fence token of the far future) */
export function commitRequest(
  { ids, clock }: Pick<CommitDependencies, 'ids' | 'clock'>,
  input: CommitInput,
  principal: string | undefined,
): CommitRequest {
  if (input.fence) assertNearToken(input.fence, clock.now());
  const expectedEtag = input.ifMatch ?? null;
  const body = requestBody(input);
  return {
    path: input.path,
    expectedEtag,
    body,
    headers: {
      ContentType: input.contentType,
      ContentEncoding: input.contentEncoding,
      ContentDisposition: input.contentDisposition,
      CacheControl: input.cacheControl,
    },
    metadata: input.metadata ?? {},
    entry: {
      commitId: input.commitId ?? ids.uuid(),
      fingerprint: fingerprint(expectedEtag, contentOf(body), principal && callerOf(principal)),
    },
    idWasGiven: input.commitId !== undefined,
    fence: input.fence,
    waitMs: input.waitSeconds * 1000,
  };
}

/** @throws HoldfastError InvalidRequest (a fence token of the far future) */
export function resetRequest(
  { ids, clock }: Pick<CommitDependencies, 'ids' | 'clock'>,
  input: ResetFenceInput,
  principal: string | undefined,
): CommitRequest {
  const { path, ifMatch, expectedFence, fence } = input;
  if (fence) assertNearToken(fence, clock.now());
  return {
    path,
    expectedEtag: ifMatch,
    body: { seenFence: expectedFence },
    headers: {},
    metadata: {},
    entry: {
      commitId: input.commitId ?? ids.uuid(),
      fingerprint: fingerprint(ifMatch, { from: expectedFence, to: fence }, principal && callerOf(principal)),
    },
    idWasGiven: input.commitId !== undefined,
    fence: fence ?? undefined,
    waitMs: input.waitSeconds * 1000,
  };
}

function assertNearToken(fence: Fence, now: number): void {
  const highest = now + MAX_TOKEN_AHEAD_MS;
  if (fence.token <= highest) return;
  const message = `must be at most ${highest}, a day ahead of the clock in epoch milliseconds`;
  throw invalidRequest([{ path: 'fence.token', message }]);
}

/** A text that two requests share only if they have the same content. */
function contentOf(body: Exclude<Body, { seenFence: Fence }>): string {
  if ('bytes' in body) return createHash('sha256').update(body.bytes).digest('hex');
  return body.etag === undefined ? body.uploadId : `${body.uploadId} ${body.etag}`;
}

function requestBody({ body, encoding, source, sourceEtag }: CommitInput): Exclude<Body, { seenFence: Fence }> {
  if (source !== undefined) return { uploadId: source, etag: sourceEtag };
  const bytes = Buffer.from(body ?? '', encoding ?? 'utf8');
  if (bytes.length <= MAX_INLINE_BYTES) return { bytes };
  const detail = `the body has more than ${MAX_INLINE_BYTES} bytes: stage an upload, and commit the upload as source`;
  throw new HoldfastError('PayloadTooLarge', detail, { limitBytes: MAX_INLINE_BYTES });
}

/**
 * The caller without the session of its role: a writer that starts again has another session, and must still count as
 * the same caller.
 */
function callerOf(principal: string): string {
  return principal.replace(/^(arn:[^:]+:sts::\d*:assumed-role\/[^/]+)\/.*$/, '$1');
}
