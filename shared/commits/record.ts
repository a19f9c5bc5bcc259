import type { Item } from '../aws/dynamodb.ts';

/**
 * A record of the commit table, the format of `dynamo:` in the Rust crate object_store 0.9 to 0.12: `path`, `etag`
 * (`*` for a create, else the expected ETag with its quotes), `generation`, `timeout` (milliseconds) and `ttl` (epoch
 * seconds). Those clients fail on any attribute that is neither a string nor an unsigned integer, so ours are just
 * `commit_id` and `written_at` (epoch milliseconds).
 */
export interface CommitRecord {
  generation: number;
  /** Undefined where a foreign record does not say. */
  timeoutMs: number | undefined;
  /** Present on the records of this service, and on no other. */
  commitId: string | undefined;
  writtenAt: number | undefined;
  /** `generation`, `timeout` and `ttl` as they are, to recognise this very record by. */
  identity: Item;
}

export const text = (value: string) => ({ S: value });
export const integer = (value: number) => ({ N: String(value) });

/** The range key of a commit's record. */
export const recordEtag = (expectedEtag: string | null) => expectedEtag ?? '*';

export interface NewRecord {
  path: string;
  expectedEtag: string | null;
  generation: number;
  timeoutMs: number;
  ttlSeconds: number;
  commitId: string;
  writtenAt: number;
}

export function recordItem(record: NewRecord): Item {
  return {
    path: text(record.path),
    etag: text(recordEtag(record.expectedEtag)),
    generation: integer(record.generation),
    timeout: integer(record.timeoutMs),
    ttl: integer(Math.ceil(record.writtenAt / 1000) + record.ttlSeconds),
    commit_id: text(record.commitId),
    written_at: integer(record.writtenAt),
  };
}

export function parseRecord(item: Item): CommitRecord {
  const { generation, timeout, ttl } = item;
  return {
    generation: Number(generation?.N ?? 0),
    timeoutMs: timeout?.N === undefined ? undefined : Number(timeout.N),
    commitId: item.commit_id?.S,
    writtenAt: item.written_at?.N === undefined ? undefined : Number(item.written_at.N),
    identity: { ...(generation && { generation }), ...(timeout && { timeout }), ...(ttl && { ttl }) },
  };
}
