import { periodSeconds } from '../periods.ts';
import { ONLY_SLOT, slotAt } from './slots.ts';

/** The fields of a call that choose the slot, and how long the result is kept. */
interface Terms {
  slot?: string | undefined;
  per?: string | undefined;
  keepSeconds?: number | undefined;
  ttlSeconds: number;
}

const DAY_SECONDS = 86_400;

/** @param now the service's clock, in epoch milliseconds */
export function slotOf({ slot, per }: Terms, now: number): string {
  const seconds = per === undefined ? undefined : periodSeconds(per);
  return slot ?? (seconds === undefined ? ONLY_SLOT : slotAt(now, seconds));
}

/** The least `keepSeconds`: the ttl, and two periods, because a late caller of the former period must find the slot that is done. */
export const leastKeepSeconds = ({ per, ttlSeconds }: Terms): number =>
  Math.max(ttlSeconds, 2 * (per === undefined ? 0 : (periodSeconds(per) ?? 0)));

export const keepSecondsOf = (terms: Terms): number =>
  terms.keepSeconds ?? Math.max(DAY_SECONDS, leastKeepSeconds(terms));
