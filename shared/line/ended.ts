import { integer, text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import type { Item } from '../aws/dynamodb.ts';
import { isInstant } from '../surroundings/clock.ts';

export const ENDINGS = ['released', 'expired', 'broken', 'executionEnded'] as const;
export type Ending = (typeof ENDINGS)[number];

/** How a grant ended that its holder had received (docs/protocols/locks.md#previous). `at` is in epoch milliseconds. */
export interface Ended {
  holder: string;
  fence: number;
  ended: Ending;
  at: number;
  /** The operator that broke the grant, if `ended` is `broken` and the operator was authenticated. */
  by?: string | undefined;
}

/** The attributes of a grant from the line that keep the holder before, because another call sends the answer. */
export const endedItem = ({ holder, fence, ended, at, by }: Ended): Item => ({
  prev_holder: text(holder),
  prev_fence: integer(fence),
  prev_ended: text(ended),
  prev_at: integer(at),
  ...(by !== undefined && { prev_by: text(by) }),
});

export function parseEnded(item: Item): Ended | undefined {
  const holder = item.prev_holder?.S;
  const ended = ENDINGS.find((one) => one === item.prev_ended?.S);
  const [fence, at] = [Number(item.prev_fence?.N ?? Number.NaN), Number(item.prev_at?.N ?? Number.NaN)];
  if (holder === undefined || ended === undefined || !Number.isSafeInteger(fence) || !isInstant(at)) return undefined;
  return { holder, fence, ended, at, ...(item.prev_by?.S !== undefined && { by: item.prev_by.S }) };
}

/** The name of an operator in a record has up to this many characters: the records of pools are large already. */
const MAX_OPERATOR = 256;

/** The name of the operator that breaks a grant, for its record. Undefined if the operator is not authenticated. */
export const operatorOf = ({ principal }: Pick<Call, 'principal'>): string | undefined =>
  principal?.slice(0, MAX_OPERATOR);
