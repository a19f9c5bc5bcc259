import { styleText } from 'node:util';

/** One line of the table. */
export interface Figure {
  what: string;
  /** As it is printed, with its unit. */
  value: string;
  /** Present where there is a limit to keep. */
  bar?: { measured: number; most: number /** Why it may be missed. */; limit?: string };
}

export interface Measurement {
  /** For `--only`. */
  name: string;
  title: string;
  /** How it is measured, and what the figures therefore do not say. */
  method: string;
  run(options: Options): Promise<Figure[]>;
}

export interface Options {
  /** Fewer samples: to see that the bench works, not to judge by. */
  quick: boolean;
  dynamodbEndpoint: string;
  progress(text: string): void;
}

export const ratio = (what: string, measured: number, most?: number, limit?: string): Figure => ({
  what,
  value: measured.toFixed(2),
  ...(most !== undefined && { bar: { measured, most, ...(limit && { limit }) } }),
});

const isOver = ({ bar }: Figure): boolean => bar !== undefined && !(bar.measured <= bar.most);

/** Over its bar, and no reason is on record. */
export const missed = (figure: Figure): boolean => isOver(figure) && !figure.bar?.limit;

/** Nearest-rank percentile. @param fraction 0.5 for the median */
export function percentile(samples: number[], fraction: number): number {
  const sorted = samples.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * fraction) - 1)] ?? Number.NaN;
}

export const median = (samples: number[]): number => percentile(samples, 0.5);

/** In place (Fisher-Yates), so that no contestant always runs first. */
export function shuffle<T>(list: T[]): T[] {
  for (let last = list.length - 1; last > 0; last--) {
    const other = Math.floor(Math.random() * (last + 1));
    [list[last], list[other]] = [list[other] as T, list[last] as T];
  }
  return list;
}

export function printFigures({ title, method }: Measurement, figures: Figure[]): void {
  console.log(`\n${styleText('bold', title)}\n${styleText('dim', method)}`);
  const widest = Math.max(...figures.map(({ what }) => what.length));
  for (const figure of figures) {
    const { what, value, bar } = figure;
    const over = bar?.limit ? styleText('yellow', `over: ${bar.limit}`) : styleText('red', 'MISSED');
    const verdict = isOver(figure) ? over : styleText('green', 'ok');
    console.log(`  ${what.padEnd(widest)}  ${value.padStart(14)}${bar ? `   at most ${bar.most}   ${verdict}` : ''}`);
  }
}
