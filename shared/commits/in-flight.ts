import { ScanCommand } from '@aws-sdk/client-dynamodb';
import { text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { aliased, all, any, type Condition, conditionFields } from '../aws/condition.ts';
import type { Item } from '../aws/dynamodb.ts';
import { reading, send } from '../aws/send.ts';
import { HoldfastError, unknownCursor } from '../errors.ts';
import { DEFAULT_LIMIT } from '../fields.ts';
import { decodeCursor, encodeCursor } from '../listings/cursor.ts';
import { Page, ROWS_READ_PER_PAGE } from '../listings/pages.ts';
import { type CommitDependencies, commitTable, type Protocol } from './dependencies.ts';
import type { InFlightInput } from './inputs.ts';
import { readObject } from './object.ts';
import { type InFlight, inFlight } from './read.ts';
import { parseRecord } from './record.ts';

/** A commit that has begun and has not replaced what it found at its path. Its writer may have died. */
export interface PathInFlight extends InFlight {
  path: string;
  /** What the commit replaces; null if it creates the object. */
  expectedEtag: string | null;
  /** The rest of its writer's time. Null if another client writes. */
  remainingMs: number | null;
}

export interface InFlightPage {
  /** How this deployment commits. Under `native`, a writer that goes by a record of another client may overwrite its commits. */
  protocol: Protocol;
  commits: PathInFlight[];
  /** Null on the last page. A page may be empty and still have one. */
  nextCursor: string | null;
}

const HEADS_AT_ONCE = 16;

/** S3 has no longer keys, so such a record of another client is about no object. */
const MAX_PATH_BYTES = 1024;

/**
 * The commits that are under way, by a scan of the commit records. A record says that a commit began, and stays after the
 * commit has landed. Hence a HEAD of each path whose record is young enough: the commit is under way only while the object
 * is still the one that it replaces. Under the native protocol the service writes no records, and lists those of other clients.
 * @throws HoldfastError InvalidRequest (cursor), Throttled, Unavailable
 */
export function inFlightReader(dependencies: CommitDependencies) {
  return async (query: InFlightInput, call: Call): Promise<InFlightPage> => {
    const { protocol } = dependencies;
    const { candidates, last } = await scanCommits(dependencies, query, call);
    const limit = query.limit ?? DEFAULT_LIMIT;
    const page = new Page<PathInFlight>((one) => ({ ...one, commitId: null }));
    for (let at = 0; at < candidates.length; at += HEADS_AT_ONCE) {
      const some = candidates.slice(at, at + HEADS_AT_ONCE);
      const standing = await Promise.all(some.map((one) => isStanding(dependencies, one, call)));
      for (const [index, one] of some.entries()) {
        if (!standing[index]) continue;
        if (page.rows.length < limit && page.add(one)) continue;
        return { protocol, commits: page.rows, nextCursor: commitCursor(page.rows.at(-1)) };
      }
    }
    return { protocol, commits: page.rows, nextCursor: commitCursor(last) };
  };
}

interface CommitPosition {
  path: string;
  expectedEtag: string | null;
}

async function scanCommits(
  { dynamodb, clock, table }: CommitDependencies,
  { prefix, cursor }: InFlightInput,
  call: Call,
): Promise<{ candidates: PathInFlight[]; last: CommitPosition | undefined }> {
  const { ConditionExpression: FilterExpression, ...fields } = conditionFields(
    prefix === undefined ? mayBeInFlight : all(mayBeInFlight, startsWith(prefix)),
  );
  const command = new ScanCommand({
    TableName: table,
    Limit: ROWS_READ_PER_PAGE,
    FilterExpression,
    ...fields,
    ...(cursor !== undefined && { ExclusiveStartKey: cursorKey(cursor) }),
  });
  const { Items: items = [], LastEvaluatedKey: last } = await send(
    dynamodb,
    { command, operation: reading(commitTable(table)) },
    call,
  );
  const now = clock.now();
  return { candidates: items.flatMap((item) => candidate(item, now)), last: last && commitPositionOf(last) };
}

/** Whether an item is the record of a commit that its writer has not marked as failed. Notes on other clients' records are not. */
export const mayBeInFlight = all(
  any(
    aliased('#etag = :create', { ':create': text('*') }),
    aliased('begins_with(#etag, :quote)', { ':quote': text('"') }),
  ),
  any(aliased('attribute_not_exists(#timeout)'), aliased('#timeout > :none', { ':none': { N: '0' } })),
);

const startsWith = (prefix: string): Condition => aliased('begins_with(#path, :prefix)', { ':prefix': text(prefix) });

function candidate(item: Item, now: number): PathInFlight[] {
  const found = inFlight(readable(item), now);
  const position = commitPositionOf(item);
  if (!found || Buffer.byteLength(position.path) > MAX_PATH_BYTES) return [];
  const endsAt = found.writtenAt === null ? null : Date.parse(found.writtenAt) + (found.timeoutMs ?? 0);
  return [{ ...position, ...found, remainingMs: endsAt === null ? null : Math.max(0, endsAt - now) }];
}

/** One record with unusable numbers must not hide all others. */
function readable(item: Item) {
  try {
    return parseRecord(item);
  } catch (error) {
    if (error instanceof HoldfastError) return undefined;
    throw error;
  }
}

async function isStanding(
  dependencies: CommitDependencies,
  { path, expectedEtag }: CommitPosition,
  call: Call,
): Promise<boolean> {
  const object = await readObject(dependencies, path, call);
  return (object?.etag ?? null) === expectedEtag;
}

const commitPositionOf = ({ path, etag }: Item): CommitPosition => ({
  path: path?.S ?? '',
  expectedEtag: etag?.S === '*' ? null : (etag?.S ?? ''),
});

/** In no ETag, and last in the cursor, so that a path may hold it. */
const SEPARATOR = '\0';

/** A hash key and a range key. */
const MAX_ROW_KEY_BYTES = 3072;

const commitCursor = (position: CommitPosition | undefined): string | null =>
  position ? encodeCursor(position.path + SEPARATOR + (position.expectedEtag ?? '*')) : null;

function cursorKey(cursor: string): Item {
  const key = decodeCursor(cursor, MAX_ROW_KEY_BYTES);
  const at = key.lastIndexOf(SEPARATOR);
  const [path, etag] = [key.slice(0, Math.max(at, 0)), key.slice(at + 1)];
  if (path && etag) return { path: text(path), etag: text(etag) };
  throw unknownCursor();
}
