import type { components } from '../../../clients/typescript/src/contract.ts';

type Schemas = components['schemas'];

/** A length of time for people: `4m 5s`. */
export function duration(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  const parts = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'm'],
    [seconds % 60, 's'],
  ] as const;
  const from = parts.findIndex(([count]) => count > 0);
  if (from < 0) return '0s';
  return parts
    .slice(from, from + 2)
    .filter(([count]) => count > 0)
    .map(([count, unit]) => `${count}${unit}`)
    .join(' ');
}

/** How long ago a time was, by the clock of this machine: `4m 5s`. Null if the time is not known. */
export const agoText = (at: string | null): string | null =>
  at === null ? null : duration(Date.now() - Date.parse(at));

/** The text for the end of a bound lease. Its expiry is 400 days away, because the lease lasts as long as its execution. */
export const EXECUTION_END = 'its execution ends';

/** Every lease except a bound one expires within a day. The second day is for clocks that differ. */
const MAX_UNBOUND_MS = 2 * 86_400_000;

/** True if an expiry is that of a bound lease. @param expiresAt ISO 8601 */
export const isOfBound = (expiresAt: string): boolean => Date.parse(expiresAt) - Date.now() > MAX_UNBOUND_MS;

/** ` until 2026-11-21T10:42:33.922Z`, or an empty text if the end is not known. @param expiresAt ISO 8601 */
export const untilEnd = (expiresAt: string | null | undefined): string =>
  expiresAt ? ` until ${isOfBound(expiresAt) ? EXECUTION_END : expiresAt}` : '';

/** When a lease ends or has ended, for people. */
export function endText({ bound, remainingMs, expiresAt }: Ending): string | null {
  if (bound && remainingMs !== 0) return `when ${EXECUTION_END}`;
  return remainingMs === 0 && expiresAt !== null ? `${agoText(expiresAt)} ago` : untilText(remainingMs);
}

interface Ending {
  bound?: boolean | undefined;
  remainingMs: number | null;
  expiresAt: string | null;
}

/** The remaining time of a lease: `in 4m 5s`. */
export const untilText = (remainingMs: number | null): string | null =>
  remainingMs === null ? null : remainingMs > 0 ? `in ${duration(remainingMs)}` : `${duration(-remainingMs)} ago`;

/** How much of a limit is in use: `3 of 5`, or with a cap `3 of 5, cap 3`. */
export function usedText({ used, limit, cap }: { used: number; limit: number | null } & Capped): string {
  const usedOfLimit = limit === null ? String(used) : `${used} of ${limit}`;
  return cap?.limit ? `${usedOfLimit}, cap ${cap.limit}` : usedOfLimit;
}

interface Capped {
  cap?: Schemas['Cap'] | undefined;
}

/** A cap, for people: `paused by ann since …: the vendor is down`. */
export function capText({ limit, rates, reason, by, since, until }: Schemas['Cap']): string {
  const limits = [...(limit === null ? [] : [limit]), ...(rates ? [ratesText(rates)] : [])].join(' and ');
  const end = until === null ? '' : ` until ${until}`;
  return `${limit === 0 ? 'paused' : `capped at ${limits}`} by ${by ?? 'an operator'} since ${since}${end}: ${reason}`;
}

/** Rates as they are written on a command line, without the units. */
export const ratesText = (rates: Schemas['NamedRate'][]): string =>
  rates.map(({ name, limit, per }) => `${name === 'requests' ? '' : `${name}:`}${limit}/${per}`).join(' ');

/** The state of a key without a record. */
export const NO_RECORD = 'no record (never used, or last used before the retention)';

/** The ARN of a Step Functions execution. Its end is the name of the state machine and the name of the execution. */
const EXECUTION = /^arn:[\w-]+:states:[\w-]*:\d*:(?:execution|express):(.+)$/;

/** The name of a holder, for people. Of an execution, only the end of its ARN is shown: `machine:run-42`. */
export const nameOf = (holder: string): string => EXECUTION.exec(holder)?.[1] ?? holder;

/** The name of a holder in a list, for people. A third-party client has no name. */
export const holderText = ({ holder }: { holder: string | null }): string =>
  holder === null ? 'another client' : nameOf(holder);

/** The state of a lease, for people. A lease is `ending` if its holder was asked to stop and still holds it. */
export const stateText = ({ state, ending }: { state: string; ending: boolean }): string =>
  state === 'held' && ending ? 'ending' : state;

/** The state of a key, for people. */
export const keyStateText = (key: { state: string; ending: boolean } & Capped): string =>
  key.cap?.limit === 0 ? 'paused' : stateText(key);

/** True if permits are held, so that several callers may hold the key at once. */
export const isShared = ({ holders }: { holders: { mode: string }[] }): boolean =>
  holders.some(({ mode }) => mode === 'shared');
