import type { HoldfastEvent } from '../../clients/typescript/src/events.ts';
import { shown } from './escape.ts';
import { capText, isShared, untilEnd, usedText } from './verbs/texts.ts';

/** How often the line is updated, in milliseconds. */
const TICK_MS = 1000;

/** How often a line about a long wait is printed, if stderr is not a terminal, in milliseconds. */
const WAIT_LINE_MS = 60_000;

/** Shows the progress of slow work: at a terminal, one line that is updated. */
export class Progress {
  readonly #isLive = process.stderr.isTTY === true && process.env.TERM !== 'dumb';
  readonly #isQuiet: boolean;
  readonly #startedAt = performance.now();
  #text: string | undefined;
  /** The last line about a wait, and when it was printed. */
  #last = { key: '', state: '', position: '', atMs: 0 };
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

  /** Prints a line that stays, above the line that is updated. */
  note(text: string): void {
    if (this.#isQuiet) return;
    this.#wipe();
    process.stderr.write(`holdfast: ${shown(text)}\n`);
  }

  /**
   * Shows how a wait for a lease goes on. If stderr is not a terminal, it prints a line when the wait begins, one when a position is known, and then at
   * most one a minute, if something has changed.
   */
  waitingFor(event: HoldfastEvent & { type: 'waiting' }): void {
    const { key, since, expiresAt, cap, holder } = event;
    const held = isShared(event) ? `in use: ${usedText(event)}` : `held by ${holder ?? 'another caller'}`;
    const state = cap?.limit === 0 ? capText(cap) : held;
    const until = state === held && !isShared(event) ? untilEnd(expiresAt) : '';
    const position = positionText(event);
    const line = `${position}: ${key} is ${state}${until}`;
    if (this.#isLive) this.show(`waiting${line}`);
    const { key: keyBefore, state: stateBefore, position: positionBefore, atMs } = this.#last;
    const isNew = key !== keyBefore || (position && !positionBefore);
    const hasChanged = state !== stateBefore || position !== positionBefore;
    if (this.#isLive || !(isNew || (hasChanged && performance.now() - atMs >= WAIT_LINE_MS))) return;
    this.#last = { key, state, position: position || positionBefore, atMs: performance.now() };
    this.note(`waiting since ${since}${line}`);
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

/** Up to this number, the service counts the others in line. */
const MAX_COUNTED = 100;

/** ` at position 3 of 40`, or an empty text if the caller has no position yet. */
function positionText({
  place: position,
  waiting = 0,
}: Pick<HoldfastEvent & { type: 'waiting' }, 'place' | 'waiting'>): string {
  if (!position) return '';
  return ` at position ${position}${waiting < MAX_COUNTED ? ` of ${Math.max(position, waiting + 1)}` : ''}`;
}
