import { integer, text } from '../aws/attributes.ts';
import { all, any, type Condition } from '../aws/condition.ts';
import {
  hasFence,
  hasLeaseId,
  isBelow,
  isExpired,
  isFree,
  isFreeFor,
  isHeld,
  isNotEndingFor,
} from '../leases/conditions.ts';
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
export function mayBegin(grant: OnceGrant, cut: number): Condition {
  const canBeHad = any(isFreeFor(grant), all(isExpired(cut), isNotEndingFor(grant)));
  const keepUntil = grant.acquiredAt + grant.keepMs;
  return all(canBeHad, isNotDone(grant.slot, cut), isBelow(grant.fence), keepsLonger(keepUntil));
}

/** The second row of that table. An expired grant that no caller has taken may store its result, as a heartbeat revives a lease. */
export const mayComplete = (leaseId: string): Condition => all(hasLeaseId(leaseId), isHeld);

/** The last row of that table. */
export const mayForget = (fence: number): Condition => all(hasFence(fence), isFree);
