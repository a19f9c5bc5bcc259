import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import type { Call } from '../../aws/call.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import type { HolderEntry, KeyRecord } from '../record/record.ts';
import { readInOrder } from './moved-row.ts';
import { isInLine, isPlace, isTask, isWaiting, type Waiter, waiterKey } from './waiters.ts';

/** Two read units usually hold this many rows. A page must hold more than the next few, because it also has rows of holders that were just granted the key. */
const FIRST_READING = 26;

/** Callers join and leave, so rows that were read longer ago are read again. */
const MAX_AGE_MS = 250;

/**
 * The rows of a line, read by one query and judged again after each write (docs/protocols/queue.md#hand-off). Further pages are read on
 * demand.
 */
export class LineReading {
  readonly #source: AsyncGenerator<Waiter>;
  readonly #readAt: number;
  /** The mark before the query. */
  readonly #mark: AttributeValue | undefined;
  readonly #fence: number | undefined;
  readonly #moved: string | undefined;
  readonly #rows: Waiter[] = [];
  readonly #skipped = new Set<string>();
  readonly #granted = new Set<string>();
  /** How many of the grants since the query this call has ended. */
  #ended = 0;

  /** @param record as a conditional write or a consistent read has just shown it */
  constructor(dependencies: LeaseDependencies, record: KeyRecord, call: Call) {
    const { key, moved } = record;
    this.#source = readInOrder(dependencies, { key, moved, firstPage: FIRST_READING }, call);
    this.#moved = moved;
    this.#readAt = dependencies.clock.now();
    this.#mark = record.mark;
    this.#fence = record.fence;
  }

  /** Whether the waiter that an operator has moved is still in line, or is due soon. True too before the first row is read. */
  get hasMoved(): boolean {
    const [first] = this.#rows;
    return first === undefined || first.ticket === this.#moved;
  }

  /** The rows in the order in which they are served. Several loops may read them at once. @throws HoldfastError Throttled, Unavailable */
  async *rows(): AsyncGenerator<Waiter> {
    for (let nth = 0; ; nth++) {
      const row = this.#rows[nth] ?? (await this.#next());
      if (!row) return;
      if (!this.#skipped.has(waiterKey(row).ticket)) yield row;
    }
  }

  async #next(): Promise<Waiter | undefined> {
    const { value, done } = await this.#source.next();
    if (done) return undefined;
    this.#rows.push(value);
    return value;
  }

  /** The rows that wait behind a row, as far as the first page shows. */
  async behind(waiter: Waiter): Promise<Waiter[]> {
    const rows: Waiter[] = [];
    let [read, isBehind] = [0, false];
    for await (const row of this.rows()) {
      if (isBehind && row.ticket !== waiter.ticket && isWaiting(row, this.#readAt)) rows.push(row);
      isBehind ||= row === waiter;
      if (++read >= FIRST_READING) break;
    }
    return rows;
  }

  /** The number of a caller that receives a grant. Undefined if the caller passes one that sleeps, or if the first page does not show that. */
  async numberOf(waiter: Waiter | undefined): Promise<number | undefined> {
    if (!waiter || isTask(waiter) || waiter.number === undefined || waiter.ticket === this.#moved) return undefined;
    let read = 0;
    for await (const row of this.rows()) {
      if (isPlace(row) && isInLine(row, this.#readAt)) return row.ticket > waiter.ticket ? waiter.number : undefined;
      if (++read >= FIRST_READING) return undefined;
    }
    return waiter.number;
  }

  /** Notes that the record shows the grant of a row. */
  sawGranted({ ticket }: Waiter): void {
    this.#granted.add(ticket);
  }

  /** Whether the record has shown the grant of a row. Then another call notifies its task, even if the grant has ended by now. */
  wasGranted({ ticket }: Waiter): boolean {
    return this.#granted.has(ticket);
  }

  /** Notes that a row was deleted. */
  skip({ ticket }: Pick<Waiter, 'ticket'>): void {
    this.#skipped.add(ticket);
  }

  /**
   * Whether the rows still wait, except those whose grants the record shows. False if there was a grant since the query that the record does not show, and
   * that this call has not ended: one of the rows may have had that grant.
   */
  isTrueOf({ fence, entries, moved }: KeyRecord, now: number): boolean {
    if (now - this.#readAt > MAX_AGE_MS || moved !== this.#moved) return false;
    if (fence === undefined || this.#fence === undefined) return fence === this.#fence;
    return entries.filter((entry) => this.#isLater(entry)).length + this.#ended === fence - this.#fence;
  }

  /** True if no waiter has joined since the query: no value of the mark comes twice. */
  isFullFor({ mark }: Pick<KeyRecord, 'mark'>): boolean {
    return mark?.S === this.#mark?.S;
  }

  /** Notes which grants this call has ended, because some of them may have been made since the query. */
  wrote(ended: readonly HolderEntry[]): void {
    this.#ended += ended.filter((entry) => this.#isLater(entry)).length;
  }

  #isLater({ fence }: HolderEntry): boolean {
    return this.#fence === undefined || fence > this.#fence;
  }
}
