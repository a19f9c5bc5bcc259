import { periodSeconds } from '../periods.ts';

/** The only slot of a key whose callers send neither `slot` nor `per`. */
export const ONLY_SLOT = '-';

const DAY_MS = 86_400_000;
const WEEK_MS = 7 * DAY_MS;

/**
 * The most that a period begins before its first instant, in milliseconds. A schedule fires at the first instant, by a
 * clock that may be ahead of the service. If its call counted for the period that is about to end, which is done, the
 * next period would be skipped. The time is not a whole number of seconds, so that no schedule fires at the moment when
 * the period changes.
 */
const MAX_EARLY_MS = 2500;

/** How early a period begins: for a short period, a tenth of it. */
const earlyMs = (seconds: number): number => Math.min(MAX_EARLY_MS, seconds * 100);

export interface Period {
  /** The length, such as `15m`, `1d` or `1w`. */
  per: string;
  /** The IANA name of the time zone in which days and weeks begin. The default is UTC. */
  zone?: string | undefined;
}

/** The length of a period in seconds. @returns undefined for a text that is not a period, or for more than 366 days */
export const lengthOf = (per: string): number | undefined =>
  periodSeconds(per.replace(/^([1-9]\d?)w$/, (_, weeks) => `${7 * weeks}d`));

export function isZone(zone: string): boolean {
  try {
    return Intl.DateTimeFormat('en', { timeZone: zone }) !== undefined;
  } catch {
    return false;
  }
}

/** The date in a zone at a moment, as midnight of that date in UTC. */
function dateIn(zone: string, moment: number): number {
  const format = Intl.DateTimeFormat('en', { timeZone: zone, year: 'numeric', month: 'numeric', day: 'numeric' });
  const parts = Object.fromEntries(format.formatToParts(moment).map(({ type, value }) => [type, Number(value)]));
  return Date.UTC(parts.year ?? 0, (parts.month ?? 0) - 1, parts.day);
}

/**
 * The name of the period that contains a moment, in UTC: a date for days, a text such as `2026-W48` for weeks, and
 * otherwise an instant. Later periods of the same length sort after earlier ones.
 */
function nameAt(moment: number, per: string): string {
  const ms = (lengthOf(per) ?? 0) * 1000;
  const isWeeks = per.endsWith('w');
  // 1970-01-01 was a Thursday, and weeks begin on Monday.
  const shift = isWeeks ? 3 * DAY_MS : 0;
  const start = Math.floor((moment + shift) / ms) * ms - shift;
  if (isWeeks) return weekName(start);
  const text = new Date(start).toISOString();
  return ms % DAY_MS === 0 ? text.slice(0, 'YYYY-MM-DD'.length) : `${text.slice(0, -'.000Z'.length)}Z`;
}

/** Names a week by ISO 8601: a week belongs to the year that contains its Thursday. */
function weekName(monday: number): string {
  const thursday = monday + 3 * DAY_MS;
  const year = new Date(thursday).getUTCFullYear();
  const week = Math.floor((thursday - Date.UTC(year, 0, 1)) / WEEK_MS) + 1;
  return `${year}-W${String(week).padStart(2, '0')}`;
}

/**
 * The period that a call at `now` works for. Periods begin a little early (docs/protocols/once.md#slots).
 * @param now epoch milliseconds
 */
export function slotAt(now: number, { per, zone }: Period): string {
  const moment = now + earlyMs(lengthOf(per) ?? 0);
  return nameAt(zone === undefined ? moment : dateIn(zone, moment), per);
}

/** Whether a slot is the name of a period, in the form of `slotAt`. */
export function isPeriod(slot: string, { per }: Period): boolean {
  const [, year, week] = /^(\d{4})-(?:W(\d\d)$)?/.exec(slot) ?? [];
  // The 4th of January is in the first week of every year.
  const moment = week ? Date.UTC(Number(year), 0, 4) + (Number(week) - 1) * WEEK_MS : Date.parse(slot);
  return year !== undefined && !Number.isNaN(moment) && nameAt(moment, per) === slot;
}

/**
 * Whether a slot sorts after every period that has begun. While the record remembers such a slot, no call with `per`
 * can begin.
 */
export const isAfterAllPeriods = (slot: string, now: number, period: Period): boolean =>
  compareSlots(slot, slotAt(now, period)) > 0;

/** Compares slots by their bytes, as DynamoDB compares texts. JavaScript alone would compare UTF-16 units. */
export function compareSlots(one: string, other: string): number {
  const [left, right] = [slotBytes(one), slotBytes(other)];
  return left === right ? 0 : left < right ? -1 : 1;
}

const slotBytes = (slot: string): string => String.fromCharCode(...new TextEncoder().encode(slot));
