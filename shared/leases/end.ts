import { UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { integer, text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { type Condition, conditionFields } from '../aws/condition.ts';
import { conditionalWrite, type Item } from '../aws/dynamodb.ts';
import { writing } from '../aws/send.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { type Ended, endedItem, operatorOf } from '../line/ended.ts';
import type { Staying } from '../line/waiters.ts';
import { hasMemory } from './memory.ts';
import { assigning, removedMark } from './write.ts';

interface End {
  key: string;
  /** Names the grant by its lease id, its version or its fence. A fence alone does not exclude a pool. */
  condition: Condition;
  markBroken?: boolean;
  /** If the line is empty: the rows that stay in it. The condition must demand that nothing has joined it since it was read. */
  clearMark?: Staying | undefined;
  /**
   * The request may ask again: its execution has ended, and may be redriven, or the new holder never received the grant. The record names for the next
   * holder whom its own grant is to name (`previous`).
   */
  forget?: { last: Ended | undefined };
}

/**
 * Writes the end of a lease (docs/protocols/leases.md#release). The record stays, released, so that the next grant can raise
 * its fence. DynamoDB may delete it after the retention.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export function endLease(
  { dynamodb, clock, table, fenceRetentionSeconds }: LeaseDependencies,
  { key, condition, markBroken, clearMark, forget }: End,
  call: Call,
) {
  const now = clock.now();
  // A repeat of the break answers with both: until when the holder may go on, and its last heartbeat.
  const broken = markBroken ? ', broken_at = :now, broken_until = if_not_exists(expires_at, :now)' : '';
  const operator = markBroken ? operatorOf(call) : undefined;
  const by = operator === undefined ? '' : ', broken_by = if_not_exists(broken_by, :operator)';
  const last: Item = forget?.last ? endedItem(forget.last) : {};
  const stale = forget?.last && !('prev_by' in last) ? ', prev_by' : '';
  const forgotten = forget ? ', request_id, holder, principal, ticket' : '';
  const unmarked = clearMark && removedMark(clearMark);
  const passedOn = assigning({ ...last, ...unmarked?.set });
  const removed = `${(unmarked?.removed ?? []).map((name) => `, ${name}`).join('')}${forgotten}${stale}`;
  const retention = hasMemory(key) ? '' : ', lease_expiry = :retention';
  const command = new UpdateItemCommand({
    TableName: table,
    Key: { key: text(key) },
    UpdateExpression:
      `SET released_at = :now${retention}${broken}${by}${passedOn.assigned && `, ${passedOn.assigned}`} ` +
      `REMOVE lease_version, expires_at, execution, target, grace_ms, ended_execution` +
      `${markBroken ? '' : ', heartbeat_at'}${removed}`,
    ...conditionFields(condition, {
      values: {
        ':now': integer(now),
        ...(retention && { ':retention': integer(Math.ceil(now / 1000) + fenceRetentionSeconds) }),
        ...(operator !== undefined && { ':operator': text(operator) }),
        ...passedOn.values,
      },
    }),
    ReturnValues: markBroken ? 'ALL_NEW' : 'NONE',
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  });
  return conditionalWrite(dynamodb, { command, operation: writing(`table ${table}`) }, call);
}
