import { all, any, type Condition, not } from '../aws/condition.ts';
import type { Item } from '../aws/dynamodb.ts';
import type { CommitRecord } from './record.ts';

// `path`, `timeout` and `ttl` are reserved words of DynamoDB.
const names = { '#path': 'path' };

export const isNew: Condition = { expression: 'attribute_not_exists(#path)', names };

const exists: Condition = { expression: 'attribute_exists(#path)', names };
const isForeign: Condition = { expression: 'attribute_not_exists(commit_id)' };

/** One of our records. The generation alone could be another record's, because TTL may have removed the one that was seen. */
export const isStill = ({ ownIdentity }: CommitRecord): Condition =>
  hasSameIdentity(ownIdentity, { generation: 'generation', commit_id: 'commit_id' });

/** The very record that was seen. TTL may have removed it meanwhile, and another may have begun at generation 0. */
export const isStillForeign = ({ identity }: CommitRecord): Condition =>
  all(exists, isForeign, hasSameIdentity(identity, { generation: 'generation', timeout: 'timeout', ttl: 'ttl' }));

/** An observation is not moved by a later one of the same record, only by one of another record. */
export const isUnobserved = ({ identity }: CommitRecord, attributes: Record<string, string>): Condition =>
  any(isNew, not(hasSameIdentity(identity, attributes)));

/** @param attributes where each part of the identity is kept */
function hasSameIdentity(identity: Item, attributes: Record<string, string>): Condition {
  const [first, ...others] = Object.entries(attributes).map(([name, attribute]): Condition => {
    const value = identity[name];
    const placeholder = { names: { [`#${name}`]: attribute } };
    if (!value) return { expression: `attribute_not_exists(#${name})`, ...placeholder };
    return { expression: `#${name} = :${name}`, ...placeholder, values: { [`:${name}`]: value } };
  });
  if (!first) throw new Error('a record has no identity');
  return all(first, ...others);
}
