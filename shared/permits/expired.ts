import { UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { integer, text } from '../aws/attributes.ts';
import { aliased, all, type Condition, conditionFields, not } from '../aws/condition.ts';
import { conditionalWrite, type Item } from '../aws/dynamodb.ts';
import { writing } from '../aws/send.ts';
import { agedBy, type ExpiredRow, expiredBy, holderNamed, type Identity, identityOf } from '../expired/rows.ts';
import type { ExpirySource } from '../expired/source.ts';
import { byNamespace, scan, whySpared } from '../expired/table.ts';
import { readTtl, reasonWithTtl } from '../expired/ttl.ts';
import { NAMELESS } from '../line/calls.ts';
import { attributesOf, isUnmarked } from './conditions.ts';
import { type PoolEntry, parsePool } from './record.ts';
import { isStillPool } from './write.ts';

/** A pool of which nothing is in use has no holders. */
const hasHolders: Condition = all(isStillPool, not(aliased('#used = :zero', { ':zero': integer(0) })));

/** Permits that expired and whose places no caller has needed. They are entries of the records of pools, several in one record. */
export const PERMITS: ExpirySource<'abandonedPermit'> = {
  place: ({ leasesTable }) => leasesTable,
  kinds: ['abandonedPermit'],
  segmented: true,
  page: async (reader, start, call) => {
    const { clock, margins, places } = reader;
    const now = clock.now();
    const { items, ...page } = await scan(reader, { ...start, table: places.leasesTable, filter: hasHolders }, call);
    // From then on other callers may take its place.
    const isAbandoned = ({ expiresAt }: PoolEntry) => expiresAt < now - margins.clockSkewMs;
    const pools = items.map((item) => ({ item, pool: parsePool(item.key?.S ?? '', item) }));
    return {
      ...page,
      rows: pools.flatMap(({ item, pool: { key, entries } }) =>
        entries.filter(isAbandoned).map((entry) => rowOf(item, { key, entry }, now)),
      ),
      held: byNamespace(
        pools.flatMap(({ pool: { key, entries } }) => entries.filter((entry) => !isAbandoned(entry)).map(() => key)),
      ),
    };
  },
  // The record stays, and its fence with it. While the mark is there, the line decides whose place it needs.
  remove: async ({ dynamodb, places: { leasesTable: table } }, { key: { key = '' }, identity }, call) => {
    const name = identity?.name;
    if (!identity || !name || !('S' in name)) return 'unrecognisable';
    const command = new UpdateItemCommand({
      TableName: table,
      Key: { key: text(key) },
      UpdateExpression: 'SET #used = #used - #h.w REMOVE #h, #f',
      ...conditionFields(all(isStillPool, isReported(identity), isUnmarked), {
        names: { ...attributesOf(name.S), '#used': 'used' },
      }),
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
    });
    const outcome = await conditionalWrite(dynamodb, { command, operation: writing(`table ${table}`) }, call);
    if (outcome.won) return undefined;
    return whySpared({ isThere: outcome.old?.[`h${name.S}`] !== undefined, unanswered: outcome.unanswered });
  },
};

function rowOf(
  item: Item,
  { key, entry: { name, holder: named, expiresAt, endedExecution } }: { key: string; entry: PoolEntry },
  now: number,
): ExpiredRow<'abandonedPermit'> {
  const holder = holderNamed(named);
  const what = `${expiredBy(holder ?? NAMELESS, endedExecution !== undefined)}, and nobody needed its place`;
  return {
    kind: 'abandonedPermit',
    key: { key, fence: item[`f${name}`]?.N ?? '' },
    holder,
    ...agedBy(expiresAt, now),
    ...reasonWithTtl(what, readTtl(item.lease_expiry, now).fault),
    identity: identityOfEntry(item, name),
  };
}

/**
 * The clean-up recognises an entry by these: each heartbeat and each grant changes one of them. Its version alone would do, but belongs to the
 * holder. Null if a write could not subtract its weight, because another client has written `used` with another type.
 */
function identityOfEntry(item: Item, name: string): Identity | null {
  const { e, b, w } = item[`h${name}`]?.M ?? {};
  if (item.used?.N === undefined || !e || !b || !w) return null;
  const parts = { fence: item[`f${name}`], expires_at: e, heartbeat_at: b, weight: w } as Item;
  return identityOf({ name: text(name), ...parts }, ['name', ...Object.keys(parts)]);
}

function isReported({ fence, expires_at, heartbeat_at, weight }: Identity): Condition {
  const seen = { ':fence': fence, ':e': expires_at, ':b': heartbeat_at, ':w': weight } as Item;
  return {
    expression: '#f = :fence AND #h.e = :e AND #h.b = :b AND #h.w = :w AND attribute_type(#used, :number)',
    values: { ...seen, ':number': text('N') },
  };
}
