import { type HoldfastError, invalidRequest } from '../errors.ts';
import { fenceRejected, preconditionFailed } from './answers.ts';
import type { Fence } from './metadata.ts';
import type { StoredObject } from './object.ts';
import type { CommitRequest } from './request.ts';

/**
 * What an object says about a commit. `landed`: the commit is in the object's chain. `open`: its precondition holds.
 * A refusal is conclusive where the object's chain is whole, for then the commit would be in it if it had ever landed,
 * and where the commit's id is in it with something else (InvalidRequest).
 */
export type Verdict =
  | { state: 'landed'; object: StoredObject; latest: boolean }
  | { state: 'open' }
  | { state: 'refused'; error: HoldfastError; conclusive: boolean };

export function judge(object: StoredObject | undefined, request: CommitRequest): Verdict {
  const { commitId, fingerprint } = request.entry;
  const commits = object?.marks?.commits ?? [];
  const earlier = commits.find((entry) => entry.commitId === commitId);
  if (object && earlier) {
    if (earlier.fingerprint === fingerprint)
      return { state: 'landed', object, latest: commits.at(-1)?.commitId === commitId };
    const message = 'was used for another commit: another precondition, other content, or another caller';
    return { state: 'refused', error: invalidRequest([{ path: 'commitId', message }]), conclusive: true };
  }
  const conclusive = object?.marks?.complete ?? false;
  const fence = object?.marks?.fence;
  if (fence && !mayWrite(request.fence, fence))
    return { state: 'refused', error: fenceRejected(request, fence), conclusive };
  const etag = object?.etag ?? null;
  if (etag !== request.expectedEtag) return { state: 'refused', error: preconditionFailed(request, etag), conclusive };
  return { state: 'open' };
}

/** Once written under a fence, an object takes writes under that fence only, from its holder or a later one. */
function mayWrite(given: Fence | undefined, stored: Fence): boolean {
  return given !== undefined && given.key === stored.key && given.token >= stored.token;
}
