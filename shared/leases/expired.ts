import { integer, number, text } from '../aws/attributes.ts';
import { aliased, all, any, type Condition } from '../aws/condition.ts';
import type { Item } from '../aws/dynamodb.ts';
import { agedBy, type ExpiredRow, expiredBy, holderNamed, identityOf } from '../expired/rows.ts';
import type { BoundHolding, Found, Margins } from '../expired/source.ts';
import { LEAST_MILLISECONDS, readTtl, reasonWithTtl, ttlIsOver, ttlIsUnreadable } from '../expired/ttl.ts';
import { NAMELESS } from '../line/calls.ts';
import { isHeld, isLease } from './conditions.ts';
import { parseRecord } from './record.ts';
import { endsAt, isBound, isUnnotified } from './rules.ts';

/** The clean-up recognises a lease record by these. `lease_version` alone would do, but it is the holder's secret. */
const LEASE_IDENTITY = ['fence', 'expires_at', 'released_at', 'lease_expiry'] as const;

/** A lease is abandoned from the instant at which any caller may take it over. */
function isAbandoned(now: number, { clockSkewMs }: Margins): Condition {
  const cut = now - clockSkewMs;
  const ownExpired = aliased('attribute_exists(#lease_id) AND #expires_at < :cut', { ':cut': integer(cut) });
  // Records of the Rust crate dynamodb-lease know whole seconds only, in the TTL attribute.
  const foreignExpired = aliased(
    'attribute_not_exists(#expires_at) AND (#lease_expiry < :cutSeconds OR #lease_expiry BETWEEN :leastMs AND :cut)',
    {
      ':cut': integer(cut),
      ':cutSeconds': integer(Math.floor(cut / 1000)),
      ':leastMs': integer(LEAST_MILLISECONDS),
    },
  );
  // Nothing says when such a lease ends, so neither this service nor the crate ever takes it over.
  const endless = all(
    aliased('attribute_not_exists(#expires_at)'),
    ttlIsUnreadable('lease_expiry'),
    aliased('attribute_exists(#lease_expiry) OR attribute_exists(#lease_id)'),
  );
  const isLeased = aliased('attribute_type(#lease_version, :string)', { ':string': text('S') });
  return all(isLeased, any(ownExpired, foreignExpired, endless));
}

function isReleased(now: number, { fenceRetentionSeconds }: Margins): Condition {
  const wasReleased = aliased(
    'attribute_not_exists(#lease_version) AND attribute_exists(#lease_id) AND attribute_type(#released_at, :number)',
    { ':number': text('N') },
  );
  const isPastRetention = aliased('#released_at < :retained', {
    ':retained': integer(now - fenceRetentionSeconds * 1000),
  });
  return all(wasReleased, any(ttlIsOver('lease_expiry', now), all(ttlIsUnreadable('lease_expiry'), isPastRetention)));
}

/** Held in a namespace. Leases of the Rust crate, which have no exact expiry, are not counted. */
const isHeldInNamespace = (now: number, { clockSkewMs }: Margins): Condition =>
  all(
    isHeld,
    aliased('#expires_at >= :cut AND attribute_not_exists(#released_at) AND contains(#key, :slash)', {
      ':cut': integer(now - clockSkewMs),
      ':slash': text('/'),
    }),
  );

/** Only another call or a look ends such a lease. */
const isHeldByExecution: Condition = all(isHeld, aliased('attribute_exists(#bound) AND attribute_exists(#execution)'));

export const LEASE_KINDS = ['abandonedLease', 'releasedLease'] as const;
type LeaseKind = (typeof LEASE_KINDS)[number];

/** The records of leases that have expired, of bound ones, and of those that count as held in a namespace. */
export const expiredLeases = (now: number, margins: Margins): Condition =>
  any(
    all(isLease, any(isAbandoned(now, margins), isHeldByExecution, isHeldInNamespace(now, margins))),
    isReleased(now, margins),
  );

/** @param item a record that `expiredLeases` let through */
export function findLease(item: Item, now: number, margins: Margins): Found<LeaseKind> {
  const isHeldStill = item.released_at === undefined && (number(item, 'expires_at') ?? 0) >= now - margins.clockSkewMs;
  return isHeldStill ? { rows: [], held: 1 } : { rows: [rowOf(item, now, margins)], held: 0 };
}

function rowOf(item: Item, now: number, { fenceRetentionSeconds }: Margins): ExpiredRow<LeaseKind> {
  const releasedAt = number(item, 'released_at');
  const expiresAt = number(item, 'expires_at');
  const wasReleased = releasedAt !== undefined && expiresAt === undefined;
  const ttl = readTtl(item.lease_expiry, now);
  const holder = holderNamed(item.holder?.S);
  // A record of the crate runs to the end of the second that it names.
  const wholeSeconds = ttl.atMs !== undefined && ttl.fault !== 'milliseconds' ? ttl.atMs + 1000 : ttl.atMs;
  const expired = wasReleased ? (ttl.atMs ?? releasedAt + fenceRetentionSeconds * 1000) : (expiresAt ?? wholeSeconds);
  const who = holder ?? NAMELESS;
  const what = wasReleased
    ? `${who} released it, and it is past its retention`
    : `${expiredBy(who, item.ended_execution !== undefined)}, and no other caller took it over`;
  return {
    kind: wasReleased ? 'releasedLease' : 'abandonedLease',
    key: { key: item.key?.S ?? '' },
    holder,
    ...agedBy(expired, now),
    ...reasonWithTtl(what, ttl.fault),
    identity: identityOf(item, LEASE_IDENTITY),
  };
}

/** The clean-up recognises a bound lease by its fence, and judges it again. */
const BOUND_IDENTITY = ['fence'] as const;

/**
 * The lease, if it lasts as long as its execution. A grant that its caller has yet to claim ends by the grant window.
 * @param item a record that `expiredLeases` let through
 */
export function boundLease(item: Item, now: number, { clockSkewMs }: Margins): BoundHolding[] {
  const record = parseRecord(item);
  if (!isBound(record) || record.claimTtlMs !== undefined || endsAt(record) < now - clockSkewMs) return [];
  const { key, execution, holder } = record;
  const identity = identityOf(item, BOUND_IDENTITY);
  const holding = { key: { key }, holder: holderNamed(holder), execution, grant: record, identity };
  return [{ ...holding, isUnnotified: isUnnotified(record) }];
}
