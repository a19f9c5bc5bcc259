export const DAY_SECONDS = 86_400;

const UNIT_SECONDS = { s: 1, m: 60, h: 3600, d: DAY_SECONDS } as const;

export const MAX_PERIOD_SECONDS = 366 * DAY_SECONDS;

/** @param per such as `1d`, `15m` @returns undefined if the text is not a period */
export function periodSeconds(per: string): number | undefined {
  const [, count = '', unit = ''] = /^([1-9]\d{0,7})([smhd])$/.exec(per) ?? [];
  const seconds = Number(count) * (UNIT_SECONDS[unit as keyof typeof UNIT_SECONDS] ?? 0);
  return seconds > 0 && seconds <= MAX_PERIOD_SECONDS ? seconds : undefined;
}
