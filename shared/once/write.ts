import { UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { conditionFields } from '../aws/condition.ts';
import { conditionalWrite } from '../aws/dynamodb.ts';
import { writing } from '../aws/send.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { ENDED_ATTRIBUTES } from '../line/ended.ts';
import { mayBegin } from './conditions.ts';
import { type OnceGrant, onceItem } from './once-grant.ts';

/** Optional attributes of the former grant, which a new grant removes unless it sets them. */
const OF_THE_GRANT_BEFORE = [
  ...['released_at', 'answered_at', 'broken_at', 'broken_until', 'broken_by', 'ending_at', 'principal', 'data'],
  ...['grace_ms', 'execution', 'target', 'ended_execution', 'input_hash'],
  ...ENDED_ATTRIBUTES,
];

/** Writes the grant, and leaves the last slot that is done. @throws HoldfastError Throttled, Unavailable, OutcomeUnknown */
export function writeGrant(dependencies: LeaseDependencies, grant: OnceGrant, call: Call) {
  const { dynamodb, table, clockSkewMs } = dependencies;
  const { key, ...attributes } = onceItem(dependencies, grant);
  const names = Object.keys(attributes);
  const removed = OF_THE_GRANT_BEFORE.filter((name) => !names.includes(name));
  const command = new UpdateItemCommand({
    TableName: table,
    Key: { key: text(grant.key) },
    UpdateExpression: `SET ${names.map((name) => `#${name} = :new_${name}`).join(', ')} REMOVE ${removed.map((name) => `#${name}`).join(', ')}`,
    ...conditionFields(mayBegin(grant, grant.acquiredAt - clockSkewMs), {
      names: Object.fromEntries([...names, ...removed].map((name) => [`#${name}`, name])),
      values: Object.fromEntries(Object.entries(attributes).map(([name, value]) => [`:new_${name}`, value])),
    }),
    ReturnValues: 'ALL_OLD',
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  });
  return conditionalWrite(dynamodb, { command, operation: writing(`table ${table}`) }, call);
}
