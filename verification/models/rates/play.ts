import { chargeOf, type Form, formFor, type Rate, startOf } from '../../../shared/rates/charge.ts';
import { seededRandom } from '../../../test/support/chance/seed.ts';
import { lastOf, type Mutant, type Request, Row } from './protocol.ts';
import { brokenWhenSettled, brokenWindow, type Start } from './windows.ts';

/** `plain`: callers name the same one to three rates. */
export type Mix = 'plain' | 'differ' | 'settle';

const SECOND = 1_000_000;
const MINUTE = 60 * SECOND;
const LIMITS = [
  { limit: 50, per: '1m' },
  { limit: 10, per: '1s' },
  { limit: 10_000, per: '1m' },
  { limit: 7, per: '1m' },
  { limit: 1, per: '1h' },
  { limit: 100_000, per: '1m' },
];
const STEPS = 240;
/** A wait that no start exceeds. */
const EVER = 10 ** 12;

/** One run of random calls, and what is wrong in it. */
export class Run {
  readonly path: string[] = [];
  readonly #mix: Mix;
  readonly #mutant: Mutant | undefined;
  readonly #random: () => number;
  readonly #row: Row;
  readonly #spread: number;
  readonly #rates: Omit<Rate, 'units'>[];
  readonly #waits: Request[] = [];
  #starts: (Start & { more: number })[] = [];
  #now = 1_700_000_000 * SECOND;
  #requests = 0;

