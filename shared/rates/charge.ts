import { periodSeconds } from '../periods.ts';

// What a reservation pays, as time. Imports nothing that the client's in-memory service could not load.

/** So many units in each period, and what one call takes of them. */
export interface Rate {
  name: string;
  limit: number;
  /** Such as `1m`. */
  per: string;
  units: number;
  /** How many units may start at once after the key was idle. The units of the call if it is absent. */
  burst?: number | undefined;
}

/** In microseconds. In milliseconds, one of 100,000 units a minute would be rounded from 0.6 to 0 or 1. */
export interface Charge {
  /** By how much the reservation moves on the time until which the key is paid. */
  charge: number;
  /** How much of the paid time may lie ahead of the start: the charge, or more with a burst. */
  ahead: number;
  /** The name of the rate with the greatest charge. */
  boundBy: string;
}

/** The longest period of a rate: 31 days. */
export const MOST_RATE_SECONDS = 31 * 86_400;
/** A week. */
export const MOST_WAIT_SECONDS = 604_800;
/** The most periods that one reservation pays, even after it is settled. */
export const MOST_PERIODS = 10;

/** How long a call may wait for its start, in seconds. With `settle` at most the longest period, because the estimate may be wrong for that long. */
export const mostWaitSeconds = (rates: readonly Pick<Rate, 'per'>[], settle = false): number =>
  settle
    ? Math.min(MOST_WAIT_SECONDS, Math.max(...rates.map(({ per }) => periodSeconds(per) ?? 0)))
    : MOST_WAIT_SECONDS;

export const MOST_RATES = 4;

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) > 0;

type AskedRate = { [Field in 'limit' | 'per' | 'units' | 'burst']?: Rate[Field] | undefined };

/** What is wrong with rates, for the command, which must know before it waits for a lease. The schema in `inputs.ts` has the same rules, so change both. */
export function faultOfRates(
  rates: readonly AskedRate[],
  most = MOST_RATES,
): { path: string; message: string } | undefined {
  if (!(rates.length > 0 && rates.length <= most)) return { path: 'rates', message: `must be 1 to ${most}` };
  for (const [nth, { limit, per = '', units = 1, burst = units }] of rates.entries()) {
    const isUpTo = (count: number) => isCount(count) && count <= MOST_PERIODS * Number(limit);
    const isRight = {
      limit: isCount(limit),
      per: Number(periodSeconds(per)) <= MOST_RATE_SECONDS,
      units: isUpTo(units),
      burst: isUpTo(burst) && burst >= units,
    };
    for (const [field, message] of FIELDS)
      if (!isRight[field]) return { path: `rates.${nth}.${field}`, message: `must be ${message}` };
  }
  return undefined;
}

const FIELDS = [
  ['limit', 'a whole number'],
  ['per', 'a period such as 1m, of at most 31 days'],
  ['units', 'at most ten times the limit'],
  ['burst', 'from the units to ten times the limit'],
] as const;

const MICROSECONDS = 1_000_000n;

const microseconds = ({ per }: Pick<Rate, 'per'>): bigint => BigInt(periodSeconds(per) ?? 0) * MICROSECONDS;

/** The time in which a rate allows so many units, rounded up once. */
const timeOf = (rate: Pick<Rate, 'limit' | 'per'>, units: number): number =>
  Number((BigInt(units) * microseconds(rate) + BigInt(rate.limit) - 1n) / BigInt(rate.limit));

/**
 * The charge of a call is that of its tightest rate, so one number keeps every rate of the key (docs/protocols/rates.md#the-charge). The generic cell rate
 * algorithm, as in ITU-T I.371, Annex A.
 */
export function chargeOf(rates: readonly Rate[]): Charge {
  const each = rates.map((rate) => {
    const charge = timeOf(rate, rate.units);
    const { burst = rate.units } = rate;
    // The allowance for a burst is rounded down, so that no window is a unit too full.
    const ahead = burst > rate.units ? Number((BigInt(burst) * microseconds(rate)) / BigInt(rate.limit)) : charge;
    return { name: rate.name, charge, ahead };
  });
  const tightest = each.reduce((most, one) => (one.charge > most.charge ? one : most));
  const ahead = Math.min(...each.map((one) => one.ahead));
  return { charge: tightest.charge, ahead: Math.max(tightest.charge, ahead), boundBy: tightest.name };
}

/**
 * The rates of a call, with those that an operator has capped, as if the call had named them: the units of the rate with that name, or one. Without a burst,
 * because the operator has allowed none. So a call that has more than ten periods of such a rate pays ten.
 */
export const ratesUnder = (
  rates: readonly Rate[],
  capped: readonly Pick<Rate, 'name' | 'limit' | 'per'>[] = [],
): readonly Rate[] => [
  ...rates,
  ...capped.map(({ name, limit, per }) => {
    const { units = 1 } = rates.find((rate) => rate.name === name) ?? {};
    return { name, limit, per, units: Math.min(units, MOST_PERIODS * limit) };
  }),
];

/** What a reservation would have paid with the units that the work really took, by the name of the rate. */
export function settledCharge(rates: readonly Rate[], units: Readonly<Record<string, number>>): number {
  const taken = new Map(Object.entries(units)); // a rate may have the name of a method
  const charges = rates.map((rate) =>
    timeOf(rate, Math.min(taken.get(rate.name) ?? rate.units, MOST_PERIODS * rate.limit)),
  );
  return Math.max(...charges);
}

/** When the work may start, in microseconds. @param paidUntil with the charge of the reservation */
export const startOf = (paidUntil: number, { ahead }: Pick<Charge, 'ahead'>, now: number): number =>
  Math.max(now, paidUntil - ahead);

/** The latest `paidUntil` at which a reservation still starts in time. @param waitMs how long its caller waits at most */
export const latestPaid = (
  { charge, ahead }: Pick<Charge, 'charge' | 'ahead'>,
  { now, waitMs }: { now: number; waitMs: number },
): number => now + waitMs * 1000 + ahead - charge;

/** The forms of the write that reserves (docs/protocols/rates.md#reserve). */
export type Form = 'idle' | 'busy' | 'moved';

/**
 * What a call does at a key that is paid until some time. The conditions of `forms.ts` have the same rules, so change both.
 * @param paid `isOwn` if the last reservation is that of the call, from an earlier try
 * @param at `since`: when the call came. A call adds to what was paid at that moment
 * @returns the form that fits, `repeated` if the earlier try has reserved the start, or after how many milliseconds the call may ask again
 */
export function formFor(
  terms: Charge,
  { paidUntil, isOwn }: { paidUntil: number | undefined; isOwn: boolean },
  { now, waitMs, since = now }: { now: number; waitMs: number; since?: number },
): Form | 'repeated' | number {
  if (paidUntil === undefined) return 'idle';
  // The start of a late repeat may be over, and others may start at that moment.
  if (isOwn) return paidUntil >= now + terms.charge ? 'repeated' : 'moved';
  if (paidUntil < since) return 'idle';
  const latest = latestPaid(terms, { now, waitMs });
  return paidUntil <= latest ? 'busy' : Math.ceil((paidUntil - latest) / 1000);
}
