import { integer, text } from '../aws/attributes.ts';
import type { Item } from '../aws/dynamodb.ts';
import { RING } from './identity.ts';

/** No name of a request, and no fence. */
const NONE = '-';

const SLOTS = Array.from({ length: RING }, (_, slot) => slot);

/** The earlier requests move on by this many slots. DynamoDB computes every value from the record as it was before the write. */
const shifted = (count: number): string[] =>
  SLOTS.flatMap((slot) =>
    slot < count
      ? [`#r${slot} = :name${slot}`, `#b${slot} = :broken`]
      : ['r', 'b'].map((kind) => `#${kind}${slot} = if_not_exists(#${kind}${slot - count}, :none)`),
  );

const NAMES = Object.fromEntries(SLOTS.flatMap((slot) => [`r${slot}`, `b${slot}`]).map((name) => [`#${name}`, name]));

/** The part of a write that ends permits. */
interface Remembering {
  set: string[];
  names: Record<string, string>;
  values: Item;
}

/**
 * Remembers the requests of permits that end (docs/protocols/pools.md#release). Those before them go on, and the record forgets the oldest.
 * @param requests at most as many as the record remembers
 * @param brokenFence of the permit that an operator breaks
 */
export const remember = (requests: readonly string[], brokenFence?: number): Remembering => ({
  set: shifted(requests.length),
  names: NAMES,
  values: {
    ...Object.fromEntries(requests.toReversed().map((name, slot) => [`:name${slot}`, text(name)])),
    ...(requests.length < RING && { ':none': text(NONE) }),
    ':broken': brokenFence === undefined ? text(NONE) : integer(brokenFence),
  },
});
