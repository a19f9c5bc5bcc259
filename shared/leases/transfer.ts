import { integer, text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { all, type Condition } from '../aws/condition.ts';
import type { Item } from '../aws/dynamodb.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { ENDED_ATTRIBUTES, type Ended, endedItem } from '../line/ended.ts';
import { namesOf } from '../line/patience.ts';
import { WINDOW_SECONDS } from '../line/times.ts';
import { isTask, type Waiter } from '../line/waiters.ts';
import { grantUnchanged, hasLeaseId, hasNoEndMark, isBelow, isHeldByAnother, lineUnchanged } from './conditions.ts';
import { type Grant, grantItem, newGrant } from './grant.ts';
import { isCounter, keeping, raiseFence } from './marks.ts';
import type { Ending, Line, NextInLine } from './next.ts';
import type { LeaseRecord } from './record.ts';
import { isEnding, isLate, isLeased } from './rules.ts';
import { removedMark, updateLease, type Written } from './write.ts';

/** The hints name up to this many waiters. */
const MAX_HINTED = 12;

/** Attributes that the previous grant may have left, and that a new grant need not have. */
const OPTIONAL = [
  ...['principal', 'data', 'execution', 'target', 'grace_ms', 'ended_execution', 'released_at', 'broken_at'],
  ...['broken_until', 'ending_at', 'claim_ttl_ms', 'answered_at', 'next_ticket', 'next_tickets', 'look_at'],
  ...['broken_by', 'bound', 'looked_at', 'unnotified_version'],
  ...ENDED_ATTRIBUTES,
];

export interface Transferred extends Written {
  /** Whether an earlier try of the SDK landed without an answer, and the new holder has extended, claimed or ended that grant since. */
  hasGoneOn?: boolean;
}

interface Transfer {
  /** The record as it was last seen, and how its grant ends. */
  from: LeaseRecord;
  how: Ending;
  waiter: Waiter;
  /** The line without the new holder. If it is empty, the mark goes, on condition that nothing has joined since. */
  line: Line;
  /** The holder before. */
  previous: Ended | undefined;
  /** The ticket of the call that writes this, if that call is in line itself. */
  own?: string | undefined;
}

/**
 * Moves the lease from one holder to the next, or gives a free one to the next, in one write, so that no other caller comes in between
 * (docs/protocols/queue.md#hand-off). Replaces or removes all of the previous grant. If its execution stayed, the end of that execution would
 * free the successor's lease. A late grant gets a higher fence.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function transfer(
  dependencies: LeaseDependencies,
  { from, how, waiter, line, previous, own }: Transfer,
  call: Call,
): Promise<Transferred> {
  const { others } = line;
  const grant = grantTo(dependencies, { waiter, others, own }, from);
  const { key, version } = grant;
  const keepsCounting = others && isCounter(from);
  const unchanged = keepsCounting ? grantUnchanged(from) : all(grantUnchanged(from), lineUnchanged(from));
  const wasHeld =
    how === 'released' && isLeased(from) && from.claimTtlMs === undefined && from.acquiredAt !== undefined;
  const hints = {
    ...hintsOf(line),
    line_out: integer(lineOut(from, line)),
    ...(wasHeld && { turn_ms: integer(Math.max(0, grant.acquiredAt - Number(from.acquiredAt))) }),
  };
  const answered = waiter.ticket === own && { answered_at: integer(grant.acquiredAt) };
  const set = {
    ...grantItem(grant),
    ...answered,
    ...brokenItem({ from, how }),
    ...(previous && endedItem(previous)),
    ...(others && hints),
  };
  const unmarked = removedMark(line.staying);
  const update = others
    ? replacing({ set, ...keeping(from) })
    : replacing({ set: { ...set, ...unmarked.set }, removed: unmarked.removed });
  const condition = all(unchanged, isBelow(grant.fence));
  const written = await updateLease(dependencies, { key, version, ...update, condition }, call);
  const { won, record } = written;
  const hasLateFence = won && isLeased(record) && from.fence === undefined && isLate(grant, dependencies.clock.now());
  return landed(grant, hasLateFence ? await raiseFence(dependencies, record, call) : written);
}

/** So that its former holder learns that an operator broke the lease. It stays until a plain acquire, or the next break. */
const brokenItem = ({ from, how }: Pick<Transfer, 'from' | 'how'>): Item => {
  const isBroken = how === 'broken' || from.brokenAt !== undefined || isEnding(from);
  return isBroken && from.leaseId !== undefined ? { broken_lease: text(from.leaseId) } : {};
};

/** A grant keeps its lease id for as long as it is on record. */
const landed = ({ leaseId }: Grant, written: Written): Transferred => ({
  ...written,
  ...(!written.won && written.record.leaseId === leaseId && { hasGoneOn: true }),
});

/** Far below the largest number from which DynamoDB can count on. */
const MAX_MARK = 10 ** 15;

interface QuickTransfer {
  key: string;
  /** The proof of the holder that releases the lease. */
  leaseId: string;
  line: NextInLine;
}

/**
 * Transfers a lease for its holder, which knows the lease id and not the record (docs/protocols/queue.md#quick-release). The mark stays. The
 * attributes that the expression computes from must be numbers, or DynamoDB would refuse the request. The plain release handles a record with others.
 * @throws as `transfer`
 */
export async function quickTransfer(
  dependencies: LeaseDependencies,
  { key, leaseId, line }: QuickTransfer,
  call: Call,
): Promise<Transferred> {
  const { oldest: ticket, others } = line;
  const grant = grantTo(dependencies, { waiter: ticket, others }, { key });
  const { version, fence, acquiredAt } = grant;
  const computed = {
    prev_holder: '#holder',
    prev_fence: '#fence',
    turn_ms: ':acquired_at - #acquired_at',
    // This call has not read the record, and a waiter may have joined since it read the line: a count of the line could leave that waiter out.
    line_out: 'if_not_exists(line_out, :zero) + :one',
  };
  const counted = { ':zero': integer(0), ':one': integer(1) };
  const ended = { prev_ended: text('released'), prev_at: integer(acquiredAt) };
  const set = { ...grantItem(grant), ...ended, ...hintsOf(line) };
  const { values, ...update } = replacing({ set, computed, values: counted });
  const isUsable: Condition = {
    expression:
      'attribute_exists(holder) AND fence < :fence AND acquired_at <= :acquired_at AND waiters BETWEEN :least AND :most ' +
      'AND (attribute_not_exists(line_out) OR attribute_type(line_out, :number))',
    values: {
      ':fence': integer(fence),
      ':acquired_at': integer(acquiredAt),
      ':least': integer(0),
      ':most': integer(MAX_MARK),
      ':number': text('N'),
    },
  };
  const condition = all(hasLeaseId(leaseId), isHeldByAnother(ticket), hasNoEndMark, isUsable);
  return landed(grant, await updateLease(dependencies, { key, version, ...update, values, condition }, call));
}

/** With others in line, the lease id says so. Then the release looks at the line first, and need not lose a write to learn of it. */
function grantTo(
  dependencies: LeaseDependencies,
  { waiter, others, own }: { waiter: Waiter; others: boolean; own?: string | undefined },
  from: LeaseRecord,
): Grant {
  const { ttlSeconds } = waiter;
  const isFull = isTask(waiter) || waiter.ticket === own;
  const asked = isFull ? waiter : { ...waiter, ttlSeconds: WINDOW_SECONDS, claimTtlSeconds: ttlSeconds };
  const grant = newGrant(dependencies, asked, from);
  return others ? { ...grant, leaseId: `${grant.leaseId}+${waiter.ticket}` } : grant;
}

/** The ticket that the lease id of a grant names, if others were behind it. */
export const ticketOfLeaseId = (leaseId: string): string | undefined => leaseId.split('+')[1];

/** The next in line, for pace.ts. */
const hintsOf = ({ next, following }: Line): Item =>
  next
    ? {
        next_ticket: text(next.ticket),
        next_tickets: text(namesOf(following.slice(0, MAX_HINTED).map(({ ticket }) => ticket))),
      }
    : {};

/** How many of the arrivals, which the mark counts, have left the line. */
function lineOut(from: LeaseRecord, { isFull, staying, gone }: Line): number {
  const arrivals = isCounter(from) ? Number(from.waiters?.N ?? 0) : 0;
  return isFull ? arrivals - staying.count : (from.lineOut ?? 0) + 1 + gone;
}

interface Replacement {
  set: Item;
  /** Attributes that are computed from those of the record. */
  computed?: Record<string, string>;
  removed?: readonly string[];
  values?: Item;
}

/** All names have aliases, because some of them are reserved words. */
function replacing({ set: { key: _, ...attributes }, computed = {}, removed = [], values = {} }: Replacement) {
  const names = Object.keys(attributes);
  const left = OPTIONAL.filter((name) => !names.includes(name) && !(name in computed));
  const gone = [...new Set([...left, ...removed])];
  const assigned = [
    ...names.map((name) => `#${name} = :${name}`),
    ...Object.entries(computed).map(([name, expression]) => `${name} = ${expression}`),
  ];
  return {
    expression: `SET ${assigned.join(', ')} REMOVE ${gone.map((name) => `#${name}`).join(', ')}`,
    names: Object.fromEntries([...names, ...gone].map((name) => [`#${name}`, name])),
    values: {
      ...Object.fromEntries(Object.entries(attributes).map(([name, value]) => [`:${name}`, value])),
      ...values,
    },
  };
}
