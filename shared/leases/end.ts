import { UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { integer, text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { type Condition, conditionFields } from '../aws/condition.ts';
import { conditionalWrite } from '../aws/dynamodb.ts';
import { writing } from '../aws/send.ts';
import type { LeaseDependencies } from './dependencies.ts';

interface End {
  key: string;
  condition: Condition;
  markBroken?: boolean;
  /** Nobody is parked any more: the condition must say that none has come since the queue was seen empty. */
  clearMark?: boolean;
  /** The grant was never delivered: its request was never answered and may ask again, and its ticket may still wait. */
  forgetRequest?: boolean;
}

/**
 * The write that ends a lease. The record stays, released, so that the next grant's fence rises above its own; it may
 * vanish after the retention.
 */
export function endLease(
  { dynamodb, clock, table, fenceRetentionSeconds }: LeaseDependencies,
  { key, condition, markBroken, clearMark, forgetRequest }: End,
  call: Call,
) {
  const now = clock.now();
  const removed = `${clearMark ? ', waiters' : ''}${forgetRequest ? ', request_id, ticket' : ''}`;
  const command = new UpdateItemCommand({
    TableName: table,
    Key: { key: text(key) },
    UpdateExpression:
      `SET released_at = :now, lease_expiry = :retention${markBroken ? ', broken_at = :now' : ''} ` +
      `REMOVE lease_version, expires_at, heartbeat_at, execution, target${removed}`,
    ...conditionFields(condition, {
      values: { ':now': integer(now), ':retention': integer(Math.ceil(now / 1000) + fenceRetentionSeconds) },
    }),
    ReturnValues: markBroken ? 'ALL_NEW' : 'NONE',
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  });
  return conditionalWrite(dynamodb, command, writing(`table ${table}`), call);
}
