import type { RateCap } from '../../../shared/rates/cap-after.ts';
import {
  chargeOf,
  type Form,
  formFor,
  MAX_PERIODS,
  type Rate,
  ratesUnder,
  startOf,
} from '../../../shared/rates/charge.ts';
import { seededRandom } from '../../../test/support/chance/seed.ts';
import { Operator } from './operator.ts';
import { type At, lastOf, MAX_LATE, type Mutant, type Request, Row } from './protocol.ts';
import { brokenWhenSettled, brokenWindow, type Start } from './windows.ts';

/** `plain`: callers name the same one to three rates. */
export type Mix = 'plain' | 'differ' | 'settle' | 'capped';

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

/** A run of random calls. `play` says what is wrong in it. */
export class Run {
  readonly path: string[] = [];
  readonly #mix: Mix;
  readonly #mutant: Mutant | undefined;
  readonly #random: () => number;
  readonly #row: Row;
  readonly #spread: number;
  readonly #rates: Omit<Rate, 'units'>[];
  readonly #waits: Request[] = [];
  /** Writes of reservations that may land again. */
  readonly #sent: { request: Request; at: At }[] = [];
  /** The operators of a mix with caps. */
  readonly #operator: Operator | undefined;
  /** Whether calls last for a time. Otherwise each try is another call. */
  readonly #isSlow: boolean;
  /** The longest time between the beginning of a call and its write. */
  #late = 0;
  #starts: (Start & { more: number })[] = [];
  #now = 1_700_000_000 * SECOND;
  #requests = 0;

  constructor(seed: number, mix: Mix, mutant?: Mutant) {
    this.#random = seededRandom(seed);
    [this.#mix, this.#mutant] = [mix, mutant];
    this.#spread = this.#pick([0, 0, 1000, 500_000]);
    this.#row = new Row(this.#spread, mutant);
    this.#isSlow = this.#happens(0.3);
    const count = mix === 'plain' || mix === 'capped' ? this.#pick([1, 1, 2, 3]) : 1;
    this.#rates = Array.from({ length: count }, (_, nth) => ({
      name: `rate ${nth}`,
      ...(mix === 'differ' ? { limit: 60, per: '1m' } : this.#pick(LIMITS)),
      burst: mix === 'settle' ? undefined : this.#pick([undefined, undefined, 5, 20, 1000]),
    }));
    const rates = this.#rates.map(({ name, limit, per }) => ({ name, limit, per }));
    const parts = { row: this.#row, mutant, rates, pick: this.#pick, happens: this.#happens };
    if (mix === 'capped') this.#operator = new Operator(parts);
  }

