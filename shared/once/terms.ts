import { DAY_SECONDS } from '../periods.ts';
import { isPeriod, isZone, lengthOf, ONLY_SLOT, slotAt } from './slots.ts';

/** The fields of a call that say which slot it wants, and how long the result is kept. */
interface SlotTerms {
  slot?: string | undefined;
  per?: string | undefined;
  zone?: string | undefined;
  keepSeconds?: number | undefined;
  ttlSeconds: number;
}

const WEEK_SECONDS = 7 * DAY_SECONDS;

export const ONCE_PERIOD_RULE = 'must be a period such as 15m, 1h, 1d or 1w, of at most 366 days';
export const ZONE_RULE = 'must be the IANA name of a time zone, such as Europe/Berlin';

/** The slot of a call. @param now the clock of the service, in epoch milliseconds */
export const slotOf = ({ slot, per, zone }: SlotTerms, now: number): string =>
  slot ?? (per === undefined ? ONLY_SLOT : slotAt(now, { per, zone }));

/**
 * The lowest `keepSeconds`: the ttl, and two periods, because a late caller of the former period must find that its
 * slot is done.
 */
const minKeepSeconds = ({ per, ttlSeconds }: SlotTerms): number =>
  Math.max(ttlSeconds, 2 * (per === undefined ? 0 : (lengthOf(per) ?? 0)));

export const keepSecondsOf = (terms: SlotTerms): number =>
  terms.keepSeconds ?? Math.max(DAY_SECONDS, minKeepSeconds(terms));

/** What is wrong with the terms of a call. @returns the field and the message. Undefined if nothing is wrong */
export function termsFault(terms: SlotTerms): [path: string, message: string] | undefined {
  const { slot, per, zone, keepSeconds = Infinity } = terms;
  const seconds = per === undefined ? Number.NaN : lengthOf(per);
  if (seconds === undefined) return ['per', ONCE_PERIOD_RULE];
  // Periods of seven days are counted from 1970-01-01, and would begin on Thursday.
  if (seconds % WEEK_SECONDS === 0 && !per?.endsWith('w'))
    return ['per', `must be ${seconds / WEEK_SECONDS}w: a week begins on Monday`];
  if (zone !== undefined && seconds % DAY_SECONDS !== 0) return ['zone', 'needs a per of whole days or weeks'];
  if (zone !== undefined && !isZone(zone)) return ['zone', ZONE_RULE];
  if (slot !== undefined && per !== undefined && !isPeriod(slot, { per }))
    return ['slot', 'cannot be combined with per, except for the slot that retryWith gave you'];
  const minSeconds = minKeepSeconds(terms);
  if (keepSeconds < minSeconds)
    return ['keepSeconds', `must be at least ${minSeconds}: the ttlSeconds, and two periods of per`];
  return undefined;
}
