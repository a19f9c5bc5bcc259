import { UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { conditionFields } from '../aws/condition.ts';
import { conditionalWrite } from '../aws/dynamodb.ts';
import { writing } from '../aws/send.ts';
import type { LeaseDependencies } from '../locks/dependencies.ts';
import { mayBegin } from './conditions.ts';
import { type OnceGrant, onceItem } from './once-grant.ts';

/**
 * The optional attributes of a grant. A new grant that does not set them removes the attributes of the grant before.
 */
const OPTIONAL_ATTRIBUTES = ['execution', 'input_hash'];

/**
 * Writes the grant of a run, and keeps the last slot that is done.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export function writeGrant({ dynamodb, table, clockSkewMs }: LeaseDependencies, grant: OnceGrant, call: Call) {
  const attributes = onceItem(grant);
  const names = Object.keys(attributes);
  const removed = OPTIONAL_ATTRIBUTES.filter((name) => !names.includes(name));
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
