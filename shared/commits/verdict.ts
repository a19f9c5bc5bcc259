import { type HoldfastError, invalidRequest } from '../errors.ts';
import { fenceRejected, otherFence, preconditionFailed, resetBefore } from './answers.ts';
import type { Fence } from './metadata.ts';
import type { StoredObject } from './object.ts';
import type { CommitRequest } from './request.ts';

/**
 * The verdict of an object on a commit. `landed`: the commit is in the object's chain. `open`: its precondition holds.
 * A refusal is conclusive if the object's chain is whole, because the commit would be in it if it had ever landed, and
 * if the commit's id is in the chain with something else (InvalidRequest). See docs/protocols/commits.md, "Steps".
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
  // Equal bytes have few ETags: a second reset could bring back one that a delayed commit still names.
  return object?.serviceMetadata?.isReset ? resetBefore(request) : undefined;
}

/** Once written under a fence, an object takes writes under that fence only, from its holder or a later one. */
function mayWrite(given: Fence | undefined, stored: Fence): boolean {
  return given !== undefined && given.key === stored.key && given.token >= stored.token;
}
