import type { Call } from '../aws/call.ts';
import type { CommitDependencies } from './dependencies.ts';
import type { ReadPathInput } from './inputs.ts';
import type { Fence } from './metadata.ts';
import { readObject } from './object.ts';
import { type CommitRecord, readRecord } from './record.ts';

/** The state of a path. If there is no object, the fields about the object are null. */
export interface CommitView {
  path: string;
  etag: string | null;
  versionId: string | null;
  size: number | null;
  contentType: string | null;
  metadata: Record<string, string> | null;
  /** The commit that wrote the object. Null if another client wrote it. */
  commitId: string | null;
  /** The fence that a commit needs to replace the object. */
  fence: Fence | null;
  /** A commit that has begun and has not replaced the object. Its writer may have died. */
  inFlight: InFlight | null;
}

/** A commit that has begun. If another client writes, `commitId` and `writtenAt` are null. */
export interface InFlight {
  generation: number;
  timeoutMs: number | null;
  commitId: string | null;
  writtenAt: string | null;
}

/**
 * Reads the state of a path, strongly consistent: the object and, under `dynamo`, the record.
 * @throws HoldfastError Throttled, Unavailable
 */
export function readPath(dependencies: CommitDependencies) {
  return async ({ path }: ReadPathInput, call: Call): Promise<CommitView> => {
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

/**
 * The commit of a record, if its writer may still write. The caller checks that the object is still the one that the
 * commit replaces.
 */
export function inFlight(record: CommitRecord | undefined, now: number): InFlight | null {
  // A timeout of 0 says that the writer has failed.
  if (!record || record.timeoutMs === 0) return null;
  const { generation, timeoutMs, commitId, writtenAt } = record;
  // After its timeout a writer does not send requests. The records of other clients do not say when they were written.
  if (writtenAt !== undefined && timeoutMs !== undefined && now > writtenAt + timeoutMs) return null;
  return {
    generation,
    timeoutMs: timeoutMs ?? null,
    commitId: commitId ?? null,
    writtenAt: writtenAt === undefined ? null : new Date(writtenAt).toISOString(),
  };
}
