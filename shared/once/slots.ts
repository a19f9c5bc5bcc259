import { UNIT_SECONDS } from '../periods.ts';

/** The slot of a call without `slot` and `per`, which is done until `keepSeconds` are over. */
export const ONLY_SLOT = '-';

/**
 * How long before its first instant a period begins at most, in milliseconds. A schedule fires at the first instant, by a clock that may be ahead of the
 * service. If its call counted for the period that is about to end, which is done, the next period would be skipped. Not a whole number of seconds, so that no
 * schedule fires at the moment when the period changes.
 */
const MOST_EARLY_MS = 2500;

/** For a short period: a tenth of the period. */
const earlyMs = (seconds: number): number => Math.min(MOST_EARLY_MS, seconds * 100);

/** A date for whole days, and otherwise an instant to the second. @param start epoch milliseconds */
function periodFrom(start: number, seconds: number): string {
  const text = new Date(start).toISOString();
  return seconds % UNIT_SECONDS.d === 0 ? text.slice(0, 'YYYY-MM-DD'.length) : `${text.slice(0, -'.000Z'.length)}Z`;
}

/**
 * The period that a call at `now` works for, by its first instant in UTC. Periods count from 1970-01-01T00:00:00Z, and begin a little early
 * (docs/protocols/once.md#slots).
 * @param now epoch milliseconds
 */
export function slotAt(now: number, seconds: number): string {
  const ms = seconds * 1000;
  return periodFrom(Math.floor((now + earlyMs(seconds)) / ms) * ms, seconds);
}

/** Whether a slot is the name of a period, as `slotAt` writes it. */
export function isPeriod(slot: string, seconds: number): boolean {
  const start = Date.parse(slot);
  return start % (seconds * 1000) === 0 && periodFrom(start, seconds) === slot;
}

/** Whether a slot sorts after every period that has begun. While such a slot is remembered, a call with `per` cannot begin. */
export const isAfterAllPeriods = (slot: string, now: number): boolean =>
  compareSlots(slot, slotAt(now + MOST_EARLY_MS, 1)) > 0;

/** The order in which DynamoDB compares texts: by their bytes. JavaScript compares UTF-16 units. */
export function compareSlots(one: string, other: string): number {
  const [left, right] = [bytesOf(one), bytesOf(other)];
  return left === right ? 0 : left < right ? -1 : 1;
}

const bytesOf = (slot: string): string => String.fromCharCode(...new TextEncoder().encode(slot));
