import type { HoldfastEvent } from '../../client/src/events.ts';
import { shown } from './escape.ts';
import { capText, untilEnd } from './verbs/words.ts';

/** How often the line is updated, in milliseconds. */
const TICK_MS = 1000;

/** Progress of work that takes long: at a terminal, one line that is updated. */
export class Progress {
  readonly #isLive = process.stderr.isTTY === true && process.env.TERM !== 'dumb';
  readonly #isQuiet: boolean;
  readonly #startedAt = performance.now();
  #text: string | undefined;
  #holder: string | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(isQuiet: boolean) {
    this.#isQuiet = isQuiet;
  }

  show(text: string): void {
    if (this.#isQuiet || !this.#isLive) return;
    this.#text = text;
    this.#draw();
    this.#timer ??= setInterval(() => this.#draw(), TICK_MS).unref();
  }

  /** A line that stays, above the one that is updated. */
  note(text: string): void {
    if (this.#isQuiet) return;
    this.#wipe();
    process.stderr.write(`holdfast: ${shown(text)}\n`);
  }

  /** Progress of a wait for a lease, from the events of the client. Away from a terminal, a line for each new holder. */
  waitingFor({ key, holder, since, expiresAt, cap }: HoldfastEvent & { type: 'waiting' }): void {
    const by = cap?.limit === 0 ? capText(cap) : `held by ${holder ?? 'another caller'}`;
    const text = `waiting since ${since}: ${key} is ${by}${cap?.limit === 0 ? '' : untilEnd(expiresAt)}`;
    if (this.#isLive) this.show(text);
    else if (by !== this.#holder) this.note(text);
    this.#holder = by;
  }

  /** Removes the line. */
  end(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#wipe();
    this.#text = undefined;
  }

  #wipe(): void {
    if (this.#text !== undefined) process.stderr.write('\r\u001b[K');
  }

  #draw(): void {
    const seconds = Math.floor((performance.now() - this.#startedAt) / 1000);
    const end = ` (${seconds} s)`;
    const line = `holdfast: ${shown(this.#text ?? '')}`.slice(0, (process.stderr.columns || 80) - 1 - end.length);
    process.stderr.write(`\r\u001b[K${line}${end}`);
  }
}
