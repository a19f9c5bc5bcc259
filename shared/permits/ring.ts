import { integer, text } from '../aws/attributes.ts';
import type { Item } from '../aws/dynamodb.ts';
import { RING } from './names.ts';

/** No name of a request, and no fence. */
const NONE = '-';

const slots = (parts: (slot: number) => [released: string, broken: string]): string[] =>
  Array.from({ length: RING }, (_, slot) => parts(slot)).flat();

/** DynamoDB computes every value from the record as it was before the write. */
const SHIFTED = slots((slot) => [
  slot === 0 ? '#r0 = :name' : `#r${slot} = if_not_exists(#r${slot - 1}, :none)`,
  slot === 0 ? '#b0 = :broken' : `#b${slot} = if_not_exists(#b${slot - 1}, :none)`,
]);

const NAMES = Object.fromEntries(slots((slot) => [`r${slot}`, `b${slot}`]).map((name) => [`#${name}`, name]));

/** The part of a write that ends a permit. */
interface Remembering {
  set: string[];
  names: Record<string, string>;
  values: Item;
}

/**
 * Remembers the request of a permit that ends (docs/protocols/pools.md#release). Those before it go one slot on, and the record forgets the oldest.
 * @param brokenFence of the permit that an operator breaks
 */
export const remember = (name: string, brokenFence?: number): Remembering => ({
  set: SHIFTED,
  names: NAMES,
  values: {
    ':name': text(name),
    ':none': text(NONE),
    ':broken': brokenFence === undefined ? text(NONE) : integer(brokenFence),
  },
});
