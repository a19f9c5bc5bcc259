import type { Item } from '../aws/dynamodb.ts';
import type { CommitRecord } from './record.ts';

/** A condition with the names and values it speaks of. `path`, `timeout` and `ttl` are reserved words of DynamoDB. */
export interface Condition {
  ConditionExpression: string;
  ExpressionAttributeNames?: Record<string, string>;
  ExpressionAttributeValues?: Item;
}

export const isNew: Condition = {
  ConditionExpression: 'attribute_not_exists(#path)',
  ExpressionAttributeNames: { '#path': 'path' },
};

/** One of our records: by generation alone it could be another, for TTL may have removed the one that was seen. */
export const isStill = ({ ownIdentity }: CommitRecord): Condition =>
  isSame(ownIdentity, { generation: 'generation', commit_id: 'commit_id' });

/** The very record that was seen: TTL may have removed it meanwhile, and another may begin at generation 0 again. */
export function isStillForeign({ identity }: CommitRecord): Condition {
  const same = isSame(identity, { generation: 'generation', timeout: 'timeout', ttl: 'ttl' });
  return {
    ...same,
    ConditionExpression: `attribute_exists(#path) AND attribute_not_exists(commit_id) AND ${same.ConditionExpression}`,
    ExpressionAttributeNames: { ...same.ExpressionAttributeNames, '#path': 'path' },
  };
}

/** First sights are not moved by whoever comes later, only by another record. */
export function isUnseen({ identity }: CommitRecord, attributes: Record<string, string>): Condition {
  const same = isSame(identity, attributes);
  return {
    ...same,
    ConditionExpression: `attribute_not_exists(#path) OR NOT (${same.ConditionExpression})`,
    ExpressionAttributeNames: { ...same.ExpressionAttributeNames, '#path': 'path' },
  };
}

function isSame(identity: Item, attributes: Record<string, string>): Condition {
  const names: Record<string, string> = {};
  const values: Item = {};
  const conditions = Object.entries(attributes).map(([name, attribute]) => {
    names[`#${name}`] = attribute;
    const value = identity[name];
    if (!value) return `attribute_not_exists(#${name})`;
    values[`:${name}`] = value;
    return `#${name} = :${name}`;
  });
  return {
    ConditionExpression: conditions.join(' AND '),
    ExpressionAttributeNames: names,
    ...(Object.keys(values).length > 0 && { ExpressionAttributeValues: values }),
  };
}
