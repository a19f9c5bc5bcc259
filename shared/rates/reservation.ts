import { type Charge, chargeOf, faultOfRates, MOST_RATES, type Rate } from './charge.ts';

/** What the id of a reservation says: whose it is, what it paid, and if its caller settles, by which rates. */
export interface Reservation extends Pick<Charge, 'charge' | 'ahead'> {
  /** The name of the request (`requestName`). */
  name: string;
  /** Absent if the caller does not settle. */
  rates?: readonly Rate[] | undefined;
}

/**
 * Names a reservation with its charge in the row, so that a repeat with other rates is another reservation. The name of one that is settled ends with `.s`:
 * an id that lacks its terms must not cancel what was settled.
 */
export const reservationText = ({ name, charge, ahead, rates }: Reservation): string =>
  `${name}.${charge}.${ahead}${rates ? '.s' : ''}`;

/** Settle and cancel read nothing first: the id has the charge and the terms. */
export function reservationId(reservation: Reservation): string {
  const terms = reservation.rates?.map(({ name, limit, per, units }) => [name, limit, per, units]);
  const text = terms ? `.${Buffer.from(JSON.stringify(terms)).toString('base64url')}` : '';
  const { name, charge, ahead } = reservation;
  return `r.${name}.${charge}.${ahead}${text}`;
}

const ID = /^r\.([\w-]{16})\.(\d{1,16})\.(\d{1,16})(?:\.([\w-]{8,1000}))?$/;

/** @returns undefined for an id that this service never gave. The id may be forged, so no write trusts it without a condition on the row */
export function parseReservation(id: string): Reservation | undefined {
  const [, name, charge, ahead, terms] = ID.exec(id) ?? [];
  if (name === undefined) return undefined;
  const reservation = { name, charge: Number(charge), ahead: Number(ahead) };
  if (terms === undefined) return reservation;
  const rates = ratesOf(terms);
  // Terms of another charge are forged, and could settle to any amount.
  return rates && chargeOf(rates).charge === reservation.charge ? { ...reservation, rates } : undefined;
}

/** The rates of the call, and those of a cap. */
const MOST_TERMS = 2 * MOST_RATES;

function ratesOf(terms: string): Rate[] | undefined {
  const rates = parsedRates(Buffer.from(terms, 'base64url').toString());
  return rates.every(isRate) && !faultOfRates(rates, MOST_TERMS) ? rates : undefined;
}

function parsedRates(text: string): Partial<Rate>[] {
  try {
    const list: unknown = JSON.parse(text);
    if (!Array.isArray(list)) return [];
    return list.map((terms) => {
      const [name, limit, per, units] = Array.isArray(terms) ? terms : [];
      return { name, limit, per, units };
    });
  } catch {
    return [];
  }
}

const isRate = (rate: Partial<Rate>): rate is Rate => typeof rate.name === 'string' && typeof rate.per === 'string';
