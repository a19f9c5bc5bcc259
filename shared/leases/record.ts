import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import type { Item } from '../aws/dynamodb.ts';
import { HoldfastError } from '../errors.ts';

/** A JSON value as the caller sent it. */
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/**
 * One record of the leases table, the format that it shares with the Rust crate `dynamodb-lease`: `key`,
 * `lease_expiry` and `lease_version` are the crate's, the rest is ours and absent on records that the crate wrote.
 * Instants are epoch milliseconds, but for `leaseExpirySeconds`.
 */
export interface LeaseRecord {
  key: string;
  /** Present only while leased; a new one at every heartbeat. */
  version?: string | undefined;
  /** The TTL attribute. While leased, the expiry, rounded up; afterwards, when the record may vanish. */
  leaseExpirySeconds?: number | undefined;
  leaseId?: string | undefined;
  expiresAt?: number | undefined;
  ttlMs?: number | undefined;
  holder?: string | undefined;
  principal?: string | undefined;
  requestId?: string | undefined;
  fence?: number | undefined;
  data?: Json | undefined;
  acquiredAt?: number | undefined;
  releasedAt?: number | undefined;
  brokenAt?: number | undefined;
  /** The ARN of the execution that holds it: once that has ended, the lease may be freed. */
  execution?: string | undefined;
  /** The ARN of the execution that works under the lease of `execution`: while it runs, the lease stays. */
  target?: string | undefined;
  /** The ticket that the lease was granted to by the queue. */
  ticket?: string | undefined;
  /**
   * The mark: there while anybody is parked, and never less or the same again after somebody came. As it stands in the table, for
   * conditions compare it, and another client may have written a number that JavaScript rounds, or none.
   */
  waiters?: AttributeValue | undefined;
  /** The first attribute that conditions compare and that another client wrote with a type of its own. */
  malformed?: string | undefined;
}

/** A record of a lease that was granted and has not ended, be its time over or not. */
export type Leased = LeaseRecord & { version: string };

/** Reads any record, also one that another client wrote: an attribute of another type counts as absent. */
export function parseRecord(item: Item): LeaseRecord {
  return {
    key: item.key?.S ?? '',
    version: item.lease_version?.S,
    leaseExpirySeconds: number(item, 'lease_expiry'),
    leaseId: item.lease_id?.S,
    expiresAt: number(item, 'expires_at'),
    ttlMs: number(item, 'ttl_ms'),
    holder: item.holder?.S,
    principal: item.principal?.S,
    requestId: item.request_id?.S,
    fence: number(item, 'fence'),
    data: json(item.data?.S),
    acquiredAt: number(item, 'acquired_at'),
    releasedAt: number(item, 'released_at'),
    brokenAt: number(item, 'broken_at'),
    execution: item.execution?.S,
    target: item.target?.S,
    ticket: item.ticket?.S,
    waiters: item.waiters,
    malformed: malformed(item),
  };
}

/** What the conditions of a grant compare. */
const TYPES = { lease_version: 'S', lease_expiry: 'N', expires_at: 'N', fence: 'N' } as const;

const malformed = (item: Item): string | undefined =>
  Object.entries(TYPES).find(([name, type]) => item[name] !== undefined && !(type in item[name]))?.[0];

/** No condition of ours ever holds on such a record: whoever tried on would try until its time is up. */
export function unusable({ key, malformed }: LeaseRecord): HoldfastError {
  const detail = `another client wrote a record that cannot be leased: ${malformed} has a type of its own`;
  return new HoldfastError('Unavailable', detail, { key, retryAfterMs: 1000 });
}

export function number(item: Item, name: string): number | undefined {
  const value = item[name]?.N;
  return value === undefined ? undefined : Number(value);
}

export function json(value: string | undefined): Json | undefined {
  if (value === undefined) return undefined;
  try {
    const parsed = JSON.parse(value);
    return isDeep(parsed) ? value : parsed;
  } catch {
    return value; // another client's `data` is shown as it is
  }
}

/** Our own is at most 32 levels deep. JSON.stringify recurses, and an answer with too deep a value could not be sent. */
const MAX_DEPTH = 100;

function isDeep(value: Json): boolean {
  let level: Json[] = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > MAX_DEPTH) return true;
    level = level.filter((item) => typeof item === 'object' && item !== null).flatMap((item) => Object.values(item));
  }
  return false;
}
