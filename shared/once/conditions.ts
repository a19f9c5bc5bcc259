import { integer, text } from '../aws/attributes.ts';
import { all, type Condition } from '../aws/condition.ts';
import { isUncapped } from '../locks/record/capped.ts';
import { isFenceBelow, isNotRemembered, isToBeHadAlone } from '../locks/record/conditions.ts';
import type { OnceGrant } from './once-grant.ts';

/** Neither the slot nor a later slot is done, or `keep_until` is over. @param cut now, less the margin of the clocks */
const isNotDone = (slot: string, cut: number): Condition => ({
  expression: 'attribute_not_exists(done_slot) OR done_slot < :slot OR keep_until < :cut',
  values: { ':slot': text(slot), ':cut': integer(cut) },
});

/** The result of the grant is kept at least as long as the result that it replaces. */
const keepsLonger = (keepUntil: number): Condition => ({
  expression: 'attribute_not_exists(keep_until) OR keep_until <= :keepUntil',
  values: { ':keepUntil': integer(keepUntil) },
});

/** The first row of the table in docs/protocols/once.md#writes. */
export const mayBegin = ({ name, slot, fence, acquiredAt, keepMs }: OnceGrant, cut: number): Condition =>
  all(
    isToBeHadAlone(cut),
    isNotRemembered(name),
    isNotDone(slot, cut),
    isFenceBelow(fence),
    keepsLonger(acquiredAt + keepMs),
    isUncapped(cut),
  );

/** The last row of that table. */
export const mayForget = (fence: number): Condition => ({
  expression: 'fence = :fence AND used = :none',
  values: { ':fence': integer(fence), ':none': integer(0) },
});
