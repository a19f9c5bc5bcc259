import { DeleteItemCommand } from '@aws-sdk/client-dynamodb';
import { integer, text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { conditionFields } from '../aws/condition.ts';
import { conditionalWrite } from '../aws/dynamodb.ts';
import { outcomeUnknown, writing } from '../aws/send.ts';
import { HoldfastError } from '../errors.ts';
import type { LeaseDependencies } from '../locks/dependencies.ts';
import type { ForgetRateInput } from './inputs.ts';
import { viewOf } from './read.ts';
import { rowOf } from './record.ts';

export interface ForgottenRate {
  key: string;
  forgotten: true;
}

/**
 * Forgets all reservations, for an operator that saw the key paid until this time. The next caller starts at once. Callers that have a start keep it.
 * @throws HoldfastError NotFound, Conflict (a caller has reserved since), Throttled, Unavailable, OutcomeUnknown
 */
export function forgetRate({ dynamodb, table }: LeaseDependencies) {
  return async ({ key, paidUntil }: ForgetRateInput, call: Call): Promise<ForgottenRate> => {
    const command = new DeleteItemCommand({
      TableName: table,
      Key: { key: text(rowOf(key)) },
      ...conditionFields({
        expression: 'paid_until <= :seen',
        values: { ':seen': integer(Date.parse(paidUntil) * 1000) },
      }),
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
    });
    const operation = writing(`table ${table}`);
    const outcome = await conditionalWrite(dynamodb, { command, operation }, call);
    if (outcome.won) return { key, forgotten: true };
    if (outcome.unanswered) throw outcomeUnknown(operation, undefined, { key });
    if (!outcome.old) throw new HoldfastError('NotFound', 'no caller has reserved at a rate of the key', { key });
    const detail = 'a caller has reserved since: read the key, and forget its rate as it is now';
    throw new HoldfastError('Conflict', detail, { key, actual: viewOf(key, outcome.old) });
  };
}
