import { shown } from './escape.ts';

/** How often the line moves, in milliseconds. */
const TICK_MS = 1000;

/** A line on the terminal about work that takes long, with how long it has taken; elsewhere each new text is a line. */
export class Progress {
  readonly #isLive = process.stderr.isTTY === true && process.env.TERM !== 'dumb';
  readonly #isQuiet: boolean;
  readonly #startedAt = performance.now();
  #text: string | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(isQuiet: boolean) {
    this.#isQuiet = isQuiet;
  }

  show(text: string): void {
    if (this.#isQuiet || text === this.#text) return;
    this.#text = text;
    if (!this.#isLive) {
      process.stderr.write(`holdfast: ${shown(text)}\n`);
      return;
    }
    this.#draw();
    this.#timer ??= setInterval(() => this.#draw(), TICK_MS).unref();
  }

  /** Takes the line away. */
  end(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    if (this.#isLive && this.#text !== undefined) process.stderr.write('\r\u001b[K');
    this.#text = undefined;
  }

  #draw(): void {
    const seconds = Math.floor((performance.now() - this.#startedAt) / 1000);
    const line = `holdfast: ${shown(this.#text ?? '')} (${seconds} s)`;
    process.stderr.write(`\r\u001b[K${line.slice(0, (process.stderr.columns || 80) - 1)}`);
  }
}
