import { UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { conditionFields } from '../aws/condition.ts';
import { conditionalWrite } from '../aws/dynamodb.ts';
import { writing } from '../aws/send.ts';
import type { LeaseDependencies } from '../locks/dependencies.ts';
import { mayBegin } from './conditions.ts';
import { type OnceGrant, onceItem } from './once-grant.ts';

/** Optional attributes of the former grant, which a new grant removes unless it sets them. */
const OF_THE_GRANT_BEFORE = ['execution', 'input_hash'];

/** Writes the grant, and leaves the last slot that is done. @throws HoldfastError Throttled, Unavailable, OutcomeUnknown */
export function writeGrant({ dynamodb, table, clockSkewMs }: LeaseDependencies, grant: OnceGrant, call: Call) {
  const attributes = onceItem(grant);
  const names = Object.keys(attributes);
  const removed = OF_THE_GRANT_BEFORE.filter((name) => !names.includes(name));
  const set = `SET ${names.map((name) => `${name} = :new_${name}`).join(', ')}`;
  const command = new UpdateItemCommand({
    TableName: table,
    Key: { key: text(grant.key) },
    UpdateExpression: removed.length > 0 ? `${set} REMOVE ${removed.join(', ')}` : set,
    ...conditionFields(mayBegin(grant, grant.acquiredAt - clockSkewMs), {
      values: Object.fromEntries(Object.entries(attributes).map(([name, value]) => [`:new_${name}`, value])),
    }),
    ReturnValues: 'ALL_OLD',
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  });
  return conditionalWrite(dynamodb, { command, operation: writing(`table ${table}`) }, call);
}
