import { escapedJson, shown } from './escape.ts';
import { EXIT } from './exit-codes.ts';
import { Failure, fileFault } from './failure.ts';
import { columnsOf, fitted, folded, GAP, shortened } from './fit.ts';
import { Progress } from './progress.ts';

/** A cell: null and undefined are shown as a dash. */
export type Cell = string | number | boolean | null | undefined;

/** Prints results: tables for people, and JSON for programs. All text is escaped, because other callers of the service may have written it. */
export class Output {
  readonly isJson: boolean;
  /** The progress line for work that takes long. */
  readonly progress: Progress;
  readonly #color: boolean;

  constructor({ json, quiet }: { json: boolean; quiet: boolean }) {
    this.isJson = json;
    this.progress = new Progress(quiet);
    this.#color = process.stdout.isTTY === true && !process.env.NO_COLOR && process.env.TERM !== 'dumb';
  }

  /** Clears the screen of a terminal. @returns false if the output is not a terminal */
  startScreen(): boolean {
    const isTerminal = process.stdout.isTTY === true && process.env.TERM !== 'dumb';
    if (isTerminal) process.stdout.write('\u001b[H\u001b[2J');
    return isTerminal;
  }

  /** How many lines the terminal has. Infinity if the output is not a terminal. */
  get screenLines(): number {
    return process.stdout.isTTY === true ? process.stdout.rows : Number.POSITIVE_INFINITY;
  }

  /** Prints a value as one line of JSON. */
  json(value: unknown): void {
    process.stdout.write(`${escapedJson(value)}\n`);
  }

  /** Prints one line of the result. */
  line(text: string): void {
    process.stdout.write(`${shown(text)}\n`);
  }

  /**
   * Waits until the last result is written, for results that must not be lost. Must be called directly after the result was printed.
   * @throws Failure if the result cannot be written; without this call the process would end
   */
  written(): Promise<void> {
    process.stdout.removeAllListeners('error').on('error', () => {});
    return new Promise((resolve, reject) => {
      process.stdout.write('', (error) => (error ? reject(unwritten(error)) : resolve()));
    });
  }

  /** Prints a line on stderr for people, unless `--quiet` is given. */
  note(text: string): void {
    this.progress.note(text);
  }

  /** Prints an error on stderr, even with `--quiet`. */
  complaint(text: string): void {
    for (const line of text.split('\n')) process.stderr.write(`holdfast: ${shown(line)}\n`);
  }

  /** Prints a header and a line for each row, which fit the terminal. Numbers are aligned to the right. */
  table(head: readonly string[], rows: readonly (readonly Cell[])[]): void {
    const cells = rows.map((row) => row.map((cell) => shown(String(cell ?? '-'))));
    const natural = head.map((_, index) => Math.max(...[head, ...cells].map((row) => columnsOf(row[index] ?? ''))));
    const widths = fitted(head, natural, this.#columns);
    const isNumber = head.map((_, index) => rows.length > 0 && rows.every((row) => typeof row[index] === 'number'));
    const line = (row: readonly string[]) =>
      row
        .flatMap((cell, index) => {
          const width = widths[index];
          if (!width) return [];
          const text = shortened(cell, width);
          const fill = ' '.repeat(width - columnsOf(text));
          return isNumber[index] ? fill + text : this.#state(text) + fill;
        })
        .join(GAP)
        .trimEnd();
    process.stdout.write(`${this.#dim(line(head))}\n`);
    for (const row of cells) process.stdout.write(`${line(row)}\n`);
  }

  /** Prints a name and a value on each line. At a terminal, a long value is split into several lines. */
  fields(fields: Record<string, Cell>): void {
    const nameWidth = Math.max(...Object.keys(fields).map((name) => name.length));
    const indent = ' '.repeat(nameWidth) + GAP;
    for (const [name, value] of Object.entries(fields)) {
      const lines = folded(shown(String(value ?? '-')), this.#columns - indent.length);
      process.stdout.write(
        `${this.#dim(name.padEnd(nameWidth))}${GAP}${lines.map((text) => this.#state(text)).join(`\n${indent}`)}\n`,
      );
    }
  }

  /** How wide a line may be. Some terminals do not know their own width. */
  get #columns(): number {
    return (process.stdout.isTTY && process.stdout.columns) || Number.POSITIVE_INFINITY;
  }

  #dim(text: string): string {
    return this.#color ? `\u001b[2m${text}\u001b[22m` : text;
  }

  /** Colours an expired holder, which may be the reason why the user calls the command. */
  #state(text: string): string {
    return this.#color && text === 'expired' ? `\u001b[31m${text}\u001b[39m` : text;
  }
}

/** The failure of a result that cannot be written. */
export const unwritten = (error: Error): Failure =>
  new Failure(`the result cannot be written: ${fileFault(error)}`, EXIT.refused);
