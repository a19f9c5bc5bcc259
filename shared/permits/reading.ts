import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import type { Call } from '../aws/call.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { isWaiting, readWaiters, type Waiter } from '../line/waiters.ts';
import type { PoolEntry, PoolRecord } from './record.ts';

/** Callers join and leave, so an older count is read again. */
/** Two read units usually hold this many rows. The first are often those of new holders, and turns are short where many hold. */
const FIRST_PAGE = 26;

const MAX_AGE_MS = 250;

/**
 * The rows of a line, read by one query and judged again after each write (docs/protocols/queue.md#hand-off). Further pages are read on
 * demand.
 */
export class LineReading {
  readonly #source: AsyncGenerator<Waiter>;
  readonly #readAt: number;
  /** As it was before the query. */
  readonly #mark: AttributeValue | undefined;
  readonly #fence: number | undefined;
  readonly #rows: Waiter[] = [];
  readonly #dropped = new Set<string>();
  readonly #granted = new Set<string>();
  /** How many permits this call itself has ended that were granted since. */
  #ended = 0;

  /** @param record as a conditional write or a consistent read has just shown it */
  constructor(dependencies: LeaseDependencies, record: PoolRecord, call: Call) {
    this.#source = readWaiters(dependencies, { key: record.key, firstPage: FIRST_PAGE }, call);
    this.#readAt = dependencies.clock.now();
    this.#mark = record.mark;
    this.#fence = record.fence;
  }

  /** From the oldest on. Others may read on in the meantime. @throws HoldfastError Throttled, Unavailable */
  async *rows(): AsyncGenerator<Waiter> {
    for (let nth = 0; ; nth++) {
      const row = this.#rows[nth] ?? (await this.#next());
      if (!row) return;
      if (!this.#dropped.has(row.ticket)) yield row;
    }
  }

  async #next(): Promise<Waiter | undefined> {
    const { value, done } = await this.#source.next();
    if (done) return undefined;
    this.#rows.push(value);
    return value;
  }

  /** Those that wait behind a row, as far as the first page shows. */
  async behind({ ticket }: Waiter): Promise<Waiter[]> {
    const rows: Waiter[] = [];
    let read = 0;
    for await (const row of this.rows()) {
      if (row.ticket > ticket && isWaiting(row, this.#readAt)) rows.push(row);
      if (++read >= FIRST_PAGE) break;
    }
    return rows;
  }

  /** A row whose permit stands on record. */
  sawGranted({ ticket }: Waiter): void {
    this.#granted.add(ticket);
  }

  /** Whether its permit stood there. Then another call notifies its task, also where the permit has ended by now. */
  wasGranted({ ticket }: Waiter): boolean {
    return this.#granted.has(ticket);
  }

  /** A row that was deleted. */
  drop({ ticket }: Waiter): void {
    this.#dropped.add(ticket);
  }

  /**
   * Whether its rows still wait, but for those whose permits the record shows. All permits that were granted since must stand there. Otherwise one of the rows
   * may have had a permit that has ended.
   */
  isTrueOf({ fence, entries }: PoolRecord, now: number): boolean {
    if (now - this.#readAt > MAX_AGE_MS) return false;
    if (fence === undefined || this.#fence === undefined) return fence === this.#fence;
    return entries.filter((entry) => this.#isLater(entry)).length + this.#ended === fence - this.#fence;
  }

  /** True if no waiter has joined since: no value of the mark comes twice. */
  isFullFor({ mark }: Pick<PoolRecord, 'mark'>): boolean {
    return mark?.S === this.#mark?.S;
  }

  /** This call has ended permits, of which some may have been granted since. */
  wrote(ended: readonly PoolEntry[]): void {
    this.#ended += ended.filter((entry) => this.#isLater(entry)).length;
  }

  #isLater({ fence }: PoolEntry): boolean {
    return this.#fence === undefined || fence > this.#fence;
  }
}
