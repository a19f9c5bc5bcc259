/** The columns that a narrow terminal leaves out, the least needed first. `--json` and a pipe show all columns. */
const LEFT_OUT_IN_ORDER = ['WHY', 'EXPIRED', 'MODE', 'WEIGHT', 'KIND', 'UPDATED', 'FENCE', 'HELD', 'AGO'];

/** The gap between two columns. */
export const GAP = '  ';

/** Cells up to this width, such as a time, are cut only after columns have been left out. Longer cells may be cut to `SHORT` before. */
const WHOLE = 24;
const SHORT = 18;

/** The least width of a column. A ticket needs room for the six letters at its end by which `next` and `cancel` find it. */
const minOf = (column = ''): number => (column === 'TICKET' ? 13 : 0);

/**
 * The widths with which a row fits. 0 for a column that is left out.
 * @param natural the widths without a limit
 */
export function fitted(head: readonly string[], natural: readonly number[], maxColumns: number): number[] {
  const minWidths = natural.map((wide) => (wide > WHOLE ? SHORT : wide));
  const isOver = (wides: number[]) =>
    wides.reduce((sum, wide) => sum + (wide && wide + GAP.length), 0) > maxColumns + GAP.length;
  for (const name of LEFT_OUT_IN_ORDER) if (head.includes(name) && isOver(minWidths)) minWidths[head.indexOf(name)] = 0;
  const isTight = isOver(minWidths);
  const widths = natural.map((wide, index) => (isTight || !minWidths[index] ? (minWidths[index] ?? 0) : wide));
  while (isOver(widths)) {
    const from = widths.map((wide, index) =>
      wide > (isTight ? minOf(head[index]) : (minWidths[index] ?? 0)) ? wide : 0,
    );
    const widest = from.indexOf(Math.max(...from));
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
  return widths;
}

/** Cuts a text in the middle, because names that begin alike differ at the end: `tenants/0a6f…/import-120`. */
export function shortened(text: string, maxColumns: number): string {
  const characters = [...text];
  const [head, tail] = [characters.slice(0, maxColumns), characters.slice(-maxColumns)];
  for (let short = text; ; short = [...head, '…', ...tail].join('')) {
    if (columnsOf(short) <= maxColumns) return short;
    if (head.length < tail.length) tail.shift();
    else head.pop();
  }
}

/** Splits a text into lines that fit. */
export function folded(text: string, maxColumns: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const character of text) {
    if (columnsOf(line + character) > maxColumns) {
      lines.push(line);
      line = '';
    }
    line += character;
  }
  return [...lines, line];
}

/** The characters that most terminals show in two columns. */
const WIDE =
  /[\p{EPres}\u1100-\u115f\u2329\u232a\u2e80-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{16fe0}-\u{1b2ff}\u{1f200}-\u{1faff}\u{20000}-\u{3fffd}]/gu;

/** How many columns a text takes on most terminals. */
export const columnsOf = (text: string): number => [...text.replace(/[\p{Mn}\p{Me}]/gu, '').replace(WIDE, '__')].length;
