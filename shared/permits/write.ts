import { type AttributeValue, UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { integer, text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { type Condition, conditionFields } from '../aws/condition.ts';
import { conditionalWrite, type Item } from '../aws/dynamodb.ts';
import { writing } from '../aws/send.ts';
import { HoldfastError } from '../errors.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { type PoolRecord, parsePool } from './record.ts';

/** An execution lasts a year at most, so TTL never deletes a record with a live holder. */
const TTL_SECONDS = 400 * 86_400;

/** The TTL attribute of a pool's record, in epoch seconds. Each grant, extension and release moves it. */
export const ttlAfter = (now: number): AttributeValue => integer(Math.ceil(now / 1000) + TTL_SECONDS);

/** The time of the last write on a pool, in epoch milliseconds, rounded up. @param ttlMs its TTL attribute as a time */
export const lastWriteOf = (ttlMs: number): number => ttlMs - TTL_SECONDS * 1000;

/** `record` is the record as it is now: after the write, or as it kept the write from happening. */
export interface Written {
  won: boolean;
  record: PoolRecord;
  /** Whether an earlier try got no answer, and so may have landed. */
  unanswered: boolean;
}

interface Update {
  key: string;
  /** Epoch milliseconds. */
  now: number;
  set: readonly string[];
  remove?: readonly string[];
  condition: Condition;
  names?: Record<string, string>;
  values?: Item;
  /** True if the write leaves the TTL attribute alone: on the record of a third-party client, it is the expiry of that client's lease. */
  keepsTtl?: boolean;
}

/**
 * One conditional update of a pool's record, and no read.
 * @throws OtherKind; HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function updatePool(
  dependencies: LeaseDependencies,
  { key, now, set, remove = [], condition, names = {}, values = {}, keepsTtl = false }: Update,
  call: Call,
): Promise<Written> {
  const { dynamodb, table } = dependencies;
  const assigned = keepsTtl ? set : [...set, '#lease_expiry = :lease_expiry'];
  const clauses = { SET: assigned, REMOVE: remove };
  const ttl = keepsTtl
    ? {}
    : { names: { '#lease_expiry': 'lease_expiry' }, values: { ':lease_expiry': ttlAfter(now) } };
  const command = new UpdateItemCommand({
    TableName: table,
    Key: { key: text(key) },
    UpdateExpression: Object.entries(clauses)
      .flatMap(([clause, parts]) => (parts.length > 0 ? [`${clause} ${parts.join(', ')}`] : []))
      .join(' '),
    ...conditionFields(condition, { names: { ...names, ...ttl.names }, values: { ...values, ...ttl.values } }),
    ReturnValues: 'ALL_NEW',
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  });
  const request = { command, operation: writing(`table ${table}`) };
  const outcome = await conditionalWrite(dynamodb, request, call).catch(async (error) => {
    const cause: unknown = error instanceof HoldfastError && error.code === 'Unavailable' && error.cause;
    if (!(cause instanceof Error) || cause.name !== 'ValidationException') throw error;
    const { refusedFor } = await import('./refused.ts');
    return refusedFor(dependencies, { key, cause, entry: condition.names?.['#h'] }, call);
  });
  const unanswered = !outcome.won && outcome.unanswered;
  const record = parsePool(key, outcome.won ? outcome.item : outcome.old, unanswered);
  return { won: outcome.won, record, unanswered };
}
