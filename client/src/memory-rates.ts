import { type Charge, chargeOf, formFor, type Rate, settledCharge, startOf } from '../../shared/rates/charge.ts';
import type { components } from './contract.ts';
import { invalidRequest } from './index.ts';
import { instant, type ProblemOf, problemsOf } from './memory-grants.ts';
import type { Surroundings } from './surroundings.ts';
import type { AnswerOf, RequestOf } from './transport.ts';

type View = components['schemas']['RateKey'];

interface Made extends Charge {
  rates: Rate[];
  settle: boolean;
}

/** The rates of one key of the service in memory. Exported for `MemoryService` alone. */
export class MemoryRates {
  readonly key: string;
  readonly #by: Surroundings;
  readonly #problem: ProblemOf;
  /** Microseconds, as in the service. */
  #paidUntil: number | undefined;
  /** The id of the last reservation. It has the request and the charge, as in the service. */
  #last: string | undefined;
  readonly #made = new Map<string, Made>();
  readonly #open = new Set<string>();
  #seen: Pick<View, 'rates' | 'ratesBefore' | 'by' | 'at'> = { rates: [], ratesBefore: [], by: null, at: null };

  constructor(key: string, by: Surroundings) {
    this.key = key;
    this.#by = by;
    this.#problem = problemsOf(key, by);
  }

  /** @throws HoldfastError RateExceeded */
  reserve(request: RequestOf<'rateReserve'>): AnswerOf<'rateReserve'> {
    const { key } = this;
    const { holder, requestId = this.#by.uuid(), waitSeconds = 0, settle = false } = request;
    const rates = request.rates.map((rate) => ({ name: 'requests', units: 1, ...rate }));
    const charge = chargeOf(rates);
    const { boundBy } = charge;
    const reservation = ['r', holder, requestId, charge.charge, charge.ahead].join('.');
    const now = this.#now;
    const paid = { paidUntil: this.#paidUntil, isOwn: this.#last === reservation };
    const form = formFor(charge, paid, { now, waitMs: waitSeconds * 1000 });
    if (typeof form === 'number')
      throw this.#problem('RateExceeded', 429, `the rate ${boundBy} of ${key} is used up`, {
        retryAfterMs: form,
        boundBy,
      });
    const paidUntil = form === 'repeated' ? (this.#paidUntil ?? now) : this.#pay(form === 'busy', charge, now);
    const repeated = form === 'repeated' || form === 'moved';
    const before = this.#seen.rates;
    if (!repeated) this.#note({ ...request, rates });
    const { rates: to } = this.#seen;
    const isChanged = !repeated && before.length > 0 && JSON.stringify(before) !== JSON.stringify(to);
    this.#last = reservation;
    this.#made.set(reservation, { ...charge, rates, settle });
    if (settle && !repeated) this.#open.add(reservation);
    const waitMs = Math.ceil((startOf(paidUntil, charge, now) - now) / 1000);
    return {
      ...{ key, reservation, startAt: instant(this.#by.wall() + waitMs), waitMs, boundBy, repeated },
      sleepSeconds: Math.ceil(waitMs / 1000),
      ...(isChanged && { rateChanged: { from: before, to } }),
    };
  }

  /** @throws HoldfastError InvalidRequest */
  settle({ reservation, units, cancel }: RequestOf<'rateSettle'>): AnswerOf<'rateSettle'> {
    const { key } = this;
    const made = this.#made.get(reservation);
    if (!made) throw invalidRequest('reservation', 'must be the reservation of an answer');
    const { charge, rates, settle } = made;
    if (cancel) {
      const isLast = this.#last === reservation;
      if (settle ? !this.#open.delete(reservation) : !isLast) return { key, cancelled: false };
      if (isLast) this.#last = undefined;
      this.#change(-charge);
      return { key, cancelled: true };
    }
    if (!settle) throw invalidRequest('reservation', 'was made without settle, so it can only be cancelled');
    const unknown = Object.keys(units ?? {}).find((name) => !rates.some((rate) => rate.name === name));
    if (unknown !== undefined)
      throw invalidRequest(`units.${unknown}`, 'must be the name of a rate of the reservation');
    const settled = this.#open.delete(reservation);
    if (settled) this.#change(settledCharge(rates, units ?? {}) - charge);
    return { key, settled };
  }

  /** @throws HoldfastError NotFound, Conflict */
  forget({ paidUntil }: RequestOf<'rateForget'>): AnswerOf<'rateForget'> {
    const { key } = this;
    if (this.#paidUntil === undefined) throw this.#problem('NotFound', 404, `no caller has reserved a rate of ${key}`);
    if (this.#paidUntil > Date.parse(paidUntil) * 1000)
      throw this.#problem('Conflict', 409, `a caller of ${key} has reserved since`, { actual: this.view() });
    this.#paidUntil = undefined;
    this.#last = undefined;
    this.#open.clear();
    this.#seen = { rates: [], ratesBefore: [], by: null, at: null };
    return { key, forgotten: true };
  }

  view(): View {
    const paidUntil = this.#paidUntil === undefined ? null : instant(Math.ceil(this.#paidUntil / 1000));
    return { key: this.key, kind: 'rate', paidUntil, ...this.#seen, open: this.#open.size };
  }

  get #now(): number {
    return this.#by.wall() * 1000;
  }

  #pay(isBusy: boolean, { charge }: Charge, now: number): number {
    this.#paidUntil = (isBusy ? (this.#paidUntil ?? now) : now) + charge;
    return this.#paidUntil;
  }

  #change(more: number): void {
    this.#paidUntil = (this.#paidUntil ?? 0) + more;
  }

  #note({ rates, holder }: { rates: Rate[]; holder: string }): void {
    const named = rates.map(({ name, limit, per }) => ({ name, limit, per }));
    const ratesBefore = this.#seen.at === null ? named : this.#seen.rates;
    this.#seen = { rates: named, ratesBefore, by: holder, at: instant(this.#by.wall()) };
  }
}
