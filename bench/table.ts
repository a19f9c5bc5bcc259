import { styleText } from 'node:util';
import { type Bar, type Figure, type Measurement, verdict } from './measurement.ts';

type Cell = (figure: Figure) => string;

const COLUMNS: [title: string, cell: Cell][] = [
  ['', ({ what }) => what],
  ['median', ({ value }) => value],
  ['p99', ({ p99, unit }) => (p99 === undefined ? '' : `${number(p99)} ${unit ?? ''}`)],
  ['spread', ({ spread }) => (spread ? spread.map(number).join(' to ') : '')],
  ['x floor', ({ toFloor }) => toFloor?.toFixed(2) ?? ''],
  ['x best npm', ({ toBestLibrary }) => toBestLibrary?.toFixed(2) ?? ''],
  ['bar', ({ bar }) => (bar ? limits(bar) : '')],
];

/** Prints to the terminal. Leaves out columns that are empty. */
export function printFigures({ title, method }: Pick<Measurement, 'title' | 'method'>, figures: Figure[]): void {
  console.log(`\n${styleText('bold', title)}\n${styleText('dim', method)}`);
  const columns = COLUMNS.filter(([, cell]) => figures.some((figure) => cell(figure) !== ''));
  const widths = columns.map(([name, cell]) => Math.max(name.length, ...figures.map((one) => cell(one).length)));
  const line = (cells: string[]) =>
    cells.map((cell, at) => (at === 0 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0))).join('   ');
  if (columns.length > 2) console.log(styleText('dim', `  ${line(columns.map(([name]) => name))}`));
  for (const figure of figures) console.log(`  ${line(columns.map(([, cell]) => cell(figure)))}${judged(figure)}`);
}

export const markdown = ([header = [], ...rows]: string[][]): string =>
  [header, header.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');

/** Rounds to three significant digits. */
export function number(value: number): string {
  if (Math.abs(value) >= 100) return value.toFixed(0);
  return value.toFixed(Math.abs(value) >= 10 ? 1 : 2);
}

export const limits = ({ max, min }: Bar): string =>
  [max !== undefined && `at most ${max}`, min !== undefined && `at least ${min}`].filter(Boolean).join(', ');

function judged({ bar }: Figure): string {
  if (!bar) return '';
  const words = {
    kept: () => styleText('green', 'ok'),
    explained: () => styleText('yellow', `over: ${bar.excuse?.why}`),
    missed: () => styleText('red', 'MISSED'),
  };
  return `   ${words[verdict(bar)]()}`;
}
