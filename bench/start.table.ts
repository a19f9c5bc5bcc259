import { MEMORY_SIZES } from './init.ts';
import type { Results } from './results.ts';
import { markdown } from './table.ts';

/** A row for each function: its bundle, and how long it takes to start beside the bare clients. */
export function coldTable({ measurements: { size, cold } }: Results): string[] {
  if (!size || !cold) return [];
  const all = [...size.figures, ...cold.figures];
  const value = (what: string) => all.find((figure) => figure.what === what)?.value ?? '';
  const rows = size.figures.flatMap(({ what }) => {
    const [, name] = /^(\w+), loaded/.exec(what) ?? [];
    if (name === undefined) return [];
    const starts = ['import', 'first answer'].flatMap((part) => [
      value(`${name} ${part}`),
      value(`${name} ${part} ratio`),
    ]);
    return [[name, value(`${name}, loaded / all`), value(`${name} loaded ratio`), ...starts]];
  });
  const header = ['', 'loaded (gzip) / all', 'x alone', 'import', 'x alone', 'first answer', 'x alone'];
  return details(cold.title, `${size.method}. ${cold.method}`, [header, ...rows]);
}

/** A row for each function: its init time at each size of memory, its peak memory, and the parts of its bundle. */
export function initTable({ measurements: { init } }: Results): string[] {
  if (!init) return [];
  const value = (what: string) => init.figures.find((figure) => figure.what === what)?.value ?? '';
  const rows = init.figures.flatMap(({ what }) => {
    const [, name] = /^bundle, (\w+)/.exec(what) ?? [];
    if (name === undefined) return [];
    const times = MEMORY_SIZES.map((size) => {
      const [time, by] = [value(`init, ${name}, ${size}`), value(`init ratio, ${name}, ${size}`)];
      return time && `${time}, x ${by}`;
    });
    return [[name, ...times, value(`peak memory, ${name}`), value(what)]];
  });
  const header = ['', ...MEMORY_SIZES.map((size) => `init, ${size}`), 'peak memory', 'zip: its largest parts, kB'];
  return details(init.title, init.method, [header, ...rows]);
}

const details = (title: string, method: string, rows: string[][]): string[] => [
  `<details><summary>${title}</summary>\n\n${method}.\n\n${markdown(rows)}\n\n</details>`,
];
