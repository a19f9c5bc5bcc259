import { createHash } from 'node:crypto';
import type { WorldFacts } from '../caller.ts';
import { type Entry, isUnknown, saysNothing, timed } from '../history.ts';
import type { Model, Timed } from '../linearizability.ts';

interface Fence {
  key: string;
  token: number;
}

/** An object as a register with compare-and-swap by ETag, which refuses writes under a lower fence. */
export interface ObjectState {
  etag: string | null;
  fence: Fence | null;
  /** The commits that have landed, in their order. `null` stands for the write of a third-party writer. */
  landed: (string | null)[];
  /** Whether the last write replaced only the fence. */
  isReset: boolean;
}

export interface CommitOperation extends Timed {
  entry: Entry;
  /** The id of the commit, which all calls share that repeat it. */
  commitId: string;
}

export const UNNAMED = 'call ';

/** The commit id: that of the caller, or the one that an answer or an error names. */
export function commitIdOf({ id, input, body }: Entry): string {
  const retryWith = body?.retryWith as { commitId?: string } | undefined;
  return String(input.commitId ?? body?.commitId ?? retryWith?.commitId ?? `${UNNAMED}${id}`);
}

export const etagOf = (body: string): string => `"${createHash('md5').update(body).digest('hex')}"`;

/** The ETag of the same bytes as a copy in one part. */
export const etagInParts = (etag: string): string => {
  const ofPart = Buffer.from(etag.replaceAll('"', ''), 'hex');
  return `"${createHash('md5').update(ofPart).digest('hex')}-1"`;
};

export const commitOperations = (entries: readonly Entry[]): CommitOperation[] =>
  entries
    .filter((entry) => !saysNothing(entry))
    .map((entry) => ({ entry, commitId: commitIdOf(entry), ...timed(entry) }));

/** How many commits of its chain an object remembers. */
const CHAIN = 8;

type Facts = Pick<WorldFacts, 'protocol' | 'foreignCommits' | 'sweeps'>;

export const commitModel = (facts: Facts): Model<ObjectState, CommitOperation> => ({
  initial: { etag: null, fence: null, landed: [], isReset: false },
  step: (state, operation) => {
    const { call } = operation.entry;
    if (call === 'commit') return commit(state, operation, facts);
    if (call === 'resetFence') return resetFence(state, operation, facts);
    if (call === 'readCommit') return read(state, operation.entry);
    if (call === 'rustPut') return rustPut(state, operation.entry);
    throw new Error(`the model of commits knows no ${call}`);
  },
});

function commit(state: ObjectState, { entry, commitId }: CommitOperation, facts: Facts): ObjectState[] {
  const { input, outcome, body = {} } = entry;
  const fence = (input.fence ?? null) as Fence | null;
  const expected = (input.ifMatch ?? null) as string | null;
  const etag = etagOf(String(input.body));
  const hasLanded = state.landed.includes(commitId);
  const mayLand = !hasLanded && state.etag === expected && mayWrite(fence, state.fence);
  const after = mayLand ? [{ etag, fence, landed: [...state.landed, commitId], isReset: false }] : [];
  if (isUnknown(entry)) return after;
  const struck = entry.faults.length > 0;
  switch (outcome) {
    case 'ok':
      if (hasLanded) {
        const isRight = body.etag === null ? state.etag !== etag : body.etag === etag && state.etag === etag;
        return isRight && (body.repeated === true || struck) ? [state] : [];
      }
      // The commit landed here, and others followed before its answer found it.
      return (body.etag === etag || (body.etag === null && struck)) && (body.repeated === false || struck) ? after : [];
    case 'PreconditionFailed':
      return mayRefuse(state, commitId, facts) && state.etag === body.etag && state.etag !== expected ? [state] : [];
    case 'FenceRejected': {
      const isRefused = state.fence && !mayWrite(fence, state.fence) && body.highest === state.fence.token;
      return mayRefuse(state, commitId, facts) && isRefused ? [state] : [];
    }
    case 'CommitInProgress':
      return facts.foreignCommits ? [state] : [];
    default:
      return [];
  }
}

/** A commit without a record, or whose record was cleaned up, is remembered only by the chain of its object. */
function mayRefuse({ landed }: ObjectState, commitId: string, { protocol, sweeps }: Facts): boolean {
  if (!landed.includes(commitId)) return true;
  const later = landed.slice(landed.indexOf(commitId) + 1);
  return (protocol === 'native' || sweeps) && (later.length >= CHAIN || later.includes(null));
}

/** Replaces the fence of the object and keeps its bytes. It lands only over the fence that the administrator saw, and once. */
function resetFence(state: ObjectState, { entry, commitId }: CommitOperation, facts: Facts): ObjectState[] {
  const { input, outcome, body = {}, faults } = entry;
  const {
    ifMatch,
    expectedFence: seen,
    fence,
  } = input as { ifMatch: string; expectedFence: Fence; fence: Fence | null };
  const hasLanded = state.landed.includes(commitId);
  const isOpen = state.etag === ifMatch && isSameFence(state.fence, seen) && !state.isReset;
  const etag = etagInParts(ifMatch);
  const landed = [...state.landed, commitId];
  const after = isOpen && !hasLanded ? [{ etag, fence, landed, isReset: true }] : [];
  if (isUnknown(entry)) return after;
  const struck = faults.length > 0;
  const isLatest = state.landed.at(-1) === commitId;
  switch (outcome) {
    case 'ok':
      if (hasLanded)
        return (body.repeated === true || struck) && body.etag === (isLatest ? state.etag : null) ? [state] : [];
      return (body.etag === etag || (body.etag === null && struck)) && (body.repeated === false || struck) ? after : [];
    case 'PreconditionFailed': {
      const isRight =
        body.etag === state.etag && (!('fence' in body) || isSameFence(body.fence as Fence | null, state.fence));
      return isRight && !isOpen && mayRefuse(state, commitId, facts) ? [state] : [];
    }
    default:
      return [];
  }
}

const isSameFence = (a: Fence | null, b: Fence | null): boolean => a?.key === b?.key && a?.token === b?.token;

function mayWrite(given: Fence | null, stored: Fence | null): boolean {
  return stored === null || (given !== null && given.key === stored.key && given.token >= stored.token);
}

function read(state: ObjectState, { body = {} }: Entry): ObjectState[] {
  const fence = (body.fence ?? null) as Fence | null;
  const isSame =
    body.etag === state.etag && isLast(state, body.commitId as string | null) && isSameFence(fence, state.fence);
  return isSame ? [state] : [];
}

/** The service makes an id for a call without one. If that call has no answer, its caller does not know the id. */
function isLast({ landed }: ObjectState, commitId: string | null): boolean {
  const last = landed.at(-1) ?? null;
  return last === commitId || (last?.startsWith(UNNAMED) === true && commitId !== null);
}

/** A writer of the Rust crate. Its PUT is unconditional, and the records in DynamoDB make it a compare-and-swap. */
function rustPut(state: ObjectState, entry: Entry): ObjectState[] {
  const { input, body = {} } = entry;
  const expected = (input.ifMatch ?? null) as string | null;
  const after = { etag: etagOf(String(input.body)), fence: null, landed: [...state.landed, null], isReset: false };
  if (isUnknown(entry) || body.etag !== undefined) return state.etag === expected ? [after] : [];
  if (body.error === 'Generic') return [state];
  return state.etag === expected ? [] : [state];
}
