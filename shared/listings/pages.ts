/** How many rows a list reads for one page. It limits the cost of a page that shows few of the rows. */
export const ROWS_READ_PER_PAGE = 1000;

/**
 * The most bytes of a page's rows. Lambda refuses an answer with more than 6,291,556 bytes, which callers see as a 500.
 */
const MAX_PAGE_BYTES = 5 * 1024 * 1024;

/**
 * The rows of one page, as many as an answer of Lambda can hold. For example:
 *
 *     const page = new Page<LeaseView>(({ key, ...rest }) => ({ ...rest, key, data: null }));
 *     for (const row of rows) if (!page.add(row)) return { rows: page.rows, nextCursor: cursorBefore(row) };
 */
export class Page<Row> {
  readonly rows: Row[] = [];
  readonly #abridged: (row: Row) => Row;
  #bytes = 0;

  /**
   * @param abridged shortens a row that an answer cannot hold, because it is nested too deep for JSON or larger than a
   *   page. Without this, one such record would make every list that contains it fail.
   */
  constructor(abridged: (row: Row) => Row) {
    this.#abridged = abridged;
  }

  /** @returns false if the page does not have room for the row. Then the next page begins with this row */
  add(row: Row): boolean {
    const { sent, bytes } = fitting(row, this.#abridged);
    if (this.#bytes + bytes > MAX_PAGE_BYTES && this.rows.length > 0) return false;
    this.#bytes += bytes;
    this.rows.push(sent);
    return true;
  }
}

/** A row, abridged if an answer could not hold it alone. @param abridged see `Page` */
export const answerable = <Row>(row: Row, abridged: (row: Row) => Row): Row => fitting(row, abridged).sent;

function fitting<Row>(row: Row, abridged: (row: Row) => Row): { sent: Row; bytes: number } {
  const bytes = answerBytes(row);
  if (bytes <= MAX_PAGE_BYTES) return { sent: row, bytes };
  const sent = abridged(row);
  return { sent, bytes: answerBytes(sent) };
}

/**
 * The bytes that a value takes in a function's answer to API Gateway. The answer is JSON within JSON, so a control
 * character takes seven bytes and a quote takes four.
 * @returns infinity if the value is nested too deep for JSON
 */
function answerBytes(value: unknown): number {
  try {
    return Buffer.byteLength(JSON.stringify(JSON.stringify(value)));
  } catch (error) {
    if (error instanceof RangeError) return Number.POSITIVE_INFINITY; // JSON.stringify recurses, and the stack overflowed
    throw error;
  }
}