  constructor(seed: number, mix: Mix, mutant?: Mutant) {
    this.#random = seededRandom(seed);
    [this.#mix, this.#mutant, this.#row] = [mix, mutant, new Row(mutant)];
    this.#spread = this.#pick([0, 0, 1000, 500_000]);
    const count = mix === 'plain' ? this.#pick([1, 1, 2, 3]) : 1;
    this.#rates = Array.from({ length: count }, (_, nth) => ({
      name: `rate ${nth}`,
      ...(mix === 'differ' ? { limit: 60, per: '1m' } : this.#pick(LIMITS)),
      burst: mix === 'settle' ? undefined : this.#pick([undefined, undefined, 5, 20, 1000]),
    }));
  }

  play(): string | undefined {
    for (let step = 0; step < STEPS; step++) {
      this.#now += this.#happens(0.95) ? this.#pick([0, 0, 1, 999, 20_000, 1_200_000]) : this.#pick([1, 5]) * MINUTE;
      if (this.#waits.length === 0 || this.#happens(0.6)) this.#waits.push(this.#request());
      const wrong = this.#tries(this.#pick(this.#waits));
      if (wrong !== undefined) return wrong;
    }
    if (this.#mix === 'settle')
      return brokenWhenSettled(this.#starts, this.#row.changes, {
        spread: this.#spread,
        isStrict: this.#mutant === 'strictWindow',
      });
    const fastest = this.#mix === 'differ' && this.#mutant !== 'slowerRate' ? 600 : undefined;
    const rates = this.#rates.map((rate) => ({ ...rate, limit: fastest ?? rate.limit }));
    return brokenWindow(this.#starts, rates, this.#spread);
  }

  #pick = <T>(values: readonly T[]): T => values[Math.floor(this.#random() * values.length)] as T;
  #happens = (probability: number): boolean => this.#random() < probability;
  #whole = (least: number, most: number): number => least + Math.floor(this.#random() * (most - least + 1));

  #request(): Request {
    const settle = this.#mix === 'settle';
    const rates = this.#rates.map(({ burst, limit, ...rate }) => {
      const half = Math.floor(limit / 2);
      const units = this.#whole(1, Math.max(1, Math.min(half, burst ?? half, 400)));
      const named = this.#mix === 'differ' ? this.#pick([60, 600]) : limit;
      return { ...rate, limit: named, units, burst: burst !== undefined && burst >= units ? burst : undefined };
    });
    const charge = this.#charge(rates);
    const period = this.#charge(rates.map((rate) => ({ ...rate, units: rate.limit, burst: undefined }))).charge;
    const half = Math.floor(this.#spread / 2);
    return {
      ...charge,
      ...{ name: `request ${++this.#requests}`, units: rates.map(({ units }) => units), settle },
      waitUs: settle ? this.#pick([0, period]) : this.#pick([0, charge.charge, 10 * charge.charge, EVER]),
      form: this.#pick<Form>(['busy', 'idle']),
      offset: this.#whole(-half, half),
      isLost: this.#happens(0.15),
    };
  }

  #charge(rates: readonly Rate[]) {
    const charge = chargeOf(rates);
    if (this.#mutant === 'mildest') {
      const each = rates.map((rate) => chargeOf([rate]).charge);
      return { ...charge, charge: Math.min(...each) };
    }
    if (this.#mutant !== 'milliseconds') return charge;
    const short = Math.floor(charge.charge / 1000) * 1000;
    return { ...charge, charge: short, ahead: Math.max(short, Math.floor(charge.ahead / 1000) * 1000) };
  }

  /** One try of a call. @returns what is wrong */
  #tries(request: Request): string | undefined {
    const [row, now] = [this.#row, this.#now + request.offset];
    const before = row.last === lastOf(request) ? row.paidUntil : undefined;
    const won = row.reserve(request, now);
    this.path.push(`${request.name} ${request.form} at ${now}: ${won}, paid until ${row.paidUntil}`);
    if (before !== undefined && (row.paidUntil ?? 0) > Math.max(before, now + request.charge))
      return 'a repeat pays again';
    if (won && request.isLost) {
      request.isLost = false;
      if (this.#happens(0.3)) this.#forget(request);
      else if (this.#happens(0.5)) row.reserve(request, now);
      return undefined;
    }
    if (won) return this.#begins(request, now, true);
    const seen = this.#judge(request, now);
    if (seen === 'repeated') return this.#begins(request, now, false);
    if (typeof seen === 'number') return this.#refused(request, now, seen);
    request.form = seen;
    return row.copy().reserve(request, now) ? undefined : 'no form fits';
  }

  /** @returns as `formFor`: a number of milliseconds is a refusal */
  #judge(request: Request, now: number): ReturnType<typeof formFor> {
    const { paidUntil, last } = this.#row;
    const isOwn = last === lastOf(request);
    if (isOwn && this.#mutant === 'startIsOver') return 'repeated';
    return formFor(request, { paidUntil, isOwn }, { now, waitMs: request.waitUs / 1000 });
  }

  #refused(request: Request, now: number, retryMs: number): string | undefined {
    const { paidUntil: paid = 0 } = this.#row;
    const waitsAt = (at: number) => startOf(paid + request.charge, request, at) - at;
    this.#forget(request);
    if (waitsAt(now) <= request.waitUs) return 'refused, and the start was in time';
    return waitsAt(now + retryMs * 1000) > request.waitUs ? 'refused when the answer said to ask again' : undefined;
  }

  #begins(request: Request, now: number, isNew: boolean): string | undefined {
    const paid = this.#row.paidUntil ?? now;
    const start = this.#mutant === 'startsAtOnce' ? now : startOf(paid, request, now);
    this.#forget(request);
    if (isNew && start - now > request.waitUs) return 'starts later than its caller waits';
    this.#start(request, start);
    if (this.#mix === 'plain' && start > now && this.#happens(0.15)) this.#cancels(request, paid);
    if (this.#mix === 'settle')
      for (const one of this.#starts.slice(-8)) if (this.#happens(0.3)) this.#row.settle(one.request, one.more);
    return undefined;
  }

  #start(request: Request, start: number): void {
    const real = start - request.offset;
    const { charge } = request;
    this.#starts.push({
      real: this.#mutant === 'wholeSeconds' ? Math.max(this.#now, Math.floor(real / SECOND) * SECOND) : real,
      request,
      more: this.#pick([-charge, -Math.floor(charge / 2), 0, Math.floor(charge / 2), 3 * charge]),
    });
  }

  /** Gives up before its start, now and then after another call has reserved. The same cancellation comes again, late. */
  #cancels(request: Request, seen: number): void {
    if (this.#happens(0.3)) this.#another(this.#request());
    if (this.#row.cancel(request, seen)) this.#starts = this.#starts.filter((start) => start.request !== request);
    if (this.#happens(0.5)) this.#another({ ...request, name: `request ${++this.#requests}`, waitUs: EVER });
    this.#row.cancel(request, seen);
  }

  #another(request: Request): void {
    const now = this.#now + request.offset;
    const seen = this.#judge(request, now);
    if (seen === 'repeated' || typeof seen === 'number') return;
    request.form = seen;
    if (this.#row.reserve(request, now)) this.#start(request, startOf(this.#row.paidUntil ?? now, request, now));
  }

  #forget = (request: Request): void => void this.#waits.splice(this.#waits.indexOf(request), 1);
}
