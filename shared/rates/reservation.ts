import { type Charge, chargeOf, faultOfRates, MAX_RATES, type Rate } from './charge.ts';

export interface Reservation extends Pick<Charge, 'charge' | 'ahead'> {
  /** The name of the request (`nameOfRequest`). */
  name: string;
  /** The rates that settling needs. Absent if the caller does not settle. */
  rates?: readonly Rate[] | undefined;
}

/**
 * The text that the row keeps of the last reservation. It contains the charge, so that a repeat with other rates
 * is another reservation. If the caller settles, the text ends with `.s`: an id without the rates must not cancel what
 * was settled.
 */
export const reservationText = ({ name, charge, ahead, rates }: Reservation): string =>
  `${name}.${charge}.${ahead}${rates ? '.s' : ''}`;

/** The id of a reservation. It contains the charge and the rates, so that settle and cancel do not need to read it. */
export function reservationId(reservation: Reservation): string {
  const terms = reservation.rates?.map(({ name, limit, per, units }) => [name, limit, per, units]);
  const text = terms ? `.${Buffer.from(JSON.stringify(terms)).toString('base64url')}` : '';
  const { name, charge, ahead } = reservation;
  return `r.${name}.${charge}.${ahead}${text}`;
}

const ID = /^r\.([\w-]{16})\.(\d{1,16})\.(\d{1,16})(?:\.([\w-]{8,1000}))?$/;

/**
 * Parses an id, which may be forged: no write trusts it without a condition on the row.
 * @returns undefined for an id that this service cannot have issued
 */
export function parseReservation(id: string): Reservation | undefined {
  const [, name, charge, ahead, terms] = ID.exec(id) ?? [];
  if (name === undefined) return undefined;
  const reservation = { name, charge: Number(charge), ahead: Number(ahead) };
  if (terms === undefined) return reservation;
  const rates = ratesOf(terms);
  // If the rates do not give the charge, the id is forged, and could settle to any amount.
  return rates && chargeOf(rates).charge === reservation.charge ? { ...reservation, rates } : undefined;
}

/** The highest number of rates in an id: the call's, and a cap's. */
const MAX_TERMS = 2 * MAX_RATES;

function ratesOf(terms: string): Rate[] | undefined {
  const rates = parsedRates(Buffer.from(terms, 'base64url').toString());
  return rates.every(isRate) && !faultOfRates(rates, MAX_TERMS) ? rates : undefined;
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
