import { UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { integer, text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { conditionFields } from '../aws/condition.ts';
import { conditionalWrite } from '../aws/dynamodb.ts';
import { writing } from '../aws/send.ts';
import type { LostReason } from '../locks/calls/types.ts';
import type { LeaseDependencies } from '../locks/dependencies.ts';
import { hasLeaseId } from '../locks/record/conditions.ts';
import { proofOf } from '../locks/record/identity.ts';
import { lostReason } from '../locks/record/refusals.ts';
import { capTtlOr, endExclusive } from '../locks/record/requests.ts';
import type { CompleteInput } from './inputs.ts';
import { type Done, parseOnce } from './record.ts';
import { onceRowOf } from './row-key.ts';

export type Completed =
  | { key: string; completed: true; repeated: boolean; slot: string; doneAt: string; fence: number | null }
  | { key: string; completed: false; reason: Exclude<LostReason, 'superseded'> };

/**
 * Stores the result of a slot and ends the grant, with one conditional UpdateItem (docs/protocols/once.md#complete). A
 * repeat changes nothing. A caller that no longer holds the grant cannot store a result.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export function completeOnce(dependencies: LeaseDependencies) {
  const { dynamodb, clock, table } = dependencies;
  return async ({ key, leaseId, result = null }: CompleteInput, call: Call): Promise<Completed> => {
    const proof = proofOf(leaseId);
    if (!proof) return { key, completed: false, reason: 'unknown' };
    const row = onceRowOf(key);
    const now = clock.now();
    const end = endExclusive(dependencies, { key: row, entry: proof, how: 'released', now });
    const command = new UpdateItemCommand({
      TableName: table,
      Key: { key: text(row) },
      UpdateExpression:
        'SET done_slot = slot, done_at = :now, done_by = :id, done_holder = #h.h, done_fence = fence, #result = :result, ' +
        'done_input_hash = if_not_exists(input_hash, :none), keep_until = :now + keep_ms, ' +
        `lease_expiry = ${capTtlOr(':seconds')} + #h.u, ` +
        `used = used - #h.w, ${end.set.join(', ')} REMOVE #h.d, #h.s, #h.o, ${end.remove.join(', ')}`,
      // The holder of an expired grant may store its result until another caller takes over, just as a heartbeat revives
      // a lease.
      ...conditionFields(hasLeaseId(proof), {
        names: { '#result': 'result' },
        values: {
          ...end.values,
          ':seconds': integer(Math.ceil(now / 1000)),
          ':result': text(JSON.stringify(result)),
          ':none': text(''),
        },
      }),
      ReturnValues: 'ALL_NEW',
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
    });
    const outcome = await conditionalWrite(dynamodb, { command, operation: writing(`table ${table}`) }, call);
    const record = parseOnce(row, outcome.won ? outcome.item : outcome.old);
    if (record.done?.by === proof.id) return storedView(key, record.done, !outcome.won);
    const lost = lostReason(record, proof) as Exclude<LostReason, 'superseded'>; // no request of `once` replaces another
    // A try without an answer may have stored the result, and another caller may have done a later slot since.
    const reason = lost === 'taken' && !outcome.won && outcome.unanswered ? 'unknown' : lost;
    return { key, completed: false, reason };
  };
}

function storedView(key: string, { slot, at, fence }: Done, repeated: boolean): Completed {
  return { key, completed: true, repeated, slot, doneAt: new Date(at).toISOString(), fence: fence ?? null };
}
