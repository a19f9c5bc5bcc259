import { type Charge, type Form, latestPaid } from '../../../shared/rates/charge.ts';

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
  strictWindow: 'what is given back, or still owed, is said not to count',
} as const;
export type Mutant = keyof typeof MUTANTS;

export interface Request extends Charge {
  name: string;
  /** Of each rate, in their order. */
  units: readonly number[];
  waitUs: number;
  settle: boolean;
  form: Form;
  /** How far the clock of its function is from the true time. */
  offset: number;
  isLost: boolean;
}

export const lastOf = ({ name, charge, ahead }: Request): string => `${name}.${charge}.${ahead}`;

export class Row {
  paidUntil: number | undefined;
  last: string | undefined;
  readonly open: Map<string, number>;
  /** What each write has added to the paid time, in the order of the writes. */
  readonly changes: { name: string; more: number }[] = [];
  readonly #mutant: Mutant | undefined;

  constructor(mutant?: Mutant, { paidUntil, last, open }: Partial<Row> = {}) {
    Object.assign(this, { paidUntil, last });
    this.open = new Map(open);
    this.#mutant = mutant;
  }

  copy = (): Row => new Row(this.#mutant, this);

  /** @returns whether the condition held */
  reserve(request: Request, now: number): boolean {
    const { form, charge, name, settle } = request;
    const paid = this.paidUntil;
    const isLast = this.last === lastOf(request);
    if (form === 'moved') {
      if (!isLast || paid === undefined || paid >= now + charge) return false;
      this.paidUntil = now + charge;
      return true;
    }
    if (form === 'idle') {
      if (paid !== undefined && paid >= now) return false;
      this.paidUntil = this.#mutant === 'oldCredit' && paid !== undefined ? paid + charge : now + charge;
    } else {
      const inTime = this.#mutant === 'noPatience' || (paid ?? 0) <= this.#latest(request, now);
      if (paid === undefined || paid < now || !inTime || (isLast && this.#mutant !== 'repeatPays')) return false;
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
