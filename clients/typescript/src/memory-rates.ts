import type { Cap } from '../../../shared/locks/record/capped.ts';
import type { NamedRate, RateCap } from '../../../shared/rates/cap-after.ts';
import { capAfter, capWhere } from '../../../shared/rates/cap-after.ts';
import {
  type Charge,
  chargeOf,
  faultOfRates,
  formFor,
  type Rate,
  ratesUnder,
  settledCharge,
  startOf,
} from '../../../shared/rates/charge.ts';
import type { components } from './contract.ts';
import { invalidRequest } from './index.ts';
import { instant, type ProblemOf, problemsOf } from './memory-grants.ts';
import type { Surroundings } from './surroundings.ts';
import type { AnswerOf, RequestOf } from './transport.ts';

type Schemas = components['schemas'];
type View = Schemas['RateKey'];

/** The record of a key, until an operator forgets it. */
interface Row extends Pick<View, 'rates' | 'ratesBefore' | 'by' | 'at'> {
  /** The moment up to which all reservations have paid, in epoch microseconds. */
  paidUntil?: number;
  /** The name of the last request, with its charge. */
  last?: string | undefined;
  /** The charge of each open reservation, by the name of its request. */
  open: Map<string, number>;
}

const newRow = (): Row => ({ rates: [], ratesBefore: [], by: null, at: null, open: new Map() });

interface Reservation extends Charge {
  /** The name of the request. */
  name: string;
  /** The name of the request, with its charge. */
  last: string;
  rates: Rate[];
  settle: boolean;
}

function viewOf({ pause, capped }: RateCap): Schemas['Cap'] {
  const { reason, at, until } = pause ?? (capped as Cap);
  return {
    ...{ limit: pause ? 0 : null, rates: capped?.rates ?? null, reason, by: null, since: instant(at) },
    until: until === undefined ? null : instant(until),
  };
}

/** The rates of one key of the service in memory. */
export class MemoryRates {
  readonly key: string;
  readonly #surroundings: Surroundings;
  readonly #problem: ProblemOf;
  readonly #reservations = new Map<string, Reservation>();
  #row = newRow();
  #cap: RateCap | undefined;
  #cappedAt = 0;

  constructor(key: string, surroundings: Surroundings) {
    this.key = key;
    this.#surroundings = surroundings;
    this.#problem = problemsOf(key, surroundings);
  }

