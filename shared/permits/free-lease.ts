import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { aliased, all, type Condition } from '../aws/condition.ts';
import type { Item } from '../aws/dynamodb.ts';

// The record of a free lease that the first permit of a key replaces (docs/protocols/kinds.md).

/** No caller has had the key since the record was seen, and no waiter has joined. */
export function isStillFree(over: Item): Condition {
  const as = (name: string, value: AttributeValue | undefined): Condition =>
    value === undefined
      ? aliased(`attribute_not_exists(#${name})`)
      : aliased(`#${name} = :seen_${name}`, { [`:seen_${name}`]: value });
  return all(
    aliased('attribute_not_exists(#waiters) AND attribute_not_exists(#mark) AND attribute_not_exists(#used)'),
    as('fence', over.fence),
    as('lease_version', over.lease_version),
  );
}

const KEPT: ReadonlySet<string> = new Set(['key', 'fence', 'lease_version', 'lease_expiry']);

/** The attributes of a lease, which a permit does not have. */
export function leftovers(over: Item = {}): { remove: string[]; names: Record<string, string> } {
  const attributes = Object.keys(over).filter((name) => !KEPT.has(name));
  return {
    remove: attributes.map((_, nth) => `#o${nth}`),
    names: Object.fromEntries(attributes.map((name, nth) => [`#o${nth}`, name])),
  };
}
