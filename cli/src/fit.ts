/** Columns that a narrow terminal leaves out, the least needed first. `--json` and a pipe have them all. */
const LEAST_NEEDED = ['WHY', 'EXPIRED', 'MODE', 'WEIGHT', 'KIND', 'UPDATED', 'FENCE', 'HELD', 'AGO'];

/** Between two columns. */
export const GAP = '  ';

/** Cells of up to this width, such as an instant, stay whole as long as a column can go. Longer ones may be cut to `SHORT`. */
const WHOLE = 24;
const SHORT = 18;

/** Six letters at the end of a ticket name it for `next` and `cancel`. */
const leastOf = (column = ''): number => (column === 'TICKET' ? 13 : 0);

/**
 * How wide each column is so that a row fits, and 0 for a column that goes.
 * @param natural how wide each would be with room for all
 */
export function fitted(head: readonly string[], natural: readonly number[], most: number): number[] {
  const least = natural.map((wide) => (wide > WHOLE ? SHORT : wide));
  const isOver = (wides: number[]) =>
    wides.reduce((sum, wide) => sum + (wide && wide + GAP.length), 0) > most + GAP.length;
  for (const name of LEAST_NEEDED) if (head.includes(name) && isOver(least)) least[head.indexOf(name)] = 0;
  const isTight = isOver(least);
  const widths = natural.map((wide, at) => (isTight || !least[at] ? (least[at] ?? 0) : wide));
  while (isOver(widths)) {
    const from = widths.map((wide, at) => (wide > (isTight ? leastOf(head[at]) : (least[at] ?? 0)) ? wide : 0));
    const widest = from.indexOf(Math.max(...from));
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
  return widths;
}

/** A text of at least one column, with its head and its tail, because names that begin alike differ at the end: `tenants/0a6f…/import-120`. */
export function shortened(text: string, most: number): string {
  const marks = [...text];
  const [head, tail] = [marks.slice(0, most), marks.slice(-most)];
  for (let short = text; ; short = [...head, '…', ...tail].join('')) {
    if (columnsOf(short) <= most) return short;
    if (head.length < tail.length) tail.shift();
    else head.pop();
  }
}

/** A text in lines that fit. */
export function folded(text: string, most: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const mark of text) {
    if (columnsOf(line + mark) > most) {
      lines.push(line);
      line = '';
    }
    line += mark;
  }
  return [...lines, line];
}

/** What most terminals show in two columns. */
const WIDE =
  /[\p{EPres}\u1100-\u115f\u2329\u232a\u2e80-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{16fe0}-\u{1b2ff}\u{1f200}-\u{1faff}\u{20000}-\u{3fffd}]/gu;

/** Roughly how many columns a text takes. */
export const columnsOf = (text: string): number => [...text.replace(/[\p{Mn}\p{Me}]/gu, '').replace(WIDE, '__')].length;