  /** @throws HoldfastError RateExceeded */
  reserve(request: RequestOf<'rateReserve'>): AnswerOf<'rateReserve'> {
    const { key } = this;
    const { holder, requestId = this.#surroundings.uuid(), waitSeconds = 0, settle = false } = request;
    const rates = request.rates.map((rate) => ({ name: 'requests', units: 1, ...rate }));
    const fault = faultOfRates(rates);
    if (fault) throw invalidRequest(fault.path, fault.message);
    const cap = this.#capNow;
    const paying = ratesUnder(rates, cap?.capped?.rates);
    const charge = chargeOf(paying);
    const { boundBy } = charge;
    const name = JSON.stringify([holder, requestId]);
    const last = `${name}.${charge.charge}.${charge.ahead}.${settle ? 's' : ''}`;
    const terms = paying.map(({ burst: _burst, ...rate }) => rate);
    const reservation = `r.${last}.${settle ? JSON.stringify(terms) : ''}`;
    const now = this.#surroundings.wall() * 1000;
    const { paidUntil = now } = this.#row;
    const paid = { paidUntil: this.#row.paidUntil, isOwn: this.#row.last === last };
    const form = formFor(charge, paid, { now, waitMs: waitSeconds * 1000 });
    if (typeof form === 'number' || (cap?.pause && form !== 'repeated')) {
      const pausedMs = cap?.pause?.until === undefined ? 60_000 : cap.pause.until - this.#surroundings.wall();
      const retryAfterMs = cap?.pause ? pausedMs : form;
      const fields = { retryAfterMs, boundBy, ...(cap && { cap: viewOf(cap) }) };
      throw this.#problem('RateExceeded', 429, `the rate ${boundBy} of ${key} is used up`, fields);
    }
    if (form !== 'repeated') this.#row.paidUntil = (form === 'busy' ? paidUntil : now) + charge.charge;
    const repeated = form === 'repeated' || form === 'late';
    if (!repeated) {
      this.#note(holder, rates);
      this.#row.last = last;
      if (settle) this.#row.open.set(name, charge.charge);
    }
    this.#reservations.set(reservation, { ...charge, name, last, rates: [...paying], settle });
    const { rates: to, ratesBefore: from } = this.#row;
    const waitMs = Math.ceil((startOf(this.#row.paidUntil ?? now, charge, now) - now) / 1000);
    return {
      ...{ key, reservation, startAt: instant(this.#surroundings.wall() + waitMs), waitMs, boundBy, repeated },
      sleepSeconds: Math.ceil(waitMs / 1000),
      ...(!repeated && JSON.stringify(from) !== JSON.stringify(to) && { rateChanged: { from, to } }),
    };
  }

  /** @throws HoldfastError InvalidRequest */
  settle({ reservation, units = {}, cancel }: RequestOf<'rateSettle'>): AnswerOf<'rateSettle'> {
    const { key } = this;
    const made = this.#reservations.get(reservation);
    if (!made) throw invalidRequest('reservation', 'must be the `reservation` from the answer to a reserve');
    const { charge, rates, settle } = made;
    if (cancel) {
      const isLast = this.#row.last === made.last;
      const cancelled = settle ? this.#close(made, -charge) : isLast;
      if (cancelled && !settle) this.#change(-charge);
      if (cancelled && isLast) this.#row.last = undefined;
      return { key, cancelled };
    }
    if (!settle) throw invalidRequest('reservation', 'was made without settle, so it can only be cancelled');
    const unknown = Object.keys(units).find((name) => !rates.some((rate) => rate.name === name));
    if (unknown !== undefined)
      throw invalidRequest(`units.${unknown}`, 'must be the name of a rate of the reservation');
    return { key, settled: this.#close(made, settledCharge(rates, units) - charge) };
  }

  /** @throws HoldfastError NotFound, Conflict */
  forget({ paidUntil }: RequestOf<'rateForget'>): AnswerOf<'rateForget'> {
    const { key } = this;
    const { paidUntil: actual } = this.#row;
    if (actual === undefined) throw this.#problem('NotFound', 404, `no caller has reserved at a rate of ${key}`);
    if (actual > Date.parse(paidUntil) * 1000)
      throw this.#problem('Conflict', 409, `a caller of ${key} has reserved since`, { actual: this.view() });
    this.#row = newRow();
    return { key, forgotten: true };
  }

  /** Caps the rates, pauses the key, or lifts either. */
  capBy({ limit, rates, reason, forSeconds }: RequestOf<'capKey'>) {
    const now = this.#surroundings.wall();
    const before = this.#capNow;
    const named = rates?.map((rate): NamedRate => ({ name: 'requests', ...rate }));
    const change = { ...(limit !== undefined && { paused: limit === 0 }), rates: rates && named };
    const until = forSeconds === undefined ? undefined : now + forSeconds * 1000;
    this.#cappedAt = Math.max(now, this.#cappedAt + 1);
    this.#cap = capAfter(before, { change, reason, until }, this.#cappedAt);
    return { cap: this.#cap && viewOf(this.#cap), before: before && viewOf(before) };
  }

  get #capNow(): RateCap | undefined {
    return capWhere(this.#cap, ({ until = Number.POSITIVE_INFINITY }) => until > this.#surroundings.wall());
  }

  view(): View {
    const { paidUntil, rates, ratesBefore, by, at, open } = this.#row;
    const cap = this.#capNow;
    const until = paidUntil === undefined ? null : instant(Math.ceil(paidUntil / 1000));
    return {
      key: this.key,
      kind: 'rate',
      paidUntil: until,
      rates,
      ratesBefore,
      by,
      at,
      open: open.size,
      ...(cap && { cap: viewOf(cap) }),
    };
  }

  /** Closes a reservation, and corrects its charge. @returns whether the reservation was open */
  #close({ name, charge }: Reservation, more: number): boolean {
    if (this.#row.open.get(name) !== charge) return false;
    this.#row.open.delete(name);
    this.#change(more);
    return true;
  }

  #change(more: number): void {
    this.#row.paidUntil = (this.#row.paidUntil ?? 0) + more;
  }

  #note(holder: string, rates: Rate[]): void {
    const named = rates.map(({ name, limit, per }) => ({ name, limit, per }));
    const ratesBefore = this.#row.at === null ? named : this.#row.rates;
    Object.assign(this.#row, { rates: named, ratesBefore, by: holder, at: instant(this.#surroundings.wall()) });
  }
}
