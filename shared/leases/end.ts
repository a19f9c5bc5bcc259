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
  byExecution?: boolean;
  /** Nobody is in line. The condition must demand that nobody has joined since the queue was read. */
  clearMark?: boolean;
  /** Nobody heard of the grant. Its request was never answered, so it may ask again, and its ticket may still wait. */
  forgetRequest?: boolean;
}

/**
 * Writes the end of a lease (docs/protocols/leases.md#release). The record stays, released, so that the next grant can raise
 * its fence. DynamoDB may delete it after the retention.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export function endLease(
  { dynamodb, clock, table, fenceRetentionSeconds }: LeaseDependencies,
  { key, condition, markBroken, byExecution, clearMark, forgetRequest }: End,
  call: Call,
) {
  const now = clock.now();
  const how = `${markBroken ? ', broken_at = :now' : ''}${byExecution ? ', ended_by = :by' : ''}`;
  const forgotten = forgetRequest ? ', request_id, holder, principal, ticket' : '';
  const removed = `${clearMark ? ', waiters, next_ticket, next_tickets, turn_ms, pace_ms, line_out' : ''}${forgotten}`;
  const command = new UpdateItemCommand({
    TableName: table,
    Key: { key: text(key) },
    UpdateExpression:
      `SET released_at = :now, lease_expiry = :retention${how} ` +
      `REMOVE lease_version, expires_at, heartbeat_at, execution, target${removed}`,
    ...conditionFields(condition, {
      values: {
        ':now': integer(now),
        ':retention': integer(Math.ceil(now / 1000) + fenceRetentionSeconds),
        ...(byExecution && { ':by': text('executionEnded') }),
      },
    }),
    ReturnValues: markBroken ? 'ALL_NEW' : 'NONE',
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  });
  return conditionalWrite(dynamodb, { command, operation: writing(`table ${table}`) }, call);
}
