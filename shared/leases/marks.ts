import { integer, text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { all, type Condition } from '../aws/condition.ts';
import type { Item } from '../aws/dynamodb.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { paceAfter } from '../line/patience.ts';
import type { Staying, WaitingTask } from '../line/waiters.ts';
import { isRedriven } from './bound.ts';
import { grantUnchanged, isStillHeld, isUnmarked, lineUnchanged } from './conditions.ts';
import type { GrantRequest } from './grant.ts';
import type { Leased, LeaseRecord } from './record.ts';
import { isBound, isLeased, risingFence } from './rules.ts';
import { assigning, removedMark, updateLease, type Written } from './write.ts';

/**
 * Gives the current grant a new version, for a call that is about to return a grant that another call wrote. That grant may have ended since this call
 * read it. If the other call finds that the task of the grant is gone, the new version keeps it from handing the lease off.
 */
export const answer = (dependencies: LeaseDependencies, record: Leased, call: Call): Promise<Written> =>
  writeVersion(dependencies, { record, ...setting({ answered_at: integer(dependencies.clock.now()) }, []) }, call);

interface Changes {
  set: Item;
  removed: readonly string[];
}

function setting(set: Item, removed: readonly string[]): { set: string; values: Item } {
  const { assigned, values } = assigning(set);
  return { set: `${assigned && `, ${assigned}`}${removed.length > 0 ? ` REMOVE ${removed.join(', ')}` : ''}`, values };
}

/** Raises the fence of a grant that this call has written late, before any call has answered with the grant (docs/protocols/leases.md#late-grants). */
export const raiseFence = (dependencies: LeaseDependencies, record: Leased, call: Call): Promise<Written> => {
  const values = { ':fence': integer(risingFence(record, dependencies.clock.now())) };
  return writeVersion(dependencies, { record, set: ', fence = :fence', values }, call);
};

/** A counter and not a flag, so that a call that found the line empty removes it only if no waiter has joined since. */
const RAISE_MARK = 'waiters = if_not_exists(waiters, :zero) + :one';
const raisedMark: Item = { ':zero': integer(0), ':one': integer(1) };

/** Whether DynamoDB can count on from the mark. Another client may have written anything in its place. */
export const isCounter = ({ waiters }: LeaseRecord): boolean =>
  waiters === undefined || /^\d{1,30}$/.test(waiters.N ?? '');

/**
 * The part of a transfer that keeps the mark, and puts it there where another client has dropped it. A mark that is no counter is
 * replaced, on condition that nothing has joined since.
 */
export function keeping(record: LeaseRecord): { computed?: Record<string, string>; values?: Item } {
  const values = { ':one': integer(1) };
  if (!isCounter(record)) return { computed: { waiters: ':one' }, values };
  return record.waiters === undefined ? { computed: { waiters: 'if_not_exists(waiters, :one)' }, values } : {};
}

interface Mark {
  key: string;
  condition: Condition;
  /** The next in line, if no other is noted. */
  ticket: string | undefined;
  /** Whether the mark has counted it among the arrivals before. */
  again?: boolean;
}

/** Notes on the record that the key has a line. */
export function mark(
  dependencies: LeaseDependencies,
  { key, condition, ticket, again }: Mark,
  call: Call,
): Promise<Written> {
  const next = ticket === undefined ? '' : ', next_ticket = if_not_exists(next_ticket, :ticket)';
  const counted = again ? ', line_out = if_not_exists(line_out, :zero) + :one' : '';
  const values = { ...raisedMark, ...(ticket !== undefined && { ':ticket': text(ticket) }) };
  return updateLease(dependencies, { key, expression: `SET ${RAISE_MARK}${next}${counted}`, condition, values }, call);
}

/** Puts back the mark of a lease that is held, if another client or TTL has dropped it. */
export const markAgain = (
  dependencies: LeaseDependencies,
  { record, ticket }: { record: LeaseRecord; ticket?: string },
  call: Call,
): Promise<Written> =>
  mark(dependencies, { key: record.key, condition: all(grantUnchanged(record), isUnmarked), ticket }, call);

/** Sets how many of the arrivals have left the line, after a count of the others. Does nothing if the record has moved on. */
export const correctLineOut = (
  dependencies: LeaseDependencies,
  { key, arrivals, inLine }: { key: string; arrivals: number; inLine: number },
  call: Call,
): Promise<Written> => {
  const values = { ':out': integer(arrivals - inLine), ':arrivals': integer(arrivals) };
  const condition = { expression: 'waiters >= :arrivals', values: { ':arrivals': integer(arrivals) } };
  return updateLease(dependencies, { key, expression: 'SET line_out = :out', condition, values }, call);
};

/**
 * A record that stays held gets a new version with it. Its counter begins at 1 again, and a call that was paused may have seen that 1 before: it must
 * not find the version that it knows beside it.
 * @param record as it was read before the line was seen empty
 */
export function clearMark(
  dependencies: LeaseDependencies,
  { record, staying }: { record: LeaseRecord; staying: Staying },
  call: Call,
): Promise<Written> {
  const { key } = record;
  const condition = all(grantUnchanged(record), lineUnchanged(record));
  const { set, removed } = removedMark(staying);
  const version = isLeased(record) ? dependencies.ids.uuid() : undefined;
  const { assigned, values } = assigning({ ...set, ...(version !== undefined && { lease_version: text(version) }) });
  const expression = `${assigned && `SET ${assigned} `}REMOVE ${removed.join(', ')}`;
  return updateLease(dependencies, { key, expression, values, condition, version }, call);
}

/**
 * Gives the current grant a new version, so that the call which wrote the grant can no longer hand it off, and this call may notify the task. If this
 * call finds the task gone, that proves nothing: the other call may have notified the same task. The grant has its whole ttl from now on: a task measures
 * its work by the ttl, and begins when it is notified. Never shortens.
 * @param renewed `isRepeated`: whether the request received this grant before. Its execution may have been redriven since, so the time is recorded
 */
export function renew(
  dependencies: LeaseDependencies,
  { record, isRepeated = false }: { record: Leased; isRepeated?: boolean },
  call: Call,
): Promise<Written> {
  const { ttlMs, expiresAt = 0 } = record;
  const now = dependencies.clock.now();
  // Only a heartbeat changes the times of a bound grant. So the times show whether the holder knows of the grant.
  const isLonger = !isBound(record) && ttlMs !== undefined && now + ttlMs > expiresAt;
  const set = { ...(isLonger && lastingItem(now, ttlMs)), ...(isRepeated && { answered_at: integer(now) }) };
  return writeVersion(dependencies, { record, ...setting(set, []) }, call);
}

/**
 * Makes the grant a full one, for the call that claims it (docs/protocols/queue.md#claim). Raises the fence if the hand-off may have met no record:
 * its write may have been late, and no call has answered with the grant yet.
 */
export function claimFull(
  dependencies: LeaseDependencies,
  { record, request }: { record: Leased; request: GrantRequest },
  call: Call,
): Promise<Written> {
  const { key } = record;
  const { ttlSeconds } = request;
  const now = dependencies.clock.now();
  const version = dependencies.ids.uuid();
  const pace = paceAfter(record);
  const fence = record.previous === undefined ? risingFence(record, now) : undefined;
  const expression =
    'SET lease_version = :version, acquired_at = :now, answered_at = :now, heartbeat_at = :now, expires_at = :expires, ' +
    `lease_expiry = :seconds, ttl_ms = :ttlMs, ttl_seconds = :ttlSeconds${pace === undefined ? '' : ', pace_ms = :pace'}` +
    `${fence === undefined ? '' : ', fence = :fence'} REMOVE claim_ttl_ms`;
  const values = {
    ':version': text(version),
    ':now': integer(now),
    ':expires': integer(now + ttlSeconds * 1000),
    ':seconds': integer(Math.ceil(now / 1000) + ttlSeconds),
    ':ttlMs': integer(ttlSeconds * 1000),
    ':ttlSeconds': integer(ttlSeconds),
    ...(pace !== undefined && { ':pace': integer(pace) }),
    ...(fence !== undefined && { ':fence': integer(fence) }),
  };
  return updateLease(dependencies, { key, expression, condition: isStillHeld(record), values, version }, call);
}

/**
 * Passes the current grant of a request to a task of that request, with its whole ttl from now on (docs/protocols/tasks.md#park). A grant that no call
 * has claimed becomes that of the task's ticket and execution, and takes the terms of the task. Every other grant keeps its own and is never
 * shortened: another call or task of the request may work under it, and the end of another execution must not end it.
 */
export function passToTask(
  dependencies: LeaseDependencies,
  { record, waiter }: { record: Leased; waiter: WaitingTask },
  call: Call,
): Promise<Written> {
  const now = dependencies.clock.now();
  const { set, removed } =
    record.claimTtlMs === undefined && !isRedriven(record, waiter)
      ? repeated(record, waiter, now)
      : ofTask(waiter, now);
  return writeVersion(dependencies, { record, ...setting(set, removed) }, call);
}

/** What a task receives whose request has a grant that another call or task may have had. */
function repeated(record: Leased, waiter: WaitingTask, now: number): Changes {
  const ttlMs = record.ttlMs ?? waiter.ttlSeconds * 1000;
  const isLonger = now + ttlMs > (record.expiresAt ?? 0);
  return { set: { answered_at: integer(now), ...(isLonger && lastingItem(now, ttlMs)) }, removed: [] };
}

/** What makes the grant that of the task: no call has claimed it, or its execution was redriven. */
function ofTask({ ticket, execution, target, graceSeconds, bound, ttlSeconds }: WaitingTask, now: number): Changes {
  const ttlMs = ttlSeconds * 1000;
  return {
    set: {
      ticket: text(ticket),
      ...(execution !== undefined && { execution: text(execution) }),
      ...(target !== undefined && { target: text(target) }),
      ...(graceSeconds && { grace_ms: integer(graceSeconds * 1000) }),
      ...(bound && { bound: { BOOL: true } }),
      ...{ acquired_at: integer(now), ttl_ms: integer(ttlMs), ttl_seconds: integer(ttlSeconds) },
      ...lastingItem(now, ttlMs),
    },
    removed: [
      ...['claim_ttl_ms', 'ended_execution', ...(bound ? [] : ['bound'])],
      ...(execution !== undefined && !graceSeconds ? ['grace_ms'] : []),
    ],
  };
}

const lastingItem = (now: number, ttlMs: number): Item => ({
  ...{ heartbeat_at: integer(now), expires_at: integer(now + ttlMs) },
  lease_expiry: integer(Math.ceil(now / 1000) + Math.ceil(ttlMs / 1000)),
});

interface Anew {
  record: Leased;
  /** What the write sets besides. */
  set?: string;
  values?: Item;
}

/** A write on the current grant under a new version, as long as it has the one that was seen. */
function writeVersion(
  dependencies: LeaseDependencies,
  { record, set = '', values = {} }: Anew,
  call: Call,
): Promise<Written> {
  const version = dependencies.ids.uuid();
  const update = {
    key: record.key,
    expression: `SET lease_version = :version${set}`,
    condition: isStillHeld(record),
    values: { ':version': text(version), ...values },
    version,
  };
  return updateLease(dependencies, update, call);
}
