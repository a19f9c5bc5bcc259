import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { type Json, json, number } from '../aws/attributes.ts';
import type { Item } from '../aws/dynamodb.ts';
import { HoldfastError } from '../errors.ts';
import { type Ended, parseEnded } from '../line/ended.ts';
import { isPool, OtherKind } from '../line/kind.ts';

/**
 * One record of the leases table (docs/protocols/leases.md#record). It shares its format with the Rust crate
 * `dynamodb-lease`: `key`, `lease_expiry` and `lease_version` belong to the crate, and its own records have no other
 * attributes. Instants are epoch milliseconds, except for `leaseExpirySeconds`.
 */
export interface LeaseRecord {
  key: string;
  /** Present only while leased. Every heartbeat writes a new one. */
  version?: string | undefined;
  /** The TTL attribute. While leased, the expiry, rounded up. Afterwards, the time at which DynamoDB may delete the record. */
  leaseExpirySeconds?: number | undefined;
  leaseId?: string | undefined;
  expiresAt?: number | undefined;
  ttlMs?: number | undefined;
  holder?: string | undefined;
  principal?: string | undefined;
  requestId?: string | undefined;
  fence?: number | undefined;
  /** As it stands in the table: conditions compare it, and another client may have written a number that JavaScript rounds. */
  fenceValue?: AttributeValue | undefined;
  data?: Json | undefined;
  acquiredAt?: number | undefined;
  releasedAt?: number | undefined;
  brokenAt?: number | undefined;
  /** The expiry that a broken lease had. */
  brokenUntil?: number | undefined;
  /** The lease id of the last grant that an operator broke, if the line has granted the lease since. */
  brokenLease?: string | undefined;
  heartbeatAt?: number | undefined;
  /** Whether an operator has marked the grant as ending (`ending_at`): no call extends it, and it stays until its holder releases it or its ttl ends. */
  hasEndMark?: boolean;
  /** When an operator broke the grant with `wait`. */
  endingAt?: number | undefined;
  /** The authenticated operator that broke the grant first. */
  brokenBy?: string | undefined;
  /** The ARN of the execution that holds the lease. The lease may be freed once it has ended. */
  execution?: string | undefined;
  /** The ARN of the execution that works under the lease of `execution`. The lease stays while it runs. */
  target?: string | undefined;
  /** How long the lease goes on after an abnormal end of its execution, in milliseconds. */
  graceMs?: number | undefined;
  /** Whether the lease lasts as long as `execution`. */
  bound?: boolean;
  /** The version of a bound grant whose task was gone when the schedule notified it late. Any later write on the grant sets another version. */
  unnotifiedVersion?: string | undefined;
  /** When a call last asked about the execution that holds the lease. */
  lookedAt?: number | undefined;
  /** The ARN of the execution that ended while it held the lease, which goes on as an ordinary lease (grace.ts). */
  endedExecution?: string | undefined;
  /** The ticket that received a grant from the line. */
  ticket?: string | undefined;
  /** The ttl that a waiting caller asked for, until it claims its grant. The end of such a grant leaves it there. */
  claimTtlMs?: number | undefined;
  /**
   * When a call of its request claimed a grant from the line, handed the lease to itself, or was answered in place of the ticket that received it. If the
   * grant names an execution, each repeat writes it.
   */
  answeredAt?: number | undefined;
  /** The holder before a grant from the line. */
  previous?: Ended | undefined;
  /** A hint: the ticket that is next in line. */
  nextTicket?: string | undefined;
  /** As it stands in the table: the mark of a free record is known by it. */
  nextTicketValue?: AttributeValue | undefined;
  /**
   * Hints: the short names of the first few in line, how long the last holder held the lease, how long holders do on average, and how many of
   * the arrivals have had their turn.
   */
  nextTickets?: string | undefined;
  turnMs?: number | undefined;
  paceMs?: number | undefined;
  lineOut?: number | undefined;
  /** A hint: until when callers may come back that were in line when the mark was removed. */
  lineUntil?: number | undefined;
  /** When the latest message that looks at the end of this grant is to arrive. */
  lookAt?: number | undefined;
  /**
   * The mark: present while a caller or a task is in line, and higher after each one that joins. Kept as it stands in the table, because
   * conditions compare it, and another client may have written a number that JavaScript rounds, or no number.
   */
  waiters?: AttributeValue | undefined;
  /** The first attribute that conditions compare and that another client wrote with another type. */
  malformed?: string | undefined;
}

/** A record of a lease that was granted and has not been ended. Its time may be over. */
export type Leased = LeaseRecord & { version: string };

/** A lease that lasts as long as its execution. */
export type Bound = Leased & { execution: string };

/**
 * Parses the record of a lease, also of another client. An attribute of another type counts as absent.
 * @param unanswered of the write that met the record: whether one of its tries got no answer
 * @throws OtherKind for the record of a pool
 */
export function parseRecord(item: Item, unanswered = false): LeaseRecord {
  if (isPool(item)) throw new OtherKind(item, unanswered);
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
    fenceValue: item.fence,
    data: json(item.data?.S),
    acquiredAt: number(item, 'acquired_at'),
    releasedAt: number(item, 'released_at'),
    brokenAt: number(item, 'broken_at'),
    brokenUntil: number(item, 'broken_until'),
    brokenLease: item.broken_lease?.S,
    heartbeatAt: number(item, 'heartbeat_at'),
    hasEndMark: item.ending_at !== undefined,
    endingAt: number(item, 'ending_at'),
    brokenBy: item.broken_by?.S,
    execution: item.execution?.S,
    target: item.target?.S,
    graceMs: number(item, 'grace_ms'),
    bound: item.bound?.BOOL === true,
    unnotifiedVersion: item.unnotified_version?.S,
    lookedAt: number(item, 'looked_at'),
    endedExecution: item.ended_execution?.S,
    ticket: item.ticket?.S,
    claimTtlMs: number(item, 'claim_ttl_ms'),
    answeredAt: number(item, 'answered_at'),
    previous: parseEnded(item),
    nextTicket: item.next_ticket?.S,
    nextTicketValue: item.next_ticket,
    nextTickets: item.next_tickets?.S,
    turnMs: number(item, 'turn_ms'),
    paceMs: number(item, 'pace_ms'),
    lineOut: number(item, 'line_out'),
    lineUntil: number(item, 'line_until'),
    lookAt: number(item, 'look_at'),
    waiters: item.waiters,
    malformed: malformed(item),
  };
}

/** The attributes that the conditions of a grant compare. */
const TYPES = { lease_version: 'S', lease_expiry: 'N', expires_at: 'N', fence: 'N', claim_ttl_ms: 'N' } as const;

const malformed = (item: Item): string | undefined =>
  Object.entries(TYPES).find(([name, type]) => item[name] !== undefined && !(type in item[name]))?.[0];

/** No condition here ever holds on such a record, so a call that kept trying would try until its time is up. */
export function unusable({ key, malformed }: LeaseRecord): HoldfastError {
  const detail = `a third-party client wrote a record that is no valid lease: an operator must correct the type of ${malformed}`;
  return new HoldfastError('Unavailable', detail, { key, retryAfterMs: 1000 });
}
