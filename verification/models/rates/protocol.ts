import type { RateCap } from '../../../shared/rates/cap-after.ts';
import { type Charge, type Form, latestPaid, type Rate } from '../../../shared/rates/charge.ts';
import { rateCapAt } from '../../../shared/rates/record.ts';

/** The row of docs/protocols/rates.md and its conditional writes. All times are microseconds. */

export const MUTANTS = {
  startsAtOnce: 'a caller starts at once',
  noPatience: 'a start may be later than the caller waits',
  patienceWithoutBurst: 'the latest paid time leaves out the burst',
  oldCredit: 'a reservation after a pause pays from the end of what was paid',
  wholeSeconds: 'a caller waits for whole seconds, rounded down',
  milliseconds: 'a charge is counted in whole milliseconds',
  mildest: 'the charge is that of the mildest rate',
  cancelByNumber: 'a cancellation asks for the paid time and not for the request',
  cancelAny: 'a cancellation asks for nothing',
  repeatPays: 'a repeat pays again',
  startIsOver: 'a repeat gets its start even if that start is over',
  slowerRate: 'if callers differ, the slower rate is said to be kept',
  noEntry: 'a reservation is settled without an open entry',
  strictWindow: 'what settling returns, or is still owed, is said not to count',
  longLate: 'a call adds to what was paid when it came, however long ago that was',
  capIgnored: 'a reservation does not ask for the cap',
  capNotCounted: 'the capped rates are not counted',
  capNumberStays: 'the number of a command does not rise',
  liftForgets: 'a lift removes the number of the command',
  endNotAsked: 'a call that finds a cap over does not ask for its end',
  endEarly: 'a cap ends by the clock of a call, without the margin',
} as const;
export type Mutant = keyof typeof MUTANTS;

/** A write of an operator, with the number of the command that it has seen. */
export interface Command {
  seen: number | undefined;
  at: number;
  cap: RateCap | undefined;
}

const endOf = (part: { until: number | undefined } | undefined): number =>
  part ? (part.until ?? Number.POSITIVE_INFINITY) : 0;

/** When a write is sent. `now`: by the clock of its function. `since`: when its call came, or a second ago if that was earlier. `real`: the true time. */
export interface At {
  now: number;
  since: number;
  real: number;
}

export interface Request extends Charge {
  name: string;
  /** The rates that its caller names. */
  rates: readonly Rate[];
  /** The cap under which its charge was computed. */
  cap: RateCap | undefined;
  /** When its call came, by the clock of its function. */
  came: number;
  /** The units of each rate, in the order of the rates. */
  units: readonly number[];
  waitUs: number;
  settle: boolean;
  form: Form;
  /** How far the clock of its function is from the true time. */
  offset: number;
  isLost: boolean;
}

export const lastOf = ({ name, charge, ahead }: Request): string => `${name}.${charge}.${ahead}`;

/** How many microseconds of a call count. It adds to what was paid when it came, but not longer ago than this. */
export const MAX_LATE = 1_000_000;

export class Row {
  cap: RateCap | undefined;
  capAt: number | undefined;
  /** Whether a call has reserved while the key was paused. */
  isBroken = false;
  paidUntil: number | undefined;
  last: string | undefined;
  readonly open: Map<string, number>;
  /** What each write has added to the paid time, in the order of the writes. */
  readonly changes: { name: string; more: number }[] = [];
  readonly #mutant: Mutant | undefined;
  /** By how much clocks differ, in microseconds. */
  readonly #spread: number;

  constructor(spread: number, mutant?: Mutant, { paidUntil, last, open, cap, capAt: at }: Partial<Row> = {}) {
    Object.assign(this, { paidUntil, last, cap, capAt: at });
    this.open = new Map(open);
    [this.#spread, this.#mutant] = [spread, mutant];
  }

  copy = (): Row => new Row(this.#spread, this.#mutant, this);

  /** The cap that counts for a call. */
  capFor = (now: number): RateCap | undefined => rateCapAt({ cap: this.cap }, this.#margin(now));

  #margin = (now: number) => ({
    now: Math.floor(now / 1000),
    clockSkewMs: this.#mutant === 'endEarly' ? 0 : Math.ceil(this.#spread / 1000),
  });

  /** @returns whether the condition held */
  command({ seen, at, cap }: Command): boolean {
    if (this.capAt !== seen) return false;
    [this.cap, this.capAt] = [cap, cap === undefined && this.#mutant === 'liftForgets' ? undefined : at];
    return true;
  }

  #isUnder({ cap }: Request, now: number): boolean {
    if (this.#mutant === 'capIgnored') return true;
    if (cap) return this.capAt === cap.at;
    const until = Math.max(endOf(this.cap?.pause), endOf(this.cap?.capped));
    if (this.#mutant === 'endNotAsked' && Number.isFinite(until)) return true;
    const { now: nowMs, clockSkewMs } = this.#margin(now);
    return this.cap === undefined || until < nowMs - clockSkewMs;
  }

  /** @returns whether the condition held */
  reserve(request: Request, at: At): boolean {
    if (!this.#isUnder(request, at.now)) return false;
    const isReserved = this.#pay(request, at);
    this.isBroken ||= isReserved && at.real <= endOf(this.cap?.pause) * 1000;
    return isReserved;
  }

  #pay(request: Request, { now, since }: At): boolean {
    const { form, charge, name, settle } = request;
    const paid = this.paidUntil;
    const isLast = this.last === lastOf(request);
    if (form === 'late') {
      if (!isLast || paid === undefined || paid >= now + charge) return false;
      this.paidUntil = now + charge;
      return true;
    }
    if (form === 'idle') {
      if (paid !== undefined && paid >= now) return false;
      this.paidUntil = this.#mutant === 'oldCredit' && paid !== undefined ? paid + charge : now + charge;
    } else {
      const inTime = this.#mutant === 'noPatience' || (paid ?? 0) <= this.#latest(request, now);
      if (paid === undefined || paid < since || !inTime || (isLast && this.#mutant !== 'repeatPays')) return false;
      this.paidUntil = paid + charge;
    }
    this.last = lastOf(request);
    if (settle) this.open.set(name, charge);
    this.changes.push({ name, more: charge });
    return true;
  }

  #latest = (request: Request, now: number): number =>
    this.#mutant === 'patienceWithoutBurst'
      ? now + request.waitUs
      : latestPaid(request, { now, waitMs: request.waitUs / 1000 });

  /** @param seen the paid time that the caller was answered with */
  cancel(request: Request, seen: number): boolean {
    const isLast = this.#mutant === 'cancelByNumber' ? this.paidUntil === seen : this.last === lastOf(request);
    if (this.paidUntil === undefined || !(isLast || this.#mutant === 'cancelAny')) return false;
    this.paidUntil -= request.charge;
    this.last = '-';
    return true;
  }

  settle({ name, charge }: Request, more: number): void {
    if (this.paidUntil === undefined || (this.open.get(name) !== charge && this.#mutant !== 'noEntry')) return;
    this.open.delete(name);
    this.paidUntil += more;
    this.changes.push({ name, more });
  }
}
