import type { Entry } from './contestants.ts';

/** Each of these is the bundle of a module in contestants/permits/. */
const algorithm = (name: string, module: string, rest: Partial<Entry> = {}): Entry => ({
  ...{ name, kind: 'form', expires: true, byDefault: true, waits: true, beats: false },
  command: [process.execPath, `{bundled}/permits/${module}/index.mjs`],
  ...rest,
});

const awsSample = (name: string, pauses: 'sample' | 'ours') =>
  algorithm(name, 'aws-sample', { expires: false, env: { PAUSES: pauses }, table: { hash: 'LockName' } });

/** The contestants, in the order of the tables. */
export const PERMIT_ENTRIES: Entry[] = [
  algorithm('holdfast, in line', 'holdfast', { kind: 'ours' }),
  algorithm('holdfast, racing', 'holdfast', { kind: 'ours', env: { PERMITS: 'race' } }),
  awsSample('AWS sample', 'sample'),
  awsSample("AWS sample, with Holdfast's pauses", 'ours'),
  algorithm('record under a version (Consul)', 'consul', { table: { hash: 'prefix', range: 'entry' } }),
  algorithm('item for each permit', 'slots', { table: { hash: 'key' } }),
];

export const PERMIT_LIMITS = [1, 8, 64];

/** The name in results.json. */
const PERMIT_FIGURES = {
  atOnce: 'requests for a grant, of a crowd that comes at once',
  took: 'until all of a crowd had one',
  perSecond: 'grants a second, of callers that return',
  turns: 'most : fewest grants, of callers that return',
  back: 'requests for a grant, of callers that return',
};

type PermitFigure = keyof typeof PERMIT_FIGURES;

export const permitFigure = (what: PermitFigure, limit: number, algorithm: string): string =>
  `${PERMIT_FIGURES[what]}, ${permitsFor(limit)}, ${algorithm}`;

export const permitsFor = (limit: number): string => (limit === 1 ? '1 permit' : `${limit} permits`);

export const PARKED_PERMITS = { limit: 8, what: `parked tasks, ${permitsFor(8)}, requests for a grant` };
