import { jsonOfText, number } from '../aws/attributes.ts';
import type { Item } from '../aws/dynamodb.ts';
import type { CapView } from '../locks/calls/types.ts';
import { type Cap, capEndsAt, capView } from '../locks/record/capped.ts';
import { RATE_KEY_PREFIX } from '../locks/record/identity.ts';
import { capWhere, type NamedRate, type RateCap } from './cap-after.ts';

export const rateRowOf = (key: string): string => RATE_KEY_PREFIX + key;
export const rateKeyOf = (row: string): string => row.slice(RATE_KEY_PREFIX.length);

/** A reservation whose caller will report the units. */
interface OpenReservation {
  name: string;
  charge: number;
  /** When it was made, in epoch milliseconds. */
  at: number;
}

export interface RateRecord {
  /**
   * Until when the key is paid, in epoch microseconds. Undefined without reservations, or if another client has written
   * something else.
   */
  paidUntil: number | undefined;
  /** Whether another client has written a wrong type to the row. Then no caller can reserve. */
  isMalformed: boolean;
  /** The text of the last reservation, with its charge (`reservationText`). */
  last: string | undefined;
  /** The rates that the last caller named. */
  rates: NamedRate[];
  /** The rates that the caller before named. */
  ratesBefore: NamedRate[];
  by: string | undefined;
  /** When the last caller reserved, in epoch milliseconds. */
  at: number | undefined;
  open: OpenReservation[];
  /** How many reservations the row counts as open. */
  opens: number;
  /** The cap of an operator, even after it has ended. */
  cap: RateCap | undefined;
  /** When the last command came, even after a lift. */
  capAt: number | undefined;
}

/** The parts of a cap that still count at this instant. */
export const rateCapAt = (
  { cap }: { cap?: RateCap | undefined },
  { now, clockSkewMs }: { now: number; clockSkewMs: number },
): RateCap | undefined => capWhere(cap, (part) => capEndsAt(part, clockSkewMs) > now);

/** The cap as readers and refused callers see it. If there is a pause, its reason and end are shown. */
export const rateCapView = ({ pause, capped }: RateCap): CapView => ({
  ...capView(pause ?? (capped as Cap)),
  ...{ limit: pause ? 0 : null, rates: capped?.rates ?? null },
});

/** The value of the attribute `cap`. It is one value, so that a pause does not lose the capped rates. */
export const capText = ({ pause, capped }: Pick<RateCap, 'pause' | 'capped'>): string =>
  JSON.stringify({ pause, ...(capped && { capped: { ...capped, rates: shownRates(capped.rates) } }) });

/** The attribute that stores an open reservation. @param name the name of the request */
export const openPath = (name: string): string => `o${name}`;
const OPEN = /^o([\w-]{16})$/;

export function parseRate(item: Item | undefined): RateRecord {
  const paidUntil = Math.ceil(Number(item?.paid_until?.N));
  const isMalformed = item?.paid_until !== undefined && !Number.isSafeInteger(paidUntil);
  return {
    paidUntil: Number.isSafeInteger(paidUntil) ? paidUntil : undefined,
    isMalformed: isMalformed || (item?.opens !== undefined && item.opens.N === undefined),
    last: item?.last_request?.S,
    rates: ratesIn(item?.rates?.S),
    ratesBefore: ratesIn(item?.rates_before?.S),
    by: item?.asked_by?.S,
    at: item && number(item, 'asked_at'),
    opens: (item && number(item, 'opens')) ?? 0,
    cap: item && capIn(item),
    capAt: item && number(item, 'cap_at'),
    open: Object.entries(item ?? {}).flatMap(([attribute, { M: map }]) => {
      const name = OPEN.exec(attribute)?.[1];
      return name && map ? [{ name, charge: number(map, 'a') ?? 0, at: number(map, 't') ?? 0 }] : [];
    }),
  };
}

function capIn(item: Item): RateCap | undefined {
  const text = item.cap?.S;
  if (text === undefined) return undefined;
  const [found, at] = [jsonOfText(text), number(item, 'cap_at') ?? 0];
  const cap = typeof found === 'object' && found !== null && !Array.isArray(found) ? (found as Partial<RateCap>) : {};
  if (cap.pause || Array.isArray(cap.capped?.rates)) return { ...cap, at };
  // A cap that this release cannot read counts as a pause, because it must not let callers through.
  return { pause: { limit: 0, at, by: undefined, reason: '', until: undefined }, at };
}

const shownRates = (rates: readonly NamedRate[]): NamedRate[] =>
  rates.map(({ name, limit, per }) => ({ name, limit, per }));

export const ratesText = (rates: readonly NamedRate[]): string => JSON.stringify(shownRates(rates));

function ratesIn(text: string | undefined): NamedRate[] {
  const rates = jsonOfText(text);
  return Array.isArray(rates) ? (rates as unknown as NamedRate[]) : [];
}
