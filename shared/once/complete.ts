import { UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { integer, text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { conditionFields } from '../aws/condition.ts';
import { conditionalWrite } from '../aws/dynamodb.ts';
import { writing } from '../aws/send.ts';
import { lostReason } from '../leases/rules.ts';
import type { LostReason } from '../line/calls.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { mayComplete } from './conditions.ts';
import type { CompleteInput } from './inputs.ts';
import { type Done, parseOnce } from './record.ts';
import { rowOf } from './row-key.ts';

export type Completed =
  | { key: string; completed: true; repeated: boolean; slot: string; doneAt: string; fence: number | null }
  | { key: string; completed: false; reason: LostReason };

/**
 * Stores the result of a slot and ends the grant, with one conditional UpdateItem (docs/protocols/once.md#complete). A repeat answers with the result
 * that is stored. A caller that no longer holds the grant stores no result.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export function completeOnce({ dynamodb, clock, table }: LeaseDependencies) {
  return async ({ key, leaseId, result = null }: CompleteInput, call: Call): Promise<Completed> => {
    const now = clock.now();
    const command = new UpdateItemCommand({
      TableName: table,
      Key: { key: text(rowOf(key)) },
      UpdateExpression:
        'SET done_slot = slot, done_at = :now, done_by = :leaseId, done_holder = holder, done_fence = fence, #result = :result, ' +
        'done_input_hash = if_not_exists(input_hash, :none), keep_until = :now + keep_ms, lease_expiry = :seconds + ttl_seconds, released_at = :now ' +
        'REMOVE lease_version, expires_at, heartbeat_at, execution, ending_at, broken_by, #data',
      ...conditionFields(mayComplete(leaseId), {
        names: { '#result': 'result', '#data': 'data' },
        values: {
          ':now': integer(now),
          ':seconds': integer(Math.ceil(now / 1000)),
          ':result': text(JSON.stringify(result)),
          ':none': text(''),
        },
      }),
      ReturnValues: 'ALL_NEW',
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
    });
    const outcome = await conditionalWrite(dynamodb, { command, operation: writing(`table ${table}`) }, call);
    const item = outcome.won ? outcome.item : outcome.old;
    const record = item && parseOnce(rowOf(key), item, !outcome.won && outcome.unanswered);
    if (record?.done?.by === leaseId) return storedView(key, record.done, !outcome.won);
    const seen = lostReason(record, leaseId);
    // A try without an answer may have stored the result before another caller did a later slot. The record does not say.
    const reason = seen === 'taken' && !outcome.won && outcome.unanswered ? 'unknown' : seen;
    return { key, completed: false, reason };
  };
}

function storedView(key: string, { slot, at, fence }: Done, repeated: boolean): Completed {
  return { key, completed: true, repeated, slot, doneAt: new Date(at).toISOString(), fence: fence ?? null };
}
