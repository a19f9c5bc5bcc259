import { GetItemCommand } from '@aws-sdk/client-dynamodb';
import { integer, text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import type { Item } from '../aws/dynamodb.ts';
import { reading, send } from '../aws/send.ts';
import { HoldfastError } from '../errors.ts';
import { type CommitDependencies, commitTable } from './dependencies.ts';
import type { CommitRequest } from './request.ts';

/**
 * A record of the commit table, the format of `dynamo:` in the Rust crate object_store 0.9 to 0.12: `path`, `etag`
 * (`*` for a create, else the expected ETag with its quotes), `generation`, `timeout` (milliseconds) and `ttl` (epoch
 * seconds). Those clients fail on any attribute that is neither a string nor an unsigned integer, so ours are just
 * `commit_id` and `written_at` (epoch milliseconds). `commit_id` is the commit's id, followed by the ids that it
 * displaced, each after a blank: no id has one.
 */
export interface CommitRecord {
  generation: number;
  /** Undefined if a foreign record does not say. */
  timeoutMs: number | undefined;
  /** Whether this service wrote it: no other client's record has a `commit_id`. */
  ours: boolean;
  commitId: string | undefined;
  /** The commits whose records it and those before it displaced, latest first. Each may have landed all the same. */
  displaced: string[];
  /** Whether there were more of them than a record holds, or a foreign record may hide some. */
  displacedMore: boolean;
  writtenAt: number | undefined;
  /** `generation`, `timeout` and `ttl` as they are, to recognise this very record by. */
  identity: Item;
  /** `generation` and `commit_id` as they are: one of ours, whatever its timeout was set to since. */
  ownIdentity: Item;
}

/** The object and its precondition, by which the table finds a record. */
export type CommitKey = Pick<CommitRequest, 'path' | 'expectedEtag'>;

/** The range key of a commit's record. */
export const recordEtag = (expectedEtag: string | null) => expectedEtag ?? '*';

export const recordKey = ({ path, expectedEtag }: CommitKey): Item => ({
  path: text(path),
  etag: text(recordEtag(expectedEtag)),
});

export interface NewRecord {
  path: string;
  expectedEtag: string | null;
  generation: number;
  timeoutMs: number;
  ttlSeconds: number;
  commitId: string;
  /** The record that it displaces. Undefined if there was none. */
  before: CommitRecord | undefined;
  writtenAt: number;
}

/** A record this long costs one write unit more at most. Contended paths rarely see as many before one of them lands. */
const MAX_DISPLACED = 16;

/** Stands for the ids that are not kept. No id is empty. */
const MORE = '';

export function recordItem(record: NewRecord): Item {
  return {
    ...recordKey(record),
    generation: integer(record.generation),
    timeout: integer(record.timeoutMs),
    ttl: integer(Math.ceil(record.writtenAt / 1000) + record.ttlSeconds),
    commit_id: text(commitIdText(record)),
    written_at: integer(record.writtenAt),
  };
}

function commitIdText({ commitId, before }: NewRecord): string {
  const others = new Set(before?.commitId === undefined ? before?.displaced : [before.commitId, ...before.displaced]);
  others.delete(commitId);
  const kept = [...others].slice(0, MAX_DISPLACED);
  return [commitId, ...kept, ...(before?.displacedMore || others.size > kept.length ? [MORE] : [])].join(' ');
}

/** The id of a record's commit, and after it those that it displaced. Empty if another client wrote the record. */
export const idsOf = (commitId: Item[string] | undefined): string[] => commitId?.S?.split(' ') ?? [];

/** @throws HoldfastError Unavailable if a number is none that a writer of commits counts with */
export function parseRecord(item: Item): CommitRecord {
  const { generation, timeout, ttl, commit_id: ids } = item;
  const [commitId, ...displaced] = idsOf(ids);
  const number = countIn(item, 'generation') ?? 0;
  return {
    generation: number,
    timeoutMs: countIn(item, 'timeout'),
    ours: ids !== undefined,
    commitId,
    displaced: displaced.filter((id) => id !== MORE),
    // Another client's record above generation 0 has replaced one that may have been ours.
    displacedMore: displaced.includes(MORE) || (commitId === undefined && number > 0),
    writtenAt: item.written_at?.N === undefined ? undefined : Number(item.written_at.N),
    identity: { ...(generation && { generation }), ...(timeout && { timeout }), ...(ttl && { ttl }) },
    ownIdentity: { ...(generation && { generation }), ...(ids && { commit_id: ids }) },
  };
}

/** Below the largest safe integer, so that the next number is a different one. */
function countIn(item: Item, attribute: 'generation' | 'timeout'): number | undefined {
  const { N: digits } = item[attribute] ?? {};
  if (digits === undefined) return undefined;
  const value = Number(digits);
  if (Number.isSafeInteger(value) && value >= 0 && value < Number.MAX_SAFE_INTEGER) return value;
  const detail = `the commit record of path ${JSON.stringify(item.path?.S)} has a ${attribute} out of range: an operator must correct the record`;
  throw new HoldfastError('Unavailable', detail, { retryAfterMs: 1000 });
}

/** @throws HoldfastError Throttled, Unavailable */
export async function readRecord(
  { dynamodb, table }: CommitDependencies,
  key: CommitKey,
  call: Call,
): Promise<CommitRecord | undefined> {
  const command = new GetItemCommand({ TableName: table, Key: recordKey(key), ConsistentRead: true });
  const { Item: item } = await send(dynamodb, { command, operation: reading(commitTable(table)) }, call);
  return item && parseRecord(item);
}

/** Whether the record shows that a commit with that id had one at this path and precondition. */
export const showsTry = ({ commitId, displaced, displacedMore }: CommitRecord, id: string): boolean =>
  commitId === id || displaced.includes(id) || displacedMore;
