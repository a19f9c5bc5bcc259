/** How many rows a listing reads for one page. It bounds the cost of a page on which few rows are shown. */
export const ROWS_READ_PER_PAGE = 1000;

/** Lambda refuses an answer over 6,291,556 bytes, and the gateway then says 500. The envelope takes a part of that. */
const MAX_PAGE_BYTES = 5 * 1024 * 1024;

/**
 * The rows of one page of a listing, as many as Lambda can answer with. For example:
 *
 *     const page = new Page<LeaseView>(({ key, ...rest }) => ({ ...rest, key, data: null }));
 *     for (const row of rows) if (!page.add(row)) return { rows: page.rows, nextCursor: cursorBefore(row) };
 */
export class Page<Row> {
  readonly rows: Row[] = [];
  readonly #abridged: (row: Row) => Row;
  #bytes = 0;

  /**
   * @param abridged makes the replacement for a row that no answer can hold: one that is nested too deep for JSON, or larger
   *   than a page. It must be small. One bad record then costs itself alone, and not every page with it.
   */
  constructor(abridged: (row: Row) => Row) {
    this.#abridged = abridged;
  }

  /** @returns false if the page has no room for the row: it is not in it, and the next page begins with it. */
  add(row: Row): boolean {
    const { sent, bytes } = fitting(row, this.#abridged);
    if (this.#bytes + bytes > MAX_PAGE_BYTES && this.rows.length > 0) return false;
    this.#bytes += bytes;
    this.rows.push(sent);
    return true;
  }
}

/** One row as an answer can hold it, alone. @param abridged as for a page */
export const answerable = <Row>(row: Row, abridged: (row: Row) => Row): Row => fitting(row, abridged).sent;

function fitting<Row>(row: Row, abridged: (row: Row) => Row): { sent: Row; bytes: number } {
  const bytes = answerBytes(row);
  if (bytes <= MAX_PAGE_BYTES) return { sent: row, bytes };
  const sent = abridged(row);
  return { sent, bytes: answerBytes(sent) };
}

/**
 * The bytes that a value takes in the answer of a function to the gateway: JSON within JSON, so that a control character
 * takes seven and a quote four. Infinity if the value is nested too deep for JSON.
 */
function answerBytes(value: unknown): number {
  try {
    return Buffer.byteLength(JSON.stringify(JSON.stringify(value)));
  } catch (error) {
    if (error instanceof RangeError) return Number.POSITIVE_INFINITY; // JSON.stringify recurses, and the stack ends
    throw error;
  }
}
