/** Lays out Python text so that `ruff format` does not change it. */

const WIDTH = 120;

export const snake = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
export const pascal = (name: string): string => name.charAt(0).toUpperCase() + name.slice(1);
export const quoted = (value: unknown): string =>
  typeof value === 'boolean' ? pascal(String(value)) : JSON.stringify(value);

/** `head(items)tail` on one line, or with each item on a line of its own. */
export function listed(head: string, items: string[], tail: string): string {
  const indent = /^ */.exec(head)?.[0] ?? '';
  const line = `${head}${items.join(', ')}${tail}`;
  if (line.length <= WIDTH) return line;
  return `${head}\n${items.map((item) => `${indent}    ${item},\n`).join('')}${indent}${tail}`;
}

const sentences = (text: string): string[] => text.split(/(?<=\.)\s+/);

/** The lines of a text, each at most `width` wide. */
function wrapped(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(/\s+/)) {
    const line = lines.at(-1);
    if (line !== undefined && line.length + 1 + word.length <= width) lines[lines.length - 1] = `${line} ${word}`;
    else lines.push(word);
  }
  return lines;
}

/** A docstring on one line if it fits, or else with the first sentence on its own. */
export function docstring(text: string, indent: string): string {
  const [first = '', ...rest] = sentences(text.replaceAll('\\', '\\\\'));
  const width = WIDTH - indent.length;
  const line = `"""${[first, ...rest].join(' ')}"""`;
  if (line.length <= width) return `${indent}${line}\n`;
  const head = wrapped(`"""${first}`, width - 3);
  const body = rest.length > 0 ? ['', ...wrapped(rest.join(' '), width)] : [];
  return [...head, ...body, '"""'].map((one) => `${one && indent}${one}\n`).join('');
}

/** The docstring of a field: its description or its first sentence, if either fits on a line. */
export function fieldDocstring(text: string, indent: string): string {
  const fits = (line: string) => indent.length + line.length + 6 <= WIDTH;
  const line = [text, sentences(text)[0] ?? ''].find((one) => one !== '' && fits(one));
  return line === undefined ? '' : `${indent}"""${line.replaceAll('\\', '\\\\')}"""\n`;
}
