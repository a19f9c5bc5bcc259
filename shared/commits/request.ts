import { createHash } from 'node:crypto';
import { HoldfastError } from '../errors.ts';
import type { Ids } from '../ids.ts';
import type { CommitInput } from './inputs.ts';
import { type CommitEntry, type Fence, fingerprint } from './metadata.ts';

/** What is committed: the bytes themselves, or those of a staged upload. */
type Body = { bytes: Buffer } | { uploadId: string };

/** A commit as the protocols see it. */
export interface CommitRequest {
  path: string;
  /** What must be there, with its quotes; null where nothing may be. */
  expectedEtag: string | null;
  body: Body;
  contentType: string | undefined;
  metadata: Record<string, string>;
  /** The commit's id, sent or made here, and the digest of what is asked for under it. */
  entry: CommitEntry;
  /** Only an id that the caller knew can have been used before. */
  idWasGiven: boolean;
  fence: Fence | undefined;
  waitMs: number;
}

/** Decoded. Callers with more stage an upload. */
const MAX_INLINE_BYTES = 1024 ** 2;

/** @throws HoldfastError PayloadTooLarge */
export function commitRequest(ids: Ids, input: CommitInput, principal: string | undefined): CommitRequest {
  const expectedEtag = input.ifMatch ?? null;
  const body = requestBody(input);
  const identity = 'bytes' in body ? createHash('sha256').update(body.bytes).digest('hex') : body.uploadId;
  return {
    path: input.path,
    expectedEtag,
    body,
    contentType: input.contentType,
    metadata: input.metadata ?? {},
    entry: {
      commitId: input.commitId ?? ids.uuid(),
      fingerprint: fingerprint(expectedEtag, identity, principal && callerOf(principal)),
    },
    idWasGiven: input.commitId !== undefined,
    fence: input.fence,
    waitMs: input.waitSeconds * 1000,
  };
}

function requestBody({ body, encoding, source }: CommitInput): Body {
  if (source !== undefined) return { uploadId: source };
  const bytes = Buffer.from(body ?? '', encoding ?? 'utf8');
  if (bytes.length <= MAX_INLINE_BYTES) return { bytes };
  const detail = `the body is over ${MAX_INLINE_BYTES} bytes; stage an upload and commit it as source`;
  throw new HoldfastError('PayloadTooLarge', detail, { limitBytes: MAX_INLINE_BYTES });
}

/** Each session of a role has an ARN of its own, and a writer that starts again has another one: the role is the caller. */
function callerOf(principal: string): string {
  return principal.replace(/^(arn:[^:]+:sts::\d*:assumed-role\/[^/]+)\/.*$/, '$1');
}
