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
  /** Nobody is parked. The condition must demand that no task has parked since the queue was read. */
  clearMark?: boolean;
  /** The grant was never delivered. Its request was never answered, so it may ask again, and its ticket may still wait. */
  forgetRequest?: boolean;
}

/**
 * Writes the end of a lease (docs/protocols/leases.md#release). The record stays, released, so that the next grant can raise
 * its fence. DynamoDB may delete it after the retention.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
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
  return conditionalWrite(dynamodb, { command, operation: writing(`table ${table}`) }, call);
}
