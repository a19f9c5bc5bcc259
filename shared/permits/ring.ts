import { integer, text } from '../aws/attributes.ts';
import type { Item } from '../aws/dynamodb.ts';
import { RING } from './identity.ts';

/** No name of a request, and no fence. */
const NONE = '-';

const SLOTS = Array.from({ length: RING }, (_, slot) => slot);

/** Moves the earlier requests on by a slot. DynamoDB computes every value from the record as it was before the write. */
const SHIFTED = SLOTS.flatMap((slot) =>
  slot === 0
    ? ['r0 = :name', 'b0 = :broken']
    : ['r', 'b'].map((kind) => `${kind}${slot} = if_not_exists(${kind}${slot - 1}, :none)`),
);

/** The part of a write that ends a permit. */
interface Remembering {
  set: string[];
  values: Item;
}

/**
 * Remembers the request of a permit that is released or broken (docs/protocols/locks.md#release). The record forgets the oldest of eight.
 * @param brokenFence the fence of the permit, if an operator breaks it
 */
export const remember = (name: string, brokenFence?: number): Remembering => ({
  set: SHIFTED,
  values: {
    ...{ ':name': text(name), ':none': text(NONE) },
    ':broken': brokenFence === undefined ? text(NONE) : integer(brokenFence),
  },
});
