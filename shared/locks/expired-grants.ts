import { UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { integer, number, text } from '../aws/attributes.ts';
import { aliased, all, any, type Condition, conditionFields, not } from '../aws/condition.ts';
import { conditionalWrite, type Item } from '../aws/dynamodb.ts';
import { writing } from '../aws/send.ts';
import { agedBy, type ExpiredRow, expiredBy, holderNamed, type Identity, identityOf } from '../expiry/sources/rows.ts';
import type { BoundGrantRow, ExpirySource, Found, Margins } from '../expiry/sources/source.ts';
import { whySpared } from '../expiry/sources/table.ts';
import { MIN_EPOCH_MS, readTtl, reasonWithTtl, ttlIsOver, ttlIsUnreadable } from '../expiry/sources/ttl.ts';
import { hasNoCapOnRecord } from './record/capped.ts';
import { entryAt, hasUsedAttribute, isUnmarked } from './record/conditions.ts';
import { NAMELESS } from './record/held-text.ts';
import { EXCLUSIVE_PATH, fencePathOf } from './record/identity.ts';
import { type HolderEntry, isBound, isUnnotified, type KeyRecord, parseKey } from './record/record.ts';
import { lastWriteOf, ttlAfter } from './record/requests.ts';

export const GRANT_KINDS = ['abandonedLease', 'releasedLease', 'abandonedPermit'] as const;
type GrantKind = (typeof GRANT_KINDS)[number];

/**
 * The attributes by which the clean-up recognises a record. Each grant, heartbeat and end changes one of
 * them. The lease id would do too, but is a secret.
 */
const RECORD_IDENTITY = ['used', 'fence', `${EXCLUSIVE_PATH}.e`, `${EXCLUSIVE_PATH}.b`, 'lease_expiry'] as const;

const isEmpty: Condition = { expression: 'used = :zero', values: { ':zero': integer(0) } };

/**
 * The record has shared holders, or an exclusive holder that has expired, is bound, or belongs to a namespace, which
 * counts its held keys.
 */
function hasHolders(now: number, { clockSkewMs }: Margins): Condition {
  const isExclusive = aliased(`attribute_exists(#${EXCLUSIVE_PATH}.i)`);
  const isOfInterest = aliased(
    `#${EXCLUSIVE_PATH}.e < :cut OR attribute_exists(#${EXCLUSIVE_PATH}.z) OR contains(#key, :slash)`,
    {
      ':cut': integer(now - clockSkewMs),
      ':slash': text('/'),
    },
  );
  return all(hasUsedAttribute, not(isEmpty), any(not(isExclusive), isOfInterest));
}

/**
 * The record is empty, and its retention is over. After an exclusive grant the TTL attribute says so; a
 * shared grant has moved that attribute far ahead.
 */
function isPastRetention(now: number, { fenceRetentionSeconds }: Margins): Condition {
  const before = now - fenceRetentionSeconds * 1000;
  const wasExclusive = all({ expression: 'attribute_not_exists(lease_version)' }, ttlIsOver('lease_expiry', now));
  const wasShared: Condition = {
    expression: 'attribute_exists(lease_version) AND lease_expiry < :unused',
    values: { ':unused': ttlAfter(before) },
  };
  const hasNoTtl = all(ttlIsUnreadable('lease_expiry'), {
    expression: 'freed_at < :before',
    values: { ':before': integer(before) },
  });
  return all(isEmpty, isUnmarked, hasNoCapOnRecord, any(wasExclusive, wasShared, hasNoTtl));
}

/**
 * The record has a third-party lease that has expired, or one without a readable end. Such a client stores whole
 * seconds, in the TTL attribute.
 */
function isAbandonedByOthers(now: number, { clockSkewMs }: Margins): Condition {
  const cut = now - clockSkewMs;
  const isOver = aliased('#lease_expiry < :cutSeconds OR #lease_expiry BETWEEN :leastMs AND :cut', {
    ':cut': integer(cut),
    ':cutSeconds': integer(Math.floor(cut / 1000)),
    ':leastMs': integer(MIN_EPOCH_MS),
  });
  // No attribute says when the lease ends, so neither this service nor the Rust crate ever takes it over.
  const isEndless = all(aliased('attribute_exists(#lease_expiry)'), ttlIsUnreadable('lease_expiry'));
  const isTheirs = aliased('attribute_not_exists(#used) AND attribute_type(#lease_version, :string)', {
    ':string': text('S'),
  });
  return all(isTheirs, any(isOver, isEndless));
}

/** The record has something to report or to count. */
export const expiredGrants = (now: number, margins: Margins): Condition =>
  any(hasHolders(now, margins), isPastRetention(now, margins), isAbandonedByOthers(now, margins));

/**
 * Finds the expired grants in a record, and counts the others.
 * @param item a record that `expiredGrants` let through
 */
export function findGrants(item: Item, now: number, margins: Margins): Found<GrantKind> {
  const record = parseKey(item.key?.S ?? '', item);
  const { entries } = record;
  if (record.thirdParty) return { rows: [abandonedByOthers(item, now)], held: 0 };
  // If nothing is in use, only a third-party client can have written the entries.
  if (number(item, 'used') === 0)
    return { rows: entries.length === 0 ? [released(item, { record, now, margins })] : [], held: 0 };
  // A grant is abandoned when another grant may replace it.
  const abandoned = entries.filter(({ expiresAt }) => expiresAt < now - margins.clockSkewMs);
  return {
    rows: abandoned.map((entry) => abandonedRow(item, { key: record.key, entry }, now)),
    held: entries.length - abandoned.length,
  };
}

/**
 * Finds the bound grants in a record. A grant that is not claimed yet is left out, because it ends with the grant
 * window.
 * @param item a record that `expiredGrants` let through
 */
export function boundGrants(item: Item, now: number, { clockSkewMs }: Margins): BoundGrantRow[] {
  const { key, entries } = parseKey(item.key?.S ?? '', item);
  return entries
    .filter(isBound)
    .filter(({ claimTtlMs, expiresAt }) => claimTtlMs === undefined && expiresAt >= now - clockSkewMs)
    .map((entry) => ({
      key: keyOfEntry(key, entry),
      holder: holderNamed(entry.holder),
      execution: entry.execution,
      grant: entry,
      isUnnotified: isUnnotified(entry),
      identity: { name: text(entry.name), fence: integer(entry.fence) },
    }));
}

/** How the report names a grant. An exclusive grant needs only its key. */
const keyOfEntry = (key: string, { path, fence }: HolderEntry): Record<string, string> =>
  path === EXCLUSIVE_PATH ? { key } : { key, fence: String(fence) };

function abandonedByOthers(item: Item, now: number): ExpiredRow<'abandonedLease'> {
  const { atMs, fault } = readTtl(item.lease_expiry, now);
  // The lease lasts until the end of the second on record.
  const expiredAt = atMs !== undefined && fault !== 'milliseconds' ? atMs + 1000 : atMs;
  return {
    kind: 'abandonedLease',
    key: { key: item.key?.S ?? '' },
    holder: null,
    ...agedBy(expiredAt, now),
    ...reasonWithTtl(`${expiredBy(NAMELESS, false)}, and no other caller took it over`, fault),
    identity: identityOf(item, RECORD_IDENTITY),
  };
}

function released(
  item: Item,
  { record, now, margins }: { record: KeyRecord; now: number; margins: Margins },
): ExpiredRow<'releasedLease'> {
  const { key, freedAt, last, isFreeForThirdParties } = record;
  const holder = holderNamed(last?.holder);
  const { atMs, fault } = readTtl(item.lease_expiry, now);
  const lastWrite = isFreeForThirdParties || atMs === undefined ? freedAt : lastWriteOf(atMs);
  const retained = lastWrite && lastWrite + margins.fenceRetentionSeconds * 1000;
  return {
    kind: 'releasedLease',
    key: { key },
    holder,
    ...agedBy(isFreeForThirdParties ? (atMs ?? retained) : retained, now),
    ...reasonWithTtl(`${holder ? `${holder} had it last` : 'no caller holds it'}, and it is past its retention`, fault),
    identity: identityOf(item, RECORD_IDENTITY),
  };
}

function abandonedRow(
  item: Item,
  { key, entry }: { key: string; entry: HolderEntry },
  now: number,
): ExpiredRow<'abandonedLease' | 'abandonedPermit'> {
  const { path, expiresAt, endedExecution } = entry;
  const holder = holderNamed(entry.holder);
  const isExclusive = path === EXCLUSIVE_PATH;
  const whyItStayed = isExclusive ? 'no other caller took it over' : 'no other caller needed its room';
  return {
    kind: isExclusive ? 'abandonedLease' : 'abandonedPermit',
    key: keyOfEntry(key, entry),
    holder,
    ...agedBy(expiresAt, now),
    ...reasonWithTtl(
      `${expiredBy(holder ?? NAMELESS, endedExecution !== undefined)}, and ${whyItStayed}`,
      readTtl(item.lease_expiry, now).fault,
    ),
    identity: isExclusive ? identityOf(item, RECORD_IDENTITY) : identityOfEntry(item, entry),
  };
}

/**
 * Ends an abandoned permit. The record stays, with its fence. A marked record is left alone, because
 * the line ends the grants whose room it needs.
 */
export const endAbandoned: ExpirySource<'abandonedPermit'>['remove'] = async (
  { dynamodb, locations: { leasesTable: table } },
  { key: { key = '' }, identity },
  call,
) => {
  const name = identity?.name;
  if (!identity || !name || !('S' in name)) return 'unrecognisable';
  const path = name.S;
  const command = new UpdateItemCommand({
    TableName: table,
    Key: { key: text(key) },
    UpdateExpression: 'SET used = used - #h.w REMOVE #h, #f',
    ...conditionFields(all(isReported(identity), isUnmarked), {
      names: { ...entryAt(path), '#f': fencePathOf(path) },
    }),
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  });
  const outcome = await conditionalWrite(dynamodb, { command, operation: writing(`table ${table}`) }, call);
  if (outcome.won) return undefined;
  return whySpared({ isThere: outcome.old?.[path] !== undefined, unanswered: outcome.unanswered });
};

/**
 * The parts by which the clean-up recognises an entry. Each heartbeat and each grant changes one of
 * them. The version would do too, but is a secret.
 * @returns null if no write can subtract the weight of the entry, because another client has written `used` with a
 * wrong type
 */
function identityOfEntry(item: Item, { path, fence }: Pick<HolderEntry, 'path' | 'fence'>): Identity | null {
  const { e, b, w } = item[path]?.M ?? {};
  if (item.used?.N === undefined || !e || !b || !w) return null;
  const parts = { fence: integer(fence), expires_at: e, heartbeat_at: b, weight: w } as Item;
  return identityOf({ name: text(path), ...parts }, ['name', ...Object.keys(parts)]);
}

/** The entry is still as the report has named it. */
function isReported({ fence, expires_at, heartbeat_at, weight }: Identity): Condition {
  const reported = { ':fence': fence, ':e': expires_at, ':b': heartbeat_at, ':w': weight } as Item;
  return {
    expression: '#f = :fence AND #h.e = :e AND #h.b = :b AND #h.w = :w AND attribute_type(used, :number)',
    values: { ...reported, ':number': text('N') },
  };
}
