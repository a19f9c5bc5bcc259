import type { HoldfastEvent } from '../../client/src/events.ts';
import { shown } from './escape.ts';

/** How often the line moves, in milliseconds. */
const TICK_MS = 1000;

/** A line on the terminal about work that takes long, with how long it has taken; elsewhere each new text is a line. */
export class Progress {
  readonly #isLive = process.stderr.isTTY === true && process.env.TERM !== 'dumb';
  readonly #isQuiet: boolean;
  readonly #startedAt = performance.now();
  #text: string | undefined;
  #topic: string | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(isQuiet: boolean) {
    this.#isQuiet = isQuiet;
  }

  /** @param topic what a line is about: where lines stay, one is enough for each */
  show(text: string, topic = text): void {
    if (this.#isQuiet || text === this.#text || (!this.#isLive && topic === this.#topic)) return;
    this.#topic = topic;
    this.#text = text;
    if (!this.#isLive) {
      process.stderr.write(`holdfast: ${shown(text)}\n`);
      return;
    }
    this.#draw();
    this.#timer ??= setInterval(() => this.#draw(), TICK_MS).unref();
  }

  /** About a wait for a lease, as the client tells of it. */
  waitingFor({ key, holder, since, expiresAt }: HoldfastEvent & { type: 'waiting' }): void {
    const until = expiresAt ? ` until ${expiresAt}` : '';
    const by = holder ?? 'another caller';
    this.show(`waiting since ${since}: ${key} is held by ${by}${until}`, by);
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
