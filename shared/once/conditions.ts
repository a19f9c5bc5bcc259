import { integer, text } from '../aws/attributes.ts';
import { all, type Condition } from '../aws/condition.ts';
import { hasNoCurrentCap } from '../locks/record/capped.ts';
import { isFenceBelow, isFreeForExclusive, isNotRemembered } from '../locks/record/conditions.ts';
import type { OnceGrant } from './once-grant.ts';

/**
 * Neither the slot nor a later one is done, or the result has been kept long enough.
 * @param cut now minus the clock skew margin
 */
const isNotDone = (slot: string, cut: number): Condition => ({
  expression: 'attribute_not_exists(done_slot) OR done_slot < :slot OR keep_until < :cut',
  values: { ':slot': text(slot), ':cut': integer(cut) },
});

/** The result of this grant will be kept at least as long as the result that it replaces. */
const keepsLonger = (keepUntil: number): Condition => ({
  expression: 'attribute_not_exists(keep_until) OR keep_until <= :keepUntil',
  values: { ':keepUntil': integer(keepUntil) },
});

/**
 * The condition of begin (docs/protocols/once.md#writes). `judgeSlot` has the same rules for a record that was read.
 */
export const mayBegin = ({ name, slot, fence, acquiredAt, keepMs }: OnceGrant, cut: number): Condition =>
  all(
    isFreeForExclusive(cut),
    isNotRemembered(name),
    isNotDone(slot, cut),
    isFenceBelow(fence),
    keepsLonger(acquiredAt + keepMs),
    hasNoCurrentCap(cut),
  );

/** The condition of forget: the operator has read this fence, and no caller works. */
export const mayForget = (fence: number): Condition => ({
  expression: 'fence = :fence AND used = :none',
  values: { ':fence': integer(fence), ':none': integer(0) },
});
