import { type HoldfastError, invalidRequest } from '../errors.ts';
import { fenceAlreadyReset, fenceRejected, otherFence, preconditionFailed } from './answers.ts';
import type { Fence } from './metadata.ts';
import type { StoredObject } from './object.ts';
import type { CommitRequest } from './request.ts';

/**
 * What an object shows about a commit. See docs/protocols/commits.md#steps.
 * - `landed`: the commit is in the object's chain.
 * - `open`: the precondition holds.
 * - `refused`: the precondition does not hold. The refusal is conclusive if the commit has certainly never landed: the
 *   chain is whole and does not have the commit, or it has the commit id with another content (InvalidRequest).
 */
export type CommitVerdict =
  | { state: 'landed'; object: StoredObject; latest: boolean }
  | { state: 'open' }
  | { state: 'refused'; error: HoldfastError; conclusive: boolean };

export function judgeObject(object: StoredObject | undefined, request: CommitRequest): CommitVerdict {
  const { commitId, fingerprint } = request.entry;
  const commits = object?.serviceMetadata?.commits ?? [];
  const earlier = commits.find((entry) => entry.commitId === commitId);
  if (object && earlier) {
    if (earlier.fingerprint === fingerprint)
      return { state: 'landed', object, latest: commits.at(-1)?.commitId === commitId };
    const message = 'was used for a commit with another precondition, content or caller: choose another commitId';
    return { state: 'refused', error: invalidRequest([{ path: 'commitId', message }]), conclusive: true };
  }
  const conclusive = object?.serviceMetadata?.complete ?? false;
  const { body } = request;
  const error = 'seenFence' in body ? resetRefusal(object, request, body.seenFence) : commitRefusal(object, request);
  return error ? { state: 'refused', error, conclusive } : { state: 'open' };
}

function commitRefusal(object: StoredObject | undefined, request: CommitRequest): HoldfastError | undefined {
  const fence = object?.serviceMetadata?.fence;
  if (fence && !mayWrite(request.fence, fence)) return fenceRejected(request, fence);
  const etag = object?.etag ?? null;
  return etag === request.expectedEtag ? undefined : preconditionFailed(request, etag);
}

function resetRefusal(
  object: StoredObject | undefined,
  request: CommitRequest,
  seen: Fence,
): HoldfastError | undefined {
  const etag = object?.etag ?? null;
  const fence = object?.serviceMetadata?.fence ?? null;
  if (etag !== request.expectedEtag) return preconditionFailed(request, etag);
  if (fence?.key !== seen.key || fence.token !== seen.token) return otherFence(request, fence);
  // The same bytes have only a few ETags. A second reset could restore an ETag that a delayed commit still expects.
  return object?.serviceMetadata?.isReset ? fenceAlreadyReset(request) : undefined;
}

/**
 * An object that was written under a fence can only be replaced under the same key, with the same or a higher token.
 */
function mayWrite(given: Fence | undefined, stored: Fence): boolean {
  return given !== undefined && given.key === stored.key && given.token >= stored.token;
}
