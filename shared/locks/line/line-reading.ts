import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import type { Call } from '../../aws/call.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import type { HolderEntry, KeyRecord } from '../record/record.ts';
import { readInOrder } from './moved-row.ts';
import { isInLine, isPlace, isTask, isWaiting, type Waiter, waiterKey } from './waiters.ts';

/**
 * The rows of the first page: about two read units. The page needs room to spare, because it also has the rows of
 * recent holders.
 */
const FIRST_READING = 26;

/** How long the rows are used before they are read again, because callers join and leave. */
const MAX_AGE_MS = 250;

/**
 * The rows of a line, read by one query. A hand-off judges them again after each of its writes, and so does not need
 * another query (docs/protocols/queue.md#hand-off). Further pages are read on demand.
 */
export class LineReading {
  readonly #source: AsyncGenerator<Waiter>;
  readonly #readAt: number;
  /** The mark of the record before the query. Each arrival changes it. */
  readonly #mark: AttributeValue | undefined;
  readonly #fence: number | undefined;
  readonly #moved: string | undefined;
  readonly #rows: Waiter[] = [];
  readonly #skipped = new Set<string>();
  readonly #granted = new Set<string>();
  /** How many grants were made since the query and ended by this call. */
  #endedSince = 0;

  /** @param record as a conditional write or a consistent read has just shown it */
  constructor(dependencies: LeaseDependencies, record: KeyRecord, call: Call) {
    const { key, moved } = record;
    this.#source = readInOrder(dependencies, { key, moved, firstPage: FIRST_READING }, call);
    this.#moved = moved;
    this.#readAt = dependencies.clock.now();
    this.#mark = record.mark;
    this.#fence = record.fence;
  }

  /**
   * Whether the waiter that an operator has moved is still in line. Before the first row is read, the answer is not
   * known, and true.
   */
  get hasMoved(): boolean {
    const [first] = this.#rows;
    return first === undefined || first.ticket === this.#moved;
  }

  /**
   * The rows in the order in which they are served. Several loops may read them at once.
   * @throws HoldfastError Throttled, Unavailable
   */
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

  /** The waiters behind a row, among the rows of the first page. */
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

  /**
   * The arrival number of a caller that receives a grant. Undefined if the caller passes a sleeper, or if the first
   * page does not show whether it does.
   */
  async numberOf(waiter: Waiter | undefined): Promise<number | undefined> {
    if (!waiter || isTask(waiter) || waiter.number === undefined || waiter.ticket === this.#moved) return undefined;
    let read = 0;
    for await (const row of this.rows()) {
      if (isPlace(row) && isInLine(row, this.#readAt)) return row.ticket > waiter.ticket ? waiter.number : undefined;
      if (++read >= FIRST_READING) return undefined;
    }
    return waiter.number;
  }

  noteGranted({ ticket }: Waiter): void {
    this.#granted.add(ticket);
  }

  /**
   * Whether the record has shown a grant of the row. Then another call notifies its task, even if the grant has ended
   * by now.
   */
  wasGranted({ ticket }: Waiter): boolean {
    return this.#granted.has(ticket);
  }

  noteDeleted({ ticket }: Pick<Waiter, 'ticket'>): void {
    this.#skipped.add(ticket);
  }

  /**
   * Whether the rows can still be used with this record. Each grant raises the fence. If the fence has risen by more
   * than the grants that the record shows and those that this call has ended, another call may have made and ended a
   * grant since the query, and one of the rows may have had it.
   */
  isCurrentFor({ fence, entries, moved }: KeyRecord, now: number): boolean {
    if (now - this.#readAt > MAX_AGE_MS || moved !== this.#moved) return false;
    if (fence === undefined || this.#fence === undefined) return fence === this.#fence;
    return entries.filter((entry) => this.#isLater(entry)).length + this.#endedSince === fence - this.#fence;
  }

  /** Whether no waiter has joined since the query. Each arrival gives the mark a value that it never had before. */
  isCompleteFor({ mark }: Pick<KeyRecord, 'mark'>): boolean {
    return mark?.S === this.#mark?.S;
  }

  noteEnded(ended: readonly HolderEntry[]): void {
    this.#endedSince += ended.filter((entry) => this.#isLater(entry)).length;
  }

  #isLater({ fence }: HolderEntry): boolean {
    return this.#fence === undefined || fence > this.#fence;
  }
}
