import { all, any, type Condition, not } from '../aws/condition.ts';
import type { Item } from '../aws/dynamodb.ts';
import type { CommitRecord } from './record.ts';

// `path`, `timeout` and `ttl` are reserved words of DynamoDB.
const names = { '#path': 'path' };

export const isNew: Condition = { expression: 'attribute_not_exists(#path)', names };

const exists: Condition = { expression: 'attribute_exists(#path)', names };
const isForeign: Condition = { expression: 'attribute_not_exists(commit_id)' };

/**
 * This service's record is unchanged since it was read. The generation alone does not show this: TTL may
 * have deleted the record, and another record may have reached the same generation.
 */
export const isUnchanged = ({ ownIdentity }: CommitRecord): Condition =>
  hasSameIdentity(ownIdentity, { generation: 'generation', commit_id: 'commit_id' });

/**
 * Another client's record is unchanged since it was read. TTL may have deleted that record since,
 * and another record may have begun at generation 0.
 */
export const isUnchangedForeign = ({ identity }: CommitRecord): Condition =>
  all(exists, isForeign, hasSameIdentity(identity, { generation: 'generation', timeout: 'timeout', ttl: 'ttl' }));

/** The record has not been observed yet. A later observation of the same record must not replace the first one. */
export const isUnobserved = ({ identity }: CommitRecord, attributes: Record<string, string>): Condition =>
  any(isNew, not(hasSameIdentity(identity, attributes)));

/** @param attributes the attribute that holds each part of the identity */
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
