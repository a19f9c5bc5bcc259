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
  /** How long the writer may still send its write. Null if another client writes. */
  remainingMs: number | null;
}

export interface InFlightPage {
  /**
   * The protocol of this deployment. Under `native`, a writer that relies on a record of another client may overwrite
   * commits of this deployment.
   */
  protocol: Protocol;
  commits: PathInFlight[];
  /** Null on the last page. An empty page can have a cursor. */
  nextCursor: string | null;
}

const HEADS_AT_ONCE = 16;

/** The longest key of S3. A record of another client with a longer path cannot belong to an object. */
const MAX_PATH_BYTES = 1024;

/**
 * Lists the commits that are under way, with a scan of the commit records. A record stays after its commit has landed,
 * so the call also reads the object at each path whose record is young enough: the commit is under way only if the
 * object is still the one that it replaces. Under the native protocol the service does not write records, so the list
 * shows only commits of other clients.
 * @throws HoldfastError InvalidRequest (cursor), Throttled, Unavailable
 */
export function listInFlight(dependencies: CommitDependencies) {
  return async (query: InFlightInput, call: Call): Promise<InFlightPage> => {
    const { protocol } = dependencies;
    const { candidates, last } = await scanCommits(dependencies, query, call);
    const limit = query.limit ?? DEFAULT_LIMIT;
    const page = new Page<PathInFlight>((one) => ({ ...one, commitId: null }));
    for (let from = 0; from < candidates.length; from += HEADS_AT_ONCE) {
      const batch = candidates.slice(from, from + HEADS_AT_ONCE);
      const areInFlight = await Promise.all(batch.map((one) => isUnreplaced(dependencies, one, call)));
      for (const [index, one] of batch.entries()) {
        if (!areInFlight[index]) continue;
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
  return { candidates: items.flatMap((item) => inFlightRow(item, now)), last: last && commitPositionOf(last) };
}

/**
 * The item is a commit record that its writer has not marked as failed. Observations of other clients' records do not
 * count.
 */
export const mayBeInFlight = all(
  any(
    aliased('#etag = :create', { ':create': text('*') }),
    aliased('begins_with(#etag, :quote)', { ':quote': text('"') }),
  ),
  any(aliased('attribute_not_exists(#timeout)'), aliased('#timeout > :none', { ':none': { N: '0' } })),
);

const startsWith = (prefix: string): Condition => aliased('begins_with(#path, :prefix)', { ':prefix': text(prefix) });

function inFlightRow(item: Item, now: number): PathInFlight[] {
  const found = inFlight(parsedIfReadable(item), now);
  const position = commitPositionOf(item);
  if (!found || Buffer.byteLength(position.path) > MAX_PATH_BYTES) return [];
  const endsAt = found.writtenAt === null ? null : Date.parse(found.writtenAt) + (found.timeoutMs ?? 0);
  return [{ ...position, ...found, remainingMs: endsAt === null ? null : Math.max(0, endsAt - now) }];
}

/** @returns undefined for a record with numbers out of range, which must not hide all other records */
function parsedIfReadable(item: Item) {
  try {
    return parseRecord(item);
  } catch (error) {
    if (error instanceof HoldfastError) return undefined;
    throw error;
  }
}

async function isUnreplaced(
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

/** Separates path and ETag in a cursor. An ETag cannot contain it. A path can, so the last one counts. */
const SEPARATOR = '\0';

/** The most bytes of a hash key and a range key of DynamoDB together. */
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