  play(): string | undefined {
    for (let step = 0; step < STEPS; step++) {
      this.#now += this.#happens(0.95) ? this.#pick([0, 0, 1, 999, 20_000, 1_200_000]) : this.#pick([1, 5]) * MINUTE;
      if (this.#waits.length === 0 || this.#happens(0.6)) this.#waits.push(this.#request());
      const wrong = this.#operator?.acts(this.#now + this.#offset()) ?? this.#tries(this.#pick(this.#waits));
      if (wrong !== undefined) return wrong;
      // The check of settled work takes the last write of a request for its reservation, so with `settle` no write lands again.
      if (this.#mix !== 'settle' && this.#happens(0.1) && this.#sent.length > 0) {
        const { request, at } = this.#pick(this.#sent);
        this.#row.reserve(request, { ...at, real: this.#now });
      }
      if (this.#row.isBroken) return 'a call reserves while the key is paused';
    }
    const spread = this.#spread + this.#late;
    if (this.#mix === 'settle')
      return brokenWhenSettled(this.#starts, this.#row.changes, { spread, isStrict: this.#mutant === 'strictWindow' });
    const fastest = this.#mix === 'differ' && this.#mutant !== 'slowerRate' ? 600 : undefined;
    const rates = this.#rates.map((rate) => ({ ...rate, limit: fastest ?? rate.limit }));
    const broken = brokenWindow(this.#starts, rates, spread);
    return (
      broken ?? this.#operator?.caps.map((cap) => this.#brokenCap(cap, spread)).find((wrong) => wrong !== undefined)
    );
  }

  /** Whether the work that was reserved under a cap keeps its rates. */
  #brokenCap({ at, capped }: RateCap, spread: number): string | undefined {
    const { rates = [] } = capped ?? {};
    const starts = this.#starts.filter(({ request: { cap } }) => cap?.at === at && cap.capped);
    const units = (request: Request) =>
      rates.map(({ name, limit }) => {
        const { units: taken = 1 } = request.rates.find((rate) => rate.name === name) ?? {};
        return Math.min(taken, MAX_PERIODS * limit);
      });
    const under = starts.map(({ real, request }) => ({ real, request: { ...request, units: units(request) } }));
    return brokenWindow(under, rates, spread) && 'too many start under a cap';
  }

  #pick = <T>(values: readonly T[]): T => values[Math.floor(this.#random() * values.length)] as T;
  #happens = (probability: number): boolean => this.#random() < probability;
  #whole = (min: number, max: number): number => min + Math.floor(this.#random() * (max - min + 1));

  #request(): Request {
    const settle = this.#mix === 'settle';
    const rates = this.#rates.map(({ burst, limit, ...rate }) => {
      const half = Math.floor(limit / 2);
      const units = this.#whole(1, Math.max(1, Math.min(half, burst ?? half, 400)));
      const named = this.#mix === 'differ' ? this.#pick([60, 600]) : limit;
      return { ...rate, limit: named, units, burst: burst !== undefined && burst >= units ? burst : undefined };
    });
    const offset = this.#offset();
    const hint = this.#pick([undefined, this.#row.capFor(this.#now + offset)]);
    const charge = this.#under(hint?.pause ? undefined : hint, rates);
    const period = this.#charge(rates.map((rate) => ({ ...rate, units: rate.limit, burst: undefined }))).charge;
    return {
      ...charge,
      ...{ name: `request ${++this.#requests}`, units: rates.map(({ units }) => units), settle, rates, offset },
      came: this.#now + offset,
      waitUs: settle ? this.#pick([0, period]) : this.#pick([0, charge.charge, 10 * charge.charge, EVER]),
      form: this.#pick<Form>(['busy', 'idle']),
      isLost: this.#happens(0.15),
    };
  }

  #offset = (): number => {
    const half = Math.floor(this.#spread / 2);
    return this.#whole(-half, half);
  };

  #under(cap: RateCap | undefined, rates: readonly Rate[]) {
    const capped = this.#mutant === 'capNotCounted' ? [] : cap?.capped?.rates;
    return { ...this.#charge(ratesUnder(rates, capped)), cap };
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
    const [row, at] = [this.#row, this.#at(request)];
    const { now } = at;
    const before = row.last === lastOf(request) ? row.paidUntil : undefined;
    const won = row.reserve(request, at);
    this.#sent.push({ request: { ...request }, at });
    if (won) this.#late = Math.max(this.#late, Math.min(now - at.since, MAX_LATE));
    this.path.push(`${request.name} ${request.form} at ${now}: ${won}, paid until ${row.paidUntil}`);
    if (before !== undefined && (row.paidUntil ?? 0) > Math.max(before, now + request.charge))
      return 'a repeat pays again';
    if (won && request.isLost) {
      request.isLost = false;
      if (this.#happens(0.3)) this.#forget(request);
      else if (this.#happens(0.5)) row.reserve(request, at);
      request.came = Number.NaN;
      return undefined;
    }
    if (won) return this.#begins(request, now, true);
    const seen = this.#judge(request, at);
    if (seen === 'repeated') return this.#begins(request, now, false);
    if (seen === 'paused') return void this.#forget(request);
    if (typeof seen === 'number') return this.#refused(request, now, seen);
    request.form = seen;
    return row.copy().reserve(request, at) ? undefined : 'no form fits';
  }

  /** The times of the next write of a request. A request that is sent again is another call. */
  #at(request: Request): At {
    const now = this.#now + request.offset;
    if (!this.#isSlow || Number.isNaN(request.came)) request.came = now;
    const min = this.#mutant === 'longLate' ? 0 : now - MAX_LATE;
    return { now, since: Math.max(Math.min(request.came, now), min), real: this.#now };
  }

  /** @returns what `formFor` returns: a number of milliseconds is a refusal */
  #judge(request: Request, { now, since }: At): ReturnType<typeof formFor> | 'paused' {
    const { paidUntil, last } = this.#row;
    Object.assign(request, this.#under(this.#row.capFor(now), request.rates));
    const isOwn = last === lastOf(request);
    if (isOwn && this.#mutant === 'startIsOver') return 'repeated';
    const found = formFor(request, { paidUntil, isOwn }, { now, since, waitMs: request.waitUs / 1000 });
    return request.cap?.pause && found !== 'repeated' ? 'paused' : found;
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
    const mayCancel = this.#mix === 'plain' || this.#mix === 'capped';
    if (mayCancel && start > now && this.#happens(0.15)) this.#cancels(request, paid);
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

  /** A caller cancels before its start, now and then after another call has reserved. The same cancellation also comes again, late. */
  #cancels(request: Request, seen: number): void {
    if (this.#happens(0.3)) this.#another(this.#request());
    if (this.#row.cancel(request, seen)) this.#starts = this.#starts.filter((start) => start.request !== request);
    if (this.#happens(0.5)) this.#another({ ...request, name: `request ${++this.#requests}`, waitUs: EVER });
    this.#row.cancel(request, seen);
  }

  #another(request: Request): void {
    const at = this.#at(request);
    const { now } = at;
    const seen = this.#judge(request, at);
    if (seen === 'repeated' || seen === 'paused' || typeof seen === 'number') return;
    request.form = seen;
    if (this.#row.reserve(request, at)) this.#start(request, startOf(this.#row.paidUntil ?? now, request, now));
  }

  #forget = (request: Request): void => void this.#waits.splice(this.#waits.indexOf(request), 1);
}
