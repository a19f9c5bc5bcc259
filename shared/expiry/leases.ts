import { all, either } from '../aws/conditions.ts';
import { agedBy, holderNamed, identityOf, number } from './rows.ts';
import type { TableSource } from './table-source.ts';
import { readTtl, reasonWithTtl, ttlIsOver, ttlIsUnreadable, ttlValues } from './ttl.ts';
import { integer, text } from './values.ts';

/** What a lease record is recognised by. `lease_version` would do, and is the holder's secret. */
const IDENTITY = ['fence', 'expires_at', 'released_at', 'lease_expiry'] as const;

/** Held, and past the instant at which any caller may take it over: our records know it to the millisecond. */
const ownExpired = 'attribute_exists(#lease_id) AND #expires_at < :cut';

/** Records of the Rust crate dynamodb-lease know whole seconds only, in the TTL attribute. */
const foreignExpired = all(
  'attribute_not_exists(#expires_at)',
  either('#lease_expiry < :cutSeconds', '#lease_expiry BETWEEN :leastMs AND :cut'),
);

/** Nothing says when such a lease ends: neither we nor the crate ever take it over. */
const endless = all(
  'attribute_not_exists(#expires_at)',
  ttlIsUnreadable('#lease_expiry'),
  'attribute_exists(#lease_expiry) OR attribute_exists(#lease_id)',
);

const abandoned = all('attribute_type(#lease_version, :string)', either(ownExpired, foreignExpired, endless));

const released = all(
  'attribute_not_exists(#lease_version)',
  'attribute_exists(#lease_id)',
  'attribute_type(#released_at, :number)',
  either(ttlIsOver('#lease_expiry'), all(ttlIsUnreadable('#lease_expiry'), '#released_at < :retained')),
);

export const LEASES: TableSource = {
  table: ({ leasesTable }) => leasesTable,
  kinds: ['abandonedLease', 'releasedLease'],
  key: ['key'],
  attributes: [...IDENTITY, 'holder'],
  filtered: ['lease_version', 'lease_id'],
  filter: either(abandoned, released),
  values: (now, { clockSkewMs, fenceRetentionSeconds }) => ({
    ...ttlValues(now),
    ':string': text('S'),
    ':cut': integer(now - clockSkewMs),
    ':cutSeconds': integer(Math.floor((now - clockSkewMs) / 1000)),
    ':retained': integer(now - fenceRetentionSeconds * 1000),
  }),
  row: (item, now, { fenceRetentionSeconds }) => {
    const releasedAt = number(item, 'released_at');
    const expiresAt = number(item, 'expires_at');
    const isReleased = releasedAt !== undefined && expiresAt === undefined;
    const ttl = readTtl(item.lease_expiry, now);
    const holder = holderNamed(item.holder?.S);
    // A record of the crate runs to the end of the second that it names.
    const wholeSeconds = ttl.atMs !== undefined && ttl.fault !== 'milliseconds' ? ttl.atMs + 1000 : ttl.atMs;
    const expired = isReleased ? (ttl.atMs ?? releasedAt + fenceRetentionSeconds * 1000) : (expiresAt ?? wholeSeconds);
    const who = holder ?? 'a client that leaves no name';
    const what = isReleased
      ? `${who} gave it back, and it is past its retention`
      : `${who} let it expire without giving it back, and nobody took it over`;
    return {
      kind: isReleased ? 'releasedLease' : 'abandonedLease',
      key: { key: item.key?.S ?? '' },
      holder,
      ...agedBy(expired, now),
      ...reasonWithTtl(what, ttl.fault),
      identity: identityOf(item, IDENTITY),
    };
  },
  // Of a marked lease the queue decides: somebody may be parked behind it.
  deletable: (kind) =>
    kind === 'abandonedLease'
      ? 'attribute_exists(lease_version) AND attribute_not_exists(waiters)'
      : 'attribute_not_exists(lease_version) AND attribute_not_exists(waiters)',
};
