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
 * The period that `now` is in, by its first instant in UTC: a date for whole days, and otherwise an instant to the second. Periods count from
 * 1970-01-01T00:00:00Z.
 * @param now epoch milliseconds
 */
export function slotAt(now: number, seconds: number): string {
  const start = new Date(Math.floor(now / 1000 / seconds) * seconds * 1000).toISOString();
  return seconds % UNIT_SECONDS.d === 0 ? start.slice(0, 'YYYY-MM-DD'.length) : `${start.slice(0, -'.000Z'.length)}Z`;
}

/** The order in which DynamoDB compares texts: by their bytes. JavaScript compares UTF-16 units. */
export const compareSlots = (one: string, other: string): number =>
  Buffer.compare(Buffer.from(one), Buffer.from(other));
