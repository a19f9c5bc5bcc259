export function table(head: string[], rows: string[][]): string {
  const line = (cells: string[]) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |\n`;
  return [line(head), `|${'---|'.repeat(head.length)}\n`, ...rows.map(line)].join('');
}

export const code = (language: string, text: string) => `\`\`\`${language}\n${text}\n\`\`\`\n`;

const WIDTH = 110;

/** JSON with each object and list on one line, if it fits there. */
export function json(value: unknown, indent = ''): string {
  const line = onOneLine(value);
  if (value === null || typeof value !== 'object' || indent.length + line.length <= WIDTH) return line;
  const inside = `${indent}  `;
  const [open, close] = Array.isArray(value) ? ['[', ']'] : ['{', '}'];
  const entries = Object.entries(value).map(
    ([name, member]) => `${inside}${Array.isArray(value) ? '' : `"${name}": `}${json(member, inside)}`,
  );
  return `${open}\n${entries.join(',\n')}\n${indent}${close}`;
}

/** JSON.stringify escapes line breaks inside texts, so every line break that is left stands between values. */
const onOneLine = (value: unknown) =>
  JSON.stringify(value, null, 1)
    .replace(/([[{])\n\s*/g, (_, open: string) => (open === '{' ? '{ ' : '['))
    .replace(/\n\s*([\]}])/g, (_, close: string) => (close === '}' ? ' }' : ']'))
    .replace(/\n\s*/g, ' ');
