import type { Json } from '../aws/attributes.ts';
import { integer, text } from '../aws/attributes.ts';
import type { Item } from '../aws/dynamodb.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import type { LeaseRecord } from './record.ts';
import { risingFence } from './rules.ts';

/** What a caller asks for. */
export interface GrantRequest {
  key: string;
  ttlSeconds: number;
  holder: string;
  principal?: string | undefined;
  requestId: string;
  data?: Json | undefined;
  execution?: string | undefined;
  target?: string | undefined;
  /** How long the lease goes on after an abnormal end of `execution` (grace.ts). */
  graceSeconds?: number | undefined;
  /** Whether the lease lasts as long as `execution` (docs/protocols/bound.md). */
  bound?: boolean | undefined;
  /** Only in a grant from the line. */
  ticket?: string | undefined;
  /** The ttl that a caller asked for which has yet to claim the grant. Until then `ttlSeconds` is the time that it has to do so. */
  claimTtlSeconds?: number | undefined;
}

/** What is written when a lease is granted. `acquiredAt` is in epoch milliseconds. */
export interface Grant extends GrantRequest {
  version: string;
  leaseId: string;
  fence: number;
  acquiredAt: number;
}

/**
 * Makes a grant that begins now.
 * @param previous what is known of the key's record. The new fence is higher than its fence
 * @throws HoldfastError Unavailable if another client left a fence that none can rise above
 */
export function newGrant({ clock, ids }: LeaseDependencies, request: GrantRequest, previous: LeaseRecord): Grant {
  const now = clock.now();
  const { key, ttlSeconds, holder, principal, requestId, data, ticket, claimTtlSeconds } = request;
  const { execution, target, graceSeconds, bound } = request;
  const asked = { key, ttlSeconds, holder, principal, requestId, data, ticket, claimTtlSeconds };
  const held = { execution, target, graceSeconds, bound };
  return {
    ...asked,
    ...held,
    version: ids.uuid(),
    leaseId: ids.uuid(),
    fence: risingFence(previous, now),
    acquiredAt: now,
  };
}

/**
 * `heartbeat_at` is `expires_at - ttl_ms`: DynamoDB cannot add in a condition, and it lets a heartbeat that keeps the current ttl compare the moments
 * of two beats instead of their expiries.
 */
export function grantItem(grant: Grant): Item {
  return {
    key: text(grant.key),
    lease_version: text(grant.version),
    lease_expiry: integer(Math.ceil(grant.acquiredAt / 1000) + grant.ttlSeconds),
    lease_id: text(grant.leaseId),
    expires_at: integer(grant.acquiredAt + grant.ttlSeconds * 1000),
    heartbeat_at: integer(grant.acquiredAt),
    ttl_ms: integer(grant.ttlSeconds * 1000),
    ttl_seconds: integer(grant.ttlSeconds),
    holder: text(grant.holder),
    request_id: text(grant.requestId),
    fence: integer(grant.fence),
    acquired_at: integer(grant.acquiredAt),
    ...(grant.principal !== undefined && { principal: text(grant.principal) }),
    ...(grant.data !== undefined && { data: text(JSON.stringify(grant.data)) }),
    ...(grant.execution !== undefined && { execution: text(grant.execution) }),
    ...(grant.target !== undefined && { target: text(grant.target) }),
    ...(grant.graceSeconds && { grace_ms: integer(grant.graceSeconds * 1000) }),
    ...(grant.bound && { bound: { BOOL: true } }),
    ...(grant.ticket !== undefined && { ticket: text(grant.ticket) }),
    ...(grant.claimTtlSeconds !== undefined && { claim_ttl_ms: integer(grant.claimTtlSeconds * 1000) }),
  };
}
