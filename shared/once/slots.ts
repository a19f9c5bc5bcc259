import { periodSeconds } from '../periods.ts';

/** The slot of a call without `slot` and `per`, which is done until `keepSeconds` are over. */
export const ONLY_SLOT = '-';

const DAY_MS = 86_400_000;
const WEEK_MS = 7 * DAY_MS;

/**
 * How long before its first instant a period begins at most, in milliseconds. A schedule fires at the first instant, by a clock that may be ahead of the
 * service. If its call counted for the period that is about to end, which is done, the next period would be skipped. Not a whole number of seconds, so that no
 * schedule fires at the moment when the period changes.
 */
const MOST_EARLY_MS = 2500;

/** For a short period: a tenth of the period. */
const earlyMs = (seconds: number): number => Math.min(MOST_EARLY_MS, seconds * 100);

/** Slots that are periods: their length, and the time zone of the dates of days and weeks. */
export interface Period {
  /** Such as `15m`, `1d` or `1w`. */
  per: string;
  /** An IANA name. The default is UTC. */
  zone?: string | undefined;
}

/** The length of a period in seconds. @returns undefined for a text that is no period, or a longer one than 366 days */
export const lengthOf = (per: string): number | undefined =>
  periodSeconds(per.replace(/^([1-9]\d?)w$/, (_, weeks) => `${7 * weeks}d`));

/** Whether a text is the name of a time zone, as the platform knows them. */
export function isZone(zone: string): boolean {
  try {
    return Intl.DateTimeFormat('en', { timeZone: zone }) !== undefined;
  } catch {
    return false;
  }
}

/** The date that a zone has at a moment, as the moment at which UTC has midnight of that date. */
function dateIn(zone: string, at: number): number {
  const format = Intl.DateTimeFormat('en', { timeZone: zone, year: 'numeric', month: 'numeric', day: 'numeric' });
  const parts = Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, Number(value)]));
  return Date.UTC(parts.year ?? 0, (parts.month ?? 0) - 1, parts.day);
}

/**
 * The name of the period that has a moment, in UTC. A date for days, a week as `2026-W48`, and otherwise an instant, so that later periods of the same length
 * sort after earlier ones.
 */
function nameAt(at: number, per: string): string {
  const ms = (lengthOf(per) ?? 0) * 1000;
  const isWeeks = per.endsWith('w');
  // 1970-01-01 was a Thursday, and weeks begin on Monday.
  const shift = isWeeks ? 3 * DAY_MS : 0;
  const start = Math.floor((at + shift) / ms) * ms - shift;
  if (isWeeks) return weekName(start);
  const text = new Date(start).toISOString();
  return ms % DAY_MS === 0 ? text.slice(0, 'YYYY-MM-DD'.length) : `${text.slice(0, -'.000Z'.length)}Z`;
}

/** By ISO 8601, a week belongs to the year that has its Thursday. */
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
  const at = now + earlyMs(lengthOf(per) ?? 0);
  return nameAt(zone === undefined ? at : dateIn(zone, at), per);
}

/** Whether a slot is the name of a period, as `slotAt` writes it. */
export function isPeriod(slot: string, { per }: Period): boolean {
  const [, year, week] = /^(\d{4})-(?:W(\d\d)$)?/.exec(slot) ?? [];
  // The 4th of January is in the first week of every year.
  const at = week ? Date.UTC(Number(year), 0, 4) + (Number(week) - 1) * WEEK_MS : Date.parse(slot);
  return year !== undefined && !Number.isNaN(at) && nameAt(at, per) === slot;
}

/** Whether a slot sorts after every period that has begun. While such a slot is remembered, a call with `per` cannot begin. */
export const isAfterAllPeriods = (slot: string, now: number, period: Period): boolean =>
  compareSlots(slot, slotAt(now, period)) > 0;

/** The order in which DynamoDB compares texts: by their bytes. JavaScript compares UTF-16 units. */
export function compareSlots(one: string, other: string): number {
  const [left, right] = [slotBytes(one), slotBytes(other)];
  return left === right ? 0 : left < right ? -1 : 1;
}

const slotBytes = (slot: string): string => String.fromCharCode(...new TextEncoder().encode(slot));
