import { GetItemCommand } from '@aws-sdk/client-dynamodb';
import { integer, text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import type { Item } from '../aws/dynamodb.ts';
import { reading, send } from '../aws/send.ts';
import { HoldfastError } from '../errors.ts';
import { type CommitDependencies, commitTable } from './dependencies.ts';
import type { CommitRequest } from './request.ts';

/**
 * A record of the commit table. It has the format of `dynamo:` in the Rust crate object_store 0.9 to 0.12: `path`,
 * `etag` (`*` for a create, otherwise the expected ETag with its quotes), `generation`, `timeout` (milliseconds) and
 * `ttl` (epoch seconds). This service adds `commit_id` and `written_at` (epoch milliseconds). It must not add
 * attributes of other types, because those clients fail on all but strings and unsigned integers. `commit_id` is the id
 * of the commit and then, each after a blank, the ids of the commits whose records were displaced. An id does not
 * contain a blank.
 */
export interface CommitRecord {
  generation: number;
  /** Undefined if the record of another client does not have a timeout. */
  timeoutMs: number | undefined;
  /** Whether this service wrote the record: records of other clients do not have a `commit_id`. */
  ours: boolean;
  commitId: string | undefined;
  /**
   * The commits whose records this record and its predecessors displaced, the latest first. Each of them may still have
   * landed.
   */
  displaced: string[];
  /**
   * Whether more records were displaced than these: the list was full, or the record of another client may hide some.
   */
  displacedMore: boolean;
  writtenAt: number | undefined;
  /** The attributes `generation`, `timeout` and `ttl`, which identify exactly this record. */
  identity: Item;
  /**
   * The attributes `generation` and `commit_id`, which identify a record of this service even if its timeout was
   * changed.
   */
  ownIdentity: Item;
}

export type CommitKey = Pick<CommitRequest, 'path' | 'expectedEtag'>;

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
  /** The record that the new record displaces. Undefined if there was none. */
  before: CommitRecord | undefined;
  writtenAt: number;
}

/**
 * How many ids of displaced commits a record keeps. They cost at most one write unit more, and one of the writers has
 * almost always landed before more than 16 have met.
 */
const MAX_DISPLACED = 16;

/** Stands for the ids that are not kept. An id is never empty. */
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

/** The id of a record's commit, and then the ids that were displaced. Empty if another client wrote the record. */
export const idsOf = (commitId: Item[string] | undefined): string[] => commitId?.S?.split(' ') ?? [];

/** @throws HoldfastError Unavailable if a number is out of range */
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
    // If another client wrote a record above generation 0, it has displaced a record that this service may have
    // written.
    displacedMore: displaced.includes(MORE) || (commitId === undefined && number > 0),
    writtenAt: item.written_at?.N === undefined ? undefined : Number(item.written_at.N),
    identity: { ...(generation && { generation }), ...(timeout && { timeout }), ...(ttl && { ttl }) },
    ownIdentity: { ...(generation && { generation }), ...(ids && { commit_id: ids }) },
  };
}

/** A counter of a record. It is below the largest safe integer, so that adding one changes it. */
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

/** Whether the record shows that the commit was tried, or may hide that it was. */
export const showsTry = ({ commitId, displaced, displacedMore }: CommitRecord, id: string): boolean =>
  commitId === id || displaced.includes(id) || displacedMore;
