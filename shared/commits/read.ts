import type { Call } from '../aws/call.ts';
import type { CommitDependencies } from './dependencies.ts';
import type { ReadInput } from './inputs.ts';
import type { Fence } from './metadata.ts';
import { readObject } from './object.ts';
import { type CommitRecord, readRecord } from './record.ts';

export interface CommitView {
  path: string;
  /** Null if nothing is there, like all that follows about the object. */
  etag: string | null;
  versionId: string | null;
  size: number | null;
  contentType: string | null;
  /** The metadata that callers put on the object. */
  metadata: Record<string, string> | null;
  /** Null if another client wrote the object. */
  commitId: string | null;
  /** The fence that a commit must carry to replace the object. */
  fence: Fence | null;
  /** A commit to this state of the path that has begun and has not replaced it. Its writer may have died. */
  inFlight: InFlight | null;
}

export interface InFlight {
  generation: number;
  timeoutMs: number | null;
  /** Null if another client writes, like the next one. */
  commitId: string | null;
  writtenAt: string | null;
}

/** Reads the state of a path, strongly consistent: one HEAD and, with records, one read. @throws HoldfastError Throttled, Unavailable */
export function reader(dependencies: CommitDependencies) {
  return async ({ path }: ReadInput, call: Call): Promise<CommitView> => {
    const object = await readObject(dependencies, path, call);
    const key = { path, expectedEtag: object?.etag ?? null };
    const record = dependencies.protocol === 'dynamo' ? await readRecord(dependencies, key, call) : undefined;
    return {
      path,
      etag: object?.etag ?? null,
      versionId: object?.versionId ?? null,
      size: object?.size ?? null,
      contentType: object?.headers.ContentType ?? null,
      metadata: object?.metadata ?? null,
      commitId: object?.serviceMetadata?.commits.at(-1)?.commitId ?? null,
      fence: object?.serviceMetadata?.fence ?? null,
      inFlight: inFlight(record, dependencies.clock.now()),
    };
  };
}

/** The commit that may be under way according to a record, if the object is still the one that it replaces. */
export function inFlight(record: CommitRecord | undefined, now: number): InFlight | null {
  // Its writer has failed, and has marked it so.
  if (!record || record.timeoutMs === 0) return null;
  const { generation, timeoutMs, commitId, writtenAt } = record;
  // It sends no request any more. The records of other clients do not say when they began.
  if (writtenAt !== undefined && timeoutMs !== undefined && now > writtenAt + timeoutMs) return null;
  return {
    generation,
    timeoutMs: timeoutMs ?? null,
    commitId: commitId ?? null,
    writtenAt: writtenAt === undefined ? null : new Date(writtenAt).toISOString(),
  };
}
