import { DeleteItemCommand, PutItemCommand } from '@aws-sdk/client-dynamodb';
import { integer, text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { all, type Condition, conditionFields } from '../aws/condition.ts';
import { conditionalWrite, type Item } from '../aws/dynamodb.ts';
import { outcomeUnknown, writing } from '../aws/send.ts';
import { HoldfastError } from '../errors.ts';
import type { LeaseDependencies } from '../locks/dependencies.ts';
import type { ForgetRateInput } from './inputs.ts';
import { hasCapAt, onlyCap } from './rate-cap.ts';
import { viewOf } from './read.ts';
import { parseRate, rateRowOf } from './record.ts';

export interface ForgottenRate {
  key: string;
  forgotten: true;
}

/**
 * Forgets all reservations of a key, for an operator that read this *paid until* (docs/protocols/rates.md#forget). The
 * next caller starts at once. Callers that have a start keep it. If the row has a cap, it stays with the cap alone.
 * @throws HoldfastError NotFound, Conflict (a caller has reserved since), Throttled, Unavailable, OutcomeUnknown
 */
export function forgetRate(dependencies: LeaseDependencies) {
  const { dynamodb, table } = dependencies;
  return async ({ key, paidUntil }: ForgetRateInput, call: Call): Promise<ForgottenRate> => {
    const paidUntilSeen = Date.parse(paidUntil) * 1000;
    const operation = writing(`table ${table}`);
    const isPaidAsSeen: Condition = { expression: 'paid_until <= :seen', values: { ':seen': integer(paidUntilSeen) } };
    let mayHaveLanded = false;
    let old: Item | undefined;
    for (;;) {
      const { capAt } = parseRate(old);
      const row = {
        TableName: table,
        ...conditionFields(all(isPaidAsSeen, hasCapAt(capAt))),
        ReturnValuesOnConditionCheckFailure: 'ALL_OLD' as const,
      };
      const command =
        old && capAt !== undefined
          ? new PutItemCommand({ ...row, Item: onlyCap(old) })
          : new DeleteItemCommand({ ...row, Key: { key: text(rateRowOf(key)) } });
      const outcome = await conditionalWrite(dynamodb, { command, operation }, call);
      if (outcome.won) return { key, forgotten: true };
      mayHaveLanded ||= outcome.unanswered;
      if (mayHaveLanded) throw outcomeUnknown(operation, undefined, { key });
      old = outcome.old;
      const found = parseRate(old);
      if (old?.paid_until === undefined)
        throw new HoldfastError('NotFound', 'no caller has reserved at a rate of the key', { key });
      if (!(Number(found.paidUntil) <= paidUntilSeen) || found.capAt === capAt) {
        const detail = 'a caller has reserved since: read the key, and forget its rate as it is now';
        throw new HoldfastError('Conflict', detail, { key, actual: viewOf(dependencies, key, old) });
      }
    }
  };
}
