import type { HoldfastEvent } from '../../client/src/events.ts';
import { shown } from './escape.ts';

/** How often the line is updated, in milliseconds. */
const TICK_MS = 1000;

/** Progress of work that takes long. A terminal shows one line that is updated; elsewhere each new text is a line. */
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

  /** @param topic where lines are not overwritten, only the first line of each topic is printed */
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

  /** Progress of a wait for a lease, from the events of the client. */
  waitingFor({ key, holder, since, expiresAt }: HoldfastEvent & { type: 'waiting' }): void {
    const until = expiresAt ? ` until ${expiresAt}` : '';
    const by = holder ?? 'another caller';
    this.show(`waiting since ${since}: ${key} is held by ${by}${until}`, by);
  }

  /** Removes the line. */
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
