import { UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import type { Call } from '../../aws/call.ts';
import { all } from '../../aws/conditions.ts';
import { conditionalWrite, type Item } from '../../aws/dynamodb.ts';
import { isHeld, isStillFree, isStillHeld, isUnmarked } from '../conditions.ts';
import { type LeaseDependencies, leaseTable } from '../dependencies.ts';
import { integer, type LeaseRecord, parseRecord, text } from '../record.ts';

/** A condition and what it is about, for a record that was read: nobody has come in between. */
export interface Guard {
  condition: string;
  values: Item;
}

/** The grant still stands as it was read, or nobody has taken the key that was free. */
export function grantUnchanged({ version }: LeaseRecord): Guard {
  return version === undefined
    ? { condition: isStillFree, values: {} }
    : { condition: isStillHeld, values: { ':seen': text(version) } };
}

/** Nobody has been parked since the record was read. */
export function queueUnchanged({ waiters }: LeaseRecord): Guard {
  return waiters === undefined
    ? { condition: isUnmarked, values: {} }
    : { condition: 'waiters = :waiters', values: { ':waiters': waiters } };
}

export const both = (...guards: Guard[]): Guard => ({
  condition: all(...guards.map(({ condition }) => condition)),
  values: Object.assign({}, ...guards.map(({ values }) => values)),
});

/** `standing` is the record as it is now. */
export type Written = { won: boolean; standing: LeaseRecord };

/**
 * Gives the standing grant a new version, so that whoever wrote the grant may no longer hand it on, and the caller may
 * tell it. A `gone` that he is answered with proves nothing: the other may have told the same task.
 */
export async function rotate(dependencies: LeaseDependencies, record: LeaseRecord, call: Call): Promise<Written> {
  const version = dependencies.ids.uuid();
  const guard = grantUnchanged(record);
  const values = { ...guard.values, ':version': text(version) };
  const written = await update(dependencies, record.key, 'SET lease_version = :version', { ...guard, values }, call);
  // A try of the SDK's own may have landed before the one that lost.
  return { ...written, won: written.won || written.standing.version === version };
}

/** A stranger, to a request of that holder. */
export const heldByAnother = (request: { requestId: string; holder: string }): Guard => ({
  condition: all(isHeld, 'NOT (request_id = :request AND holder = :holder)'),
  values: { ':request': text(request.requestId), ':holder': text(request.holder) },
});

export const heldUnmarked = (record: LeaseRecord): Guard =>
  both(grantUnchanged(record), { condition: isUnmarked, values: {} });

/** A counter and no flag: whoever found the queue empty clears it only where nobody has come since. */
const RAISE_MARK = 'waiters = if_not_exists(waiters, :zero) + :one';
const raisedMark: Item = { ':zero': integer(0), ':one': integer(1) };

/** Whether DynamoDB can count on from the mark. Another client may have written anything in its place. */
export const isCounter = ({ waiters }: LeaseRecord): boolean =>
  waiters === undefined || /^\d{1,30}$/.test(waiters.N ?? '');

/** What raises the mark in an update; one that cannot be counted on from is replaced, on condition that nobody has parked since. */
export const raising = (record: LeaseRecord): { expression: string; values: Item } =>
  isCounter(record)
    ? { expression: RAISE_MARK, values: raisedMark }
    : { expression: 'waiters = :one', values: { ':one': integer(1) } };

export function mark(dependencies: LeaseDependencies, key: string, guard: Guard, call: Call): Promise<Written> {
  const { condition, values } = guard;
  return update(dependencies, key, `SET ${RAISE_MARK}`, { condition, values: { ...values, ...raisedMark } }, call);
}

/** @param record as it was read before the queue was seen empty */
export function clearMark(dependencies: LeaseDependencies, record: LeaseRecord, call: Call): Promise<Written> {
  return update(dependencies, record.key, 'REMOVE waiters', both(grantUnchanged(record), queueUnchanged(record)), call);
}

/**
 * The same before a task is told of a grant that was written a while ago: with the version it gets its whole ttl from now on, for
 * tasks measure their work by the ttl and begin it when they are told. Never shortens.
 */
export async function renew(dependencies: LeaseDependencies, record: LeaseRecord, call: Call): Promise<Written> {
  const { ttlMs, expiresAt = 0 } = record;
  const now = dependencies.clock.now();
  if (ttlMs === undefined || now + ttlMs <= expiresAt) return rotate(dependencies, record, call);
  const version = dependencies.ids.uuid();
  const guard = grantUnchanged(record);
  const values = {
    ...guard.values,
    ':version': text(version),
    ':now': integer(now),
    ':expires': integer(now + ttlMs),
    ':seconds': integer(Math.ceil(now / 1000) + Math.ceil(ttlMs / 1000)),
  };
  const expression = `SET lease_version = :version, heartbeat_at = :now, expires_at = :expires, lease_expiry = :seconds`;
  const written = await update(dependencies, record.key, expression, { ...guard, values }, call);
  return { ...written, won: written.won || written.standing.version === version };
}

async function update(
  { dynamodb, table }: LeaseDependencies,
  key: string,
  expression: string,
  { condition, values }: Guard,
  call: Call,
): Promise<Written> {
  const command = new UpdateItemCommand({
    TableName: table,
    Key: { key: text(key) },
    UpdateExpression: expression,
    ConditionExpression: condition,
    ...(Object.keys(values).length > 0 && { ExpressionAttributeValues: values }),
    ReturnValues: 'ALL_NEW',
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  });
  const outcome = await conditionalWrite(dynamodb, command, leaseTable(table, 'write'), call);
  const item = outcome.won ? outcome.item : outcome.old;
  return { won: outcome.won, standing: parseRecord(item ?? { key: text(key) }) };
}
