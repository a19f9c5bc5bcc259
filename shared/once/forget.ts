import { UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { conditionFields } from '../aws/condition.ts';
import { conditionalWrite } from '../aws/dynamodb.ts';
import { outcomeUnknown, writing } from '../aws/send.ts';
import { HoldfastError } from '../errors.ts';
import type { LeaseDependencies } from '../locks/dependencies.ts';
import { EXCLUSIVE_WEIGHT } from '../locks/record/identity.ts';
import { leaseHeld } from '../locks/record/refusals.ts';
import { keySummary } from '../locks/record/views.ts';
import { mayForget } from './conditions.ts';
import type { ForgetInput } from './inputs.ts';
import { parseOnce, runOf } from './record.ts';
import { onceRowOf } from './row-key.ts';

export interface Forgotten {
  key: string;
  forgotten: true;
  fence: number;
  /**
   * The slot that was forgotten. Null if the record remembered none, because the call is a repeat or no result was
   * stored under this fence.
   */
  slot: string | null;
}

/**
 * The attributes that remember a slot. `done_fence` stays: it tells the next begin that the former worker completed.
 */
const MEMORY = ['done_slot', 'done_at', 'done_by', 'done_holder', 'done_input_hash', 'keep_until'];

/**
 * Forgets which slot is done, for an operator that read this fence of the key (docs/protocols/once.md#forget). The next
 * caller works again.
 * @throws HoldfastError NotFound (no record), Conflict (another fence), LeaseHeld (a caller works), Throttled,
 *   Unavailable, OutcomeUnknown
 */
export function forgetOnce({ dynamodb, clock, table, clockSkewMs }: LeaseDependencies) {
  return async ({ key, fence }: ForgetInput, call: Call): Promise<Forgotten> => {
    const command = new UpdateItemCommand({
      TableName: table,
      Key: { key: text(onceRowOf(key)) },
      UpdateExpression: `REMOVE #result, ${MEMORY.join(', ')}`,
      ...conditionFields(mayForget(fence), { names: { '#result': 'result' } }),
      ReturnValues: 'ALL_OLD',
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
    });
    const operation = writing(`table ${table}`);
    const outcome = await conditionalWrite(dynamodb, { command, operation }, call);
    if (outcome.won) {
      const { done } = parseOnce(onceRowOf(key), outcome.item);
      return { key, forgotten: true, fence, slot: done?.slot ?? null };
    }
    if (outcome.unanswered) throw outcomeUnknown(operation, undefined, { key });
    if (!outcome.old) throw new HoldfastError('NotFound', 'no caller has begun a slot of the key', { key });
    const record = { ...parseOnce(onceRowOf(key), outcome.old), key };
    const run = runOf(record);
    const now = clock.now();
    const alone = { name: '', weight: EXCLUSIVE_WEIGHT, room: 0, limit: null };
    // The reason is the run, even if the key is paused too.
    if (run && record.fence === fence)
      throw leaseHeld({ ...record, cap: undefined }, { request: alone, now, clockSkewMs });
    const detail = 'the key has another fence: read the key, and forget its slot with its current fence';
    throw new HoldfastError('Conflict', detail, { key, actual: keySummary(record, now) });
  };
}
