import { UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { integer, number, text } from '../aws/attributes.ts';
import { aliased, all, any, type Condition, conditionFields, not } from '../aws/condition.ts';
import { conditionalWrite, type Item } from '../aws/dynamodb.ts';
import { writing } from '../aws/send.ts';
import { agedBy, type ExpiredRow, expiredBy, holderNamed, type Identity, identityOf } from '../expired/rows.ts';
import type { BoundHolding, ExpirySource, Found, Margins } from '../expired/source.ts';
import { whySpared } from '../expired/table.ts';
import { readTtl, reasonWithTtl } from '../expired/ttl.ts';
import { NAMELESS } from '../line/calls.ts';
import { attributesOf, hasUsed, isUnmarked } from './conditions.ts';
import { isBound, isUnnotified, type PoolEntry, parsePool } from './record.ts';
import { lastWriteOf, ttlAfter } from './write.ts';

export const POOL_KINDS = ['abandonedPermit', 'emptyPool'] as const;
type PoolKind = (typeof POOL_KINDS)[number];

/** The clean-up recognises an empty pool by these. Each end moves `lease_expiry`. */
const POOL_IDENTITY = ['used', 'fence', 'mark', 'lease_expiry'] as const;

const isEmpty: Condition = aliased('#used = :zero', { ':zero': integer(0) });

/** Pools with holders, and empty ones past their retention. */
export const expiredPools = (now: number, { fenceRetentionSeconds }: Margins): Condition =>
  all(
    hasUsed,
    any(
      not(isEmpty),
      all(isUnmarked, aliased('#lease_expiry < :unused', { ':unused': ttlAfter(now - fenceRetentionSeconds * 1000) })),
    ),
  );

/**
 * Permits are entries of the record of a pool, several in one record.
 * @param item a record that `expiredPools` let through
 */
export function findPermits(item: Item, now: number, margins: Margins): Found<PoolKind> {
  const { key, entries } = parsePool(item.key?.S ?? '', item);
  // Only another client writes entries that are not in use.
  if (number(item, 'used') === 0) return { rows: entries.length === 0 ? [emptyPool(item, now, margins)] : [], held: 0 };
  // From then on other callers may take its place.
  const abandoned = entries.filter(({ expiresAt }) => expiresAt < now - margins.clockSkewMs);
  return {
    rows: abandoned.map((entry) => rowOf(item, { key, entry }, now)),
    held: entries.length - abandoned.length,
  };
}

/**
 * The permits that last as long as their execution. One that its caller has yet to claim ends by the grant window.
 * @param item a record that `expiredPools` let through
 */
export function boundPermits(item: Item, now: number, { clockSkewMs }: Margins): BoundHolding[] {
  const { key, entries } = parsePool(item.key?.S ?? '', item);
  return entries
    .filter(isBound)
    .filter(({ claimTtlMs, expiresAt }) => claimTtlMs === undefined && expiresAt >= now - clockSkewMs)
    .map((entry) => ({
      key: { key, fence: String(entry.fence) },
      holder: holderNamed(entry.holder),
      execution: entry.execution,
      grant: entry,
      isUnnotified: isUnnotified(entry),
      identity: { name: text(entry.name), fence: integer(entry.fence) },
    }));
}

function emptyPool(item: Item, now: number, { fenceRetentionSeconds }: Margins): ExpiredRow<PoolKind> {
  const { atMs, fault } = readTtl(item.lease_expiry, now);
  return {
    kind: 'emptyPool',
    key: { key: item.key?.S ?? '' },
    holder: null,
    ...agedBy(atMs && lastWriteOf(atMs) + fenceRetentionSeconds * 1000, now),
    ...reasonWithTtl('no caller has a permit of the pool, and it is past its retention', fault),
    identity: identityOf(item, POOL_IDENTITY),
  };
}

/** Ends an abandoned permit. The record stays, and its fence with it. While the mark is there, the line decides whose place it needs. */
export const endAbandoned: ExpirySource<'abandonedPermit'>['remove'] = async (
  { dynamodb, places: { leasesTable: table } },
  { key: { key = '' }, identity },
  call,
) => {
  const name = identity?.name;
  if (!identity || !name || !('S' in name)) return 'unrecognisable';
  const command = new UpdateItemCommand({
    TableName: table,
    Key: { key: text(key) },
    UpdateExpression: 'SET #used = #used - #h.w REMOVE #h, #f',
    ...conditionFields(all(isReported(identity), isUnmarked), {
      names: { ...attributesOf(name.S), '#used': 'used' },
    }),
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  });
  const outcome = await conditionalWrite(dynamodb, { command, operation: writing(`table ${table}`) }, call);
  if (outcome.won) return undefined;
  return whySpared({ isThere: outcome.old?.[`h${name.S}`] !== undefined, unanswered: outcome.unanswered });
};

function rowOf(
  item: Item,
  { key, entry: { name, holder: named, expiresAt, endedExecution } }: { key: string; entry: PoolEntry },
  now: number,
): ExpiredRow<'abandonedPermit'> {
  const holder = holderNamed(named);
  const what = `${expiredBy(holder ?? NAMELESS, endedExecution !== undefined)}, and no other caller needed its room`;
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
