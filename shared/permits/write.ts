import { UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { integer } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { type Condition, conditionFields } from '../aws/condition.ts';
import { conditionalWrite, type Item } from '../aws/dynamodb.ts';
import { writing } from '../aws/send.ts';
import { HoldfastError } from '../errors.ts';
import type { PoolDependencies } from './dependencies.ts';
import { keyOf, type PoolRecord, parsePool } from './record.ts';

/** No permit is longer, so that TTL never deletes a record with a live holder. */
const LONGEST_TTL_SECONDS = 86_400;

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
}

/**
 * One conditional update of a pool's record, and no read. Each one moves the TTL of the record.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function updatePool(
  dependencies: PoolDependencies,
  { key, now, set, remove = [], condition, names = {}, values = {} }: Update,
  call: Call,
): Promise<Written> {
  const { dynamodb, poolsTable, fenceRetentionSeconds } = dependencies;
  const removed = remove.length > 0 ? ` REMOVE ${remove.join(', ')}` : '';
  const ttlAt = Math.ceil(now / 1000) + LONGEST_TTL_SECONDS + fenceRetentionSeconds;
  const command = new UpdateItemCommand({
    TableName: poolsTable,
    Key: keyOf(key),
    UpdateExpression: `SET ${[...set, '#ttl_at = :ttl_at'].join(', ')}${removed}`,
    ...conditionFields(condition, {
      names: { ...names, '#ttl_at': 'ttl_at' },
      values: { ...values, ':ttl_at': integer(ttlAt) },
    }),
    ReturnValues: 'ALL_NEW',
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  });
  const request = { command, operation: writing(`table ${poolsTable}`) };
  const outcome = await conditionalWrite(dynamodb, request, call).catch(async (error) => {
    const cause: unknown = error instanceof HoldfastError && error.code === 'Unavailable' && error.cause;
    if (!(cause instanceof Error) || cause.name !== 'ValidationException') throw error;
    const { refusedFor } = await import('./refused.ts');
    return refusedFor(dependencies, { key, cause, entry: condition.names?.['#h'] }, call);
  });
  const record = parsePool(key, outcome.won ? outcome.item : outcome.old);
  return { won: outcome.won, record, unanswered: !outcome.won && outcome.unanswered };
}
