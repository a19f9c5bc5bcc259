/** The slot of a call without `slot` and `per`, which is done until `keepSeconds` are over. */
export const ONLY_SLOT = '-';

const UNIT_SECONDS = { s: 1, m: 60, h: 3600, d: 86_400 } as const;
type Unit = keyof typeof UNIT_SECONDS;

export const MOST_PERIOD_SECONDS = 366 * 86_400;

/** @param per such as `1d`, `15m` @returns undefined for a text that is no period */
export function periodSeconds(per: string): number | undefined {
  const [, count = '', unit = ''] = /^([1-9]\d{0,7})([smhd])$/.exec(per) ?? [];
  const seconds = Number(count) * (UNIT_SECONDS[unit as Unit] ?? 0);
  return seconds > 0 && seconds <= MOST_PERIOD_SECONDS ? seconds : undefined;
}

/**
 * How long before its first instant a period begins at most, in milliseconds. A schedule fires at the first instant, by the clock of a machine that may be
 * ahead of the service. If such a call counted for the period that is about to end, which is done, the period to come would be skipped. Not a whole
 * number of seconds, so that no schedule fires where one period becomes the next.
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

/** Whether a slot sorts after every period that has begun. While such a slot is remembered, no call with `per` could begin. */
export const isAfterAllPeriods = (slot: string, now: number): boolean =>
  compareSlots(slot, slotAt(now + MOST_EARLY_MS, 1)) > 0;

/** The order in which DynamoDB compares texts: by their bytes. JavaScript compares UTF-16 units. */
export function compareSlots(one: string, other: string): number {
  const [left, right] = [bytesOf(one), bytesOf(other)];
  return left === right ? 0 : left < right ? -1 : 1;
}

const bytesOf = (slot: string): string => String.fromCharCode(...new TextEncoder().encode(slot));
