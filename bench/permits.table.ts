import { PARKED_PERMITS, PERMIT_ENTRIES, PERMIT_LIMITS, permitFigure } from './permits.entries.ts';
import type { Result } from './results.ts';
import { limits, markdown } from './table.ts';

const COLUMNS = {
  atOnce: 'at once: requests (units) for a grant',
  took: 'until all had one',
  perSecond: 'returning: grants/s',
  turns: 'most : fewest grants',
  back: 'requests (units) for a grant',
} as const;

/** A row for each algorithm and limit. */
export function permitsTable(result: Result | undefined): string[] {
  if (!result) return [];
  const find = (name: string) => result.figures.find(({ what }) => what === name);
  const names = Object.keys(COLUMNS) as (keyof typeof COLUMNS)[];
  const rows = PERMIT_LIMITS.flatMap((limit) =>
    PERMIT_ENTRIES.map(({ name }) => {
      const figures = names.map((what) => find(permitFigure(what, limit, name)));
      const bars = figures.flatMap((figure) => (figure?.bar ? [`${limits(figure.bar)} ${figure.unit ?? ': 1'}`] : []));
      return [String(limit), name, ...figures.map((figure) => short(figure?.value ?? '')), bars.join(', ')];
    }),
  );
  const parked = find(PARKED_PERMITS.what);
  const others = names.slice(1).map(() => '');
  if (parked?.bar)
    rows.push([
      ...[String(PARKED_PERMITS.limit), 'holdfast, parked tasks', '', ...others.slice(1)],
      ...[short(parked.value), limits(parked.bar)],
    ]);
  const table = markdown([['permits', '', ...Object.values(COLUMNS), 'bar'], ...rows]);
  return [`<details><summary>${result.title}</summary>\n\n${result.method}.\n\n${table}\n\n</details>`];
}

const short = (value: string) =>
  value.replace(/\((.*) write, (.*) read units\)/, '($1 W, $2 R)').replace(' grants/s', '');
