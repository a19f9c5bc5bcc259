import { escapedJson, shown } from './escape.ts';
import { Progress } from './progress.ts';

/** A cell: null and undefined are shown as a dash. */
export type Cell = string | number | boolean | null | undefined;

/** Prints results: tables for people, JSON for programs. It escapes all text that callers of the service wrote. */
export class Output {
  readonly isJson: boolean;
  readonly #isQuiet: boolean;
  readonly #color: boolean;

  constructor({ json, quiet }: { json: boolean; quiet: boolean }) {
    this.isJson = json;
    this.#isQuiet = quiet;
    this.#color = process.stdout.isTTY === true && !process.env.NO_COLOR && process.env.TERM !== 'dumb';
  }

  /** One object on a line of its own. */
  json(value: unknown): void {
    process.stdout.write(`${escapedJson(value)}\n`);
  }

  /** One line of the result. */
  line(text: string): void {
    process.stdout.write(`${shown(text)}\n`);
  }

  /** A line on stderr for people, beside the result. */
  note(text: string): void {
    if (!this.#isQuiet) process.stderr.write(`holdfast: ${shown(text)}\n`);
  }

  /** A line on stderr that `--quiet` does not silence. */
  complaint(text: string): void {
    for (const line of text.split('\n')) process.stderr.write(`holdfast: ${shown(line)}\n`);
  }

  /** A progress line for work that takes long. */
  progress(): Progress {
    return new Progress(this.#isQuiet);
  }

  /** One line for each row, below a header. Numbers are aligned to the right. */
  table(head: readonly string[], rows: readonly (readonly Cell[])[]): void {
    const cells = rows.map((row) => row.map((cell) => shown(String(cell ?? '-'))));
    const widths = head.map((name, at) => Math.max(name.length, ...cells.map((row) => width(row[at] ?? ''))));
    const line = (row: readonly string[], right: (at: number) => boolean) =>
      row
        .map((cell, at) => {
          const fill = ' '.repeat(Math.max(0, (widths[at] ?? 0) - width(cell)));
          return right(at) ? fill + cell : cell + fill;
        })
        .join('  ')
        .trimEnd();
    const isNumber = (at: number) => rows.length > 0 && rows.every((row) => typeof row[at] === 'number');
    process.stdout.write(`${this.#dim(line(head, isNumber))}\n`);
    for (const row of cells) process.stdout.write(`${line(row, isNumber)}\n`);
  }

  /** A name and a value on each line. */
  fields(fields: Record<string, Cell>): void {
    const most = Math.max(...Object.keys(fields).map((name) => name.length));
    for (const [name, value] of Object.entries(fields))
      process.stdout.write(`${this.#dim(name.padEnd(most))}  ${shown(String(value ?? '-'))}\n`);
  }

  #dim(text: string): string {
    return this.#color ? `\u001b[2m${text}\u001b[22m` : text;
  }
}

/** Roughly how many columns a text takes: most characters above the Latin, Greek and Cyrillic scripts take two. */
function width(text: string): number {
  let columns = 0;
  for (const mark of text) {
    const code = mark.codePointAt(0) ?? 0;
    columns += /\p{Mn}/u.test(mark) ? 0 : isWide(code) ? 2 : 1;
  }
  return columns;
}

const isWide = (code: number): boolean =>
  (code >= 0x1100 && code <= 0x115f) ||
  (code >= 0x2e80 && code <= 0xa4cf) ||
  (code >= 0xac00 && code <= 0xd7a3) ||
  (code >= 0xf900 && code <= 0xfaff) ||
  (code >= 0xfe30 && code <= 0xfe6f) ||
  (code >= 0xff00 && code <= 0xff60) ||
  (code >= 0x1f300 && code <= 0x1faff) ||
  (code >= 0x20000 && code <= 0x3fffd);
