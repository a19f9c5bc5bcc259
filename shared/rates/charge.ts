import { periodSeconds } from '../periods.ts';

// What a reservation pays, as time. The client's in-memory service loads this file, so the file may only import what
// that service can load.

/** A rate, and what one call takes of it. */
export interface Rate {
  name: string;
  /** How many units may start in each period. */
  limit: number;
  /** The length of the period, such as `1m`. */
  per: string;
  units: number;
  /** How many units may start together after the key was idle. If absent, the units of the call. */
  burst?: number | undefined;
}

/**
 * What a reservation costs, in microseconds: at 100,000 units a minute, a reservation of one unit costs 0.6 ms, which
 * whole milliseconds cannot express.
 */
export interface Charge {
  /** By how much the reservation moves *paid until*. */
  charge: number;
  /** How much of the paid time may lie after the start: the charge, or more with a burst. */
  ahead: number;
  /** The name of the rate with the greatest charge. */
  boundBy: string;
}

/** The longest period of a rate: 31 days. */
export const MAX_RATE_PERIOD_SECONDS = 31 * 86_400;
/** The longest `waitSeconds`: a week. */
export const MAX_RATE_WAIT_SECONDS = 604_800;
/** The most periods that one reservation pays, even after it is settled. */
export const MAX_PERIODS = 10;

/**
 * The highest `waitSeconds` of a call. With `settle`, that is the longest period of its rates,
 * because the estimate may be wrong for that long.
 */
export const maxWaitSeconds = (rates: readonly Pick<Rate, 'per'>[], settle = false): number =>
  settle
    ? Math.min(MAX_RATE_WAIT_SECONDS, Math.max(...rates.map(({ per }) => periodSeconds(per) ?? 0)))
    : MAX_RATE_WAIT_SECONDS;

export const MAX_RATES = 4;

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) > 0;

type PartialRate = { [Field in 'limit' | 'per' | 'units' | 'burst']?: Rate[Field] | undefined };

/**
 * What is wrong with rates. The command checks them here before it waits for a lease. The schema in
 * `inputs.ts` has the same rules, so change both.
 */
export function faultOfRates(
  rates: readonly PartialRate[],
  maxRates = MAX_RATES,
): { path: string; message: string } | undefined {
  if (!(rates.length > 0 && rates.length <= maxRates))
    return { path: 'rates', message: `must have 1 to ${maxRates} rates` };
  for (const [nth, { limit, per = '', units = 1, burst = units }] of rates.entries()) {
    const isUpTo = (count: number) => isCount(count) && count <= MAX_PERIODS * Number(limit);
    const isRight = {
      limit: isCount(limit),
      per: Number(periodSeconds(per)) <= MAX_RATE_PERIOD_SECONDS,
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

/** The time in which a rate allows `units`, rounded up. */
const timeOf = (rate: Pick<Rate, 'limit' | 'per'>, units: number): number =>
  Number((BigInt(units) * microseconds(rate) + BigInt(rate.limit) - 1n) / BigInt(rate.limit));

/**
 * The charge of a call, which is the charge of its tightest rate, so one number keeps every rate of the key
 * (docs/protocols/rates.md#the-charge). This is the generic cell rate algorithm of ITU-T I.371, Annex A.
 */
export function chargeOf(rates: readonly Rate[]): Charge {
  const costs = rates.map((rate) => {
    const charge = timeOf(rate, rate.units);
    const { burst = rate.units } = rate;
    // The allowance for a burst is rounded down, so that no window is a unit too full.
    const ahead = burst > rate.units ? Number((BigInt(burst) * microseconds(rate)) / BigInt(rate.limit)) : charge;
    return { name: rate.name, charge, ahead };
  });
  const tightest = costs.reduce((most, cost) => (cost.charge > most.charge ? cost : most));
  const ahead = Math.min(...costs.map((cost) => cost.ahead));
  return { charge: tightest.charge, ahead: Math.max(tightest.charge, ahead), boundBy: tightest.name };
}

/**
 * The rates of a call and the rates that an operator has capped. At a capped rate, the call takes its units of the rate
 * with the same name, or one unit. It does not get a burst there, because the operator has not allowed one. If its
 * units are more than ten periods, it pays ten.
 */
export const ratesUnder = (
  rates: readonly Rate[],
  capped: readonly Pick<Rate, 'name' | 'limit' | 'per'>[] = [],
): readonly Rate[] => [
  ...rates,
  ...capped.map(({ name, limit, per }) => {
    const { units = 1 } = rates.find((rate) => rate.name === name) ?? {};
    return { name, limit, per, units: Math.min(units, MAX_PERIODS * limit) };
  }),
];

/** The charge of a reservation for the units that the work really took. @param units by the name of the rate */
export function settledCharge(rates: readonly Rate[], units: Readonly<Record<string, number>>): number {
  const taken = new Map(Object.entries(units)); // a map, because a rate may have the name of a method of objects
  const charges = rates.map((rate) =>
    timeOf(rate, Math.min(taken.get(rate.name) ?? rate.units, MAX_PERIODS * rate.limit)),
  );
  return Math.max(...charges);
}

/** When the work may start, in microseconds. @param paidUntil after the reservation has added its charge */
export const startOf = (paidUntil: number, { ahead }: Pick<Charge, 'ahead'>, now: number): number =>
  Math.max(now, paidUntil - ahead);

/**
 * The latest `paidUntil`, before the charge, at which a reservation still starts in time.
 * @param waitMs how long its caller waits at most
 */
export const latestPaid = (
  { charge, ahead }: Pick<Charge, 'charge' | 'ahead'>,
  { now, waitMs }: { now: number; waitMs: number },
): number => now + waitMs * 1000 + ahead - charge;

/** The forms of the write that reserves (docs/protocols/rates.md#reserve). */
export type Form = 'idle' | 'busy' | 'late';

/**
 * Decides from the record how a call reserves. The conditions in `forms.ts` have the same rules, so change both.
 * @param isOwn whether an earlier try of the call made the last reservation
 * @param since when the call came, because a call adds to what was paid at that moment
 * @returns the form that fits, `repeated` if the start of the earlier try still counts, or after how many milliseconds
 *   the call may ask again
 */
export function formFor(
  terms: Charge,
  { paidUntil, isOwn }: { paidUntil: number | undefined; isOwn: boolean },
  { now, waitMs, since = now }: { now: number; waitMs: number; since?: number },
): Form | 'repeated' | number {
  if (paidUntil === undefined) return 'idle';
  // If a repeat comes late, its start may be over, and others may start at the same moment.
  if (isOwn) return paidUntil >= now + terms.charge ? 'repeated' : 'late';
  if (paidUntil < since) return 'idle';
  const latest = latestPaid(terms, { now, waitMs });
  return paidUntil <= latest ? 'busy' : Math.ceil((paidUntil - latest) / 1000);
}
