import type { NamedRate } from '../../../shared/rates/cap-after.ts';
import { type RateCapCommand as Asked, capAfter, type RateCap } from '../../../shared/rates/cap-after.ts';
import type { Command, Mutant, Row } from './protocol.ts';

interface Parts {
  row: Row;
  mutant: Mutant | undefined;
  rates: readonly NamedRate[];
  pick<T>(values: readonly T[]): T;
  happens(probability: number): boolean;
}

/** Operators who cap and lift. Their writes may be lost, may land twice, or may land much later. */
export class Operator {
  readonly #parts: Parts;
  readonly #sent: Command[] = [];
  #set: RateCap | undefined;
  /** Every cap that was in effect. */
  readonly caps: RateCap[] = [];

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Plays one step of an operator. @param now the clock of the function, in microseconds @returns what is wrong */
  acts(now: number): string | undefined {
    const { row, pick, happens } = this.#parts;
    if (this.#sent.length > 0 && happens(0.5)) row.command(pick(this.#sent));
    if (row.cap !== this.#set) return 'a late command changes the cap';
    if (happens(0.3)) this.#commands(Math.floor(now / 1000));
    return undefined;
  }

  #commands(now: number): void {
    const { row, happens } = this.#parts;
    const chosen = this.#chosen(now);
    // This write may land later. Its operator has not been answered, and sends another command.
    if (happens(0.2)) this.#sent.push(this.#written(now, this.#chosen(now)));
    for (;;) {
      const command = this.#written(now, chosen);
      if (happens(0.2)) this.#commands(now + 1);
      this.#sent.push(command);
      if (!row.command(command)) continue;
      this.#set = command.cap;
      if (command.cap) this.caps.push(command.cap);
      return;
    }
  }

  #written(now: number, asked: Asked): Command {
    const { row, mutant } = this.#parts;
    const at = mutant === 'capNumberStays' ? 1 : Math.max(now, (row.capAt ?? 0) + 1);
    return { seen: row.capAt, at, cap: capAfter(row.capFor(now * 1000), asked, at) };
  }

  #chosen(now: number): Asked {
    const { rates, pick, happens } = this.#parts;
    const capped = rates.filter(() => happens(0.6)).map((rate) => ({ ...rate, limit: this.#capped(rate.limit) }));
    const named = [...capped, ...(happens(0.3) ? [{ name: 'more', limit: 30, per: '1m' }] : [])];
    const someRates = named.length > 0 ? named : null;
    return {
      change: { paused: pick([undefined, false, false, true]), rates: pick([undefined, null, someRates, someRates]) },
      until: happens(0.5) ? undefined : now + pick([0, 20, 1000, 60_000]),
    };
  }

  #capped = (limit: number): number => Math.max(1, Math.floor(limit * this.#parts.pick([0.1, 0.5, 1, 3])));
}
