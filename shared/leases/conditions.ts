import { integer, text } from '../aws/attributes.ts';
import { all, any, type Condition, not } from '../aws/condition.ts';
import type { Item } from '../aws/dynamodb.ts';
import { type Acquisition, isOf } from '../line/acquisition.ts';
import type { Leased, LeaseRecord } from './record.ts';
import { isLeased, type LeaseState } from './rules.ts';

// The conditions that make a write a rule. Attribute names that are DynamoDB reserved words never appear here (`key`,
// `data`), so no condition needs aliases.

/** The record is not that of a pool. Without this condition, a late write on a lease could land on a pool. */
export const isLease: Condition = { expression: 'attribute_not_exists(used) AND attribute_not_exists(mark)' };

export const isHeld: Condition = { expression: 'attribute_exists(lease_version)' };
export const isFree: Condition = { expression: 'attribute_not_exists(lease_version)' };

/** While a caller or a task is in line for the key, only the line grants it. */
export const isUnmarked: Condition = { expression: 'attribute_not_exists(waiters)' };

/** The record does not count callers that may come back to their positions, or counts only those that this call has read. */
export const countsUntil = (now: number, { line_until: seen }: Item): Condition => ({
  expression: 'attribute_not_exists(line_until) OR line_until <= :until',
  values: { ':until': seen ?? integer(now) },
});

/** A grant that its caller has not claimed is handed off after its time, and never overwritten, because its ticket must go. */
export const isClaimed: Condition = { expression: 'attribute_not_exists(claim_ttl_ms)' };

/** A request id stands for one acquisition. A late duplicate of a released one must not take the lease again. */
export const isFreeFor = (request: Acquisition): Condition => all(isFree, not(isOf(request)));

/** No operator has marked the grant as ending. */
export const hasNoEndMark: Condition = { expression: 'attribute_not_exists(ending_at)' };

/** An operator broke the lease of this request, so the request does not take that lease over when the ttl has ended. */
export const isNotEndingFor = (request: Acquisition): Condition => any(hasNoEndMark, not(isOf(request)));

export const isHeldByAnother = (request: Acquisition): Condition => all(isHeld, not(isOf(request)));

/** Held, or free again after a grant to another. */
export const isOfAnother = (request: Acquisition): Condition =>
  all(any(isHeld, { expression: 'attribute_exists(fence)' }), not(isOf(request)));

/**
 * The second half is for records of the Rust crate, which know whole seconds only.
 * @param cut epoch milliseconds: now, less the margin of the clocks
 */
export const isExpired = (cut: number): Condition =>
  all(isHeld, {
    expression: 'expires_at < :cut OR (attribute_not_exists(expires_at) AND lease_expiry < :cutSeconds)',
    values: { ':cut': integer(cut), ':cutSeconds': integer(Math.floor(cut / 1000)) },
  });

export const isBelow = (fence: number): Condition => ({
  expression: 'attribute_not_exists(fence) OR fence < :fence',
  values: { ':fence': integer(fence) },
});

/**
 * The lease was not released after this instant. Otherwise the SDK may have sent an older try twice, and the caller has received LeaseHeld in the meantime.
 * Only a free record has the attribute.
 */
export const wasNotReleasedAfter = (epochMs: number): Condition => ({
  expression: 'attribute_not_exists(released_at) OR released_at <= :latest',
  values: { ':latest': integer(epochMs) },
});

export const hasFence = (fence: number): Condition => ({
  expression: 'fence = :fence',
  values: { ':fence': integer(fence) },
});

export const hasLeaseId = (leaseId: string): Condition => ({
  expression: 'lease_id = :leaseId',
  values: { ':leaseId': text(leaseId) },
});

/** A heartbeat never shortens a lease, so a delayed duplicate of an earlier one changes nothing. */
export const expiresBefore = (epochMs: number): Condition => ({
  expression: 'expires_at < :expires',
  values: { ':expires': integer(epochMs) },
});

/** The same for a heartbeat that keeps the ttl: of two expiries with one ttl, the later beat has the later one. */
export const beatBefore = (epochMs: number): Condition => ({
  expression: 'heartbeat_at < :now',
  values: { ':now': integer(epochMs) },
});

/** No call has extended, ended or taken the lease since its record was read. */
export const isStillHeld = ({ version }: Leased): Condition => ({
  expression: 'lease_version = :seen',
  values: { ':seen': text(version) },
});

/** The fence of a free record tells whether another grant has come and gone since. */
const isStillFree = ({ fenceValue }: LeaseRecord): Condition =>
  all(
    isFree,
    fenceValue === undefined
      ? { expression: 'attribute_not_exists(fence)' }
      : { expression: 'fence = :free', values: { ':free': fenceValue } },
  );

/** The grant still stands as it was read, or no caller has had the key since it was read as free. */
export const grantUnchanged = (record: LeaseRecord): Condition =>
  isLeased(record) ? isStillHeld(record) : isStillFree(record);

/**
 * No caller and no task has joined the line since the record was read. A free record has no version, so a mark that began again there is
 * known by its `next_ticket`.
 */
export function lineUnchanged(record: LeaseRecord): Condition {
  const { waiters, nextTicketValue: next } = record;
  if (waiters === undefined) return isUnmarked;
  const isSame: Condition = { expression: 'waiters = :waiters', values: { ':waiters': waiters } };
  if (isLeased(record)) return isSame;
  return all(
    isSame,
    next === undefined
      ? { expression: 'attribute_not_exists(next_ticket)' }
      : { expression: 'next_ticket = :next', values: { ':next': next } },
  );
}

export const isOfExecution = (execution: string): Condition => ({
  expression: 'execution = :execution',
  values: { ':execution': text(execution) },
});

/** The states of rules.ts as filters, so that DynamoDB does not send rows that do not match. */
export function isInState(state: LeaseState, now: number): Condition {
  const wasReleased: Condition = { expression: 'attribute_exists(released_at)' };
  const runs: Condition = {
    expression: 'expires_at > :now OR (attribute_not_exists(expires_at) AND NOT lease_expiry < :seconds)',
    values: { ':now': integer(now), ':seconds': integer(Math.floor(now / 1000)) },
  };
  switch (state) {
    case 'held':
      return all(isHeld, runs);
    case 'expired':
      return all(isHeld, not(runs));
    case 'released':
      return all(isFree, wasReleased);
    case 'free':
      return all(isFree, not(wasReleased));
  }
}
