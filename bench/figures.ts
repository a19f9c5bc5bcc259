import { createHash } from 'node:crypto';
import type { Figure } from './measurement.ts';
import { PERMIT_ENTRIES, permitFigure, permitsFor } from './permits.entries.ts';
import { permitsTable } from './permits.table.ts';
import { type Results, runsOf } from './results.ts';
import { coldTable, initTable } from './start.table.ts';
import { choiceTable, faultsTable, findFigure, SERVER_CONTESTANTS, summaryTable } from './summary.ts';
import { limits, markdown, number } from './table.ts';

/** The contestants in the order of the tables, as results.json names them. */
const CONTESTANTS = [
  'floor',
  'holdfast domain',
  'holdfast',
  'holdfast over HTTP',
  '@deliveryhero/dynamodb-lock',
  '@deliveryhero/dynamodb-lock, polling',
  'dynamodb-lock-client',
  'dynamodb-lock-client, trusting clocks',
  'dynamodb-lock-client, never expiring',
  'Java amazon-dynamodb-lock-client',
  'Rust dynamodb-lease',
];

/** A column of the table, with a chart if `chart` is present. */
interface Quantity {
  header: string;
  measurement: string;
  /** Its name in results.json. */
  what: (contestant: string) => string;
  cell?: (figure: Figure) => string;
  /** The contestants, if they are not those that take locks. */
  contestants?: string[];
  chart?: ChartPlan;
}

interface ChartPlan {
  file: string;
  title: string;
  axis: string;
  /** The name of the same figure in the measurement `servers`, if any, and the median in the unit of the axis. */
  ofServer?: { what: (contestant: string) => string; value?: (median: number) => number };
}

const CHARTED_LIMIT = 8;

const milliseconds = ({ median, p99 }: Figure) => `${number(median ?? Number.NaN)} / ${number(p99 ?? Number.NaN)} ms`;

const QUANTITIES: Quantity[] = [
  {
    header: 'requests (units) of acquire and release',
    measurement: 'cycles',
    what: (name) => `requests of a cycle, ${name}`,
    cell: ({ value }) => value.replace(/\((.*) write, (.*) read units\)/, '($1 W, $2 R)'),
  },
  { header: 'cycles/s', measurement: 'cycles', what: (name) => `cycles a second, ${name}` },
  {
    header: 'cycles/s, 5 ms away',
    measurement: 'cycles',
    what: (name) => `cycles a second, 5 ms away, ${name}`,
    chart: {
      file: 'cycles',
      title: 'Acquire and release a free lock, one after the other, 5 ms from the table or the server',
      axis: 'cycles a second',
      ofServer: {
        what: (name) => `free lock, acquire and release, ${name}, 5 ms away`,
        value: (milliseconds) => 1000 / milliseconds,
      },
    },
  },
  {
    header: 'hand-off p50 / p99',
    measurement: 'handoff',
    what: (name) => name,
    cell: milliseconds,
    chart: {
      file: 'handoff',
      title: 'From the release to the grant of the caller who waits',
      axis: 'milliseconds, lease of 10 s',
      ofServer: { what: (name) => `hand-off, ${name}` },
    },
  },
  {
    header: 'take-over p50 / p99',
    measurement: 'takeover',
    what: (name) => name,
    cell: milliseconds,
  },
  {
    header: 'newcomer p50 / p99',
    measurement: 'newcomer',
    what: (name) => name,
    cell: milliseconds,
    chart: {
      file: 'newcomer',
      title: 'Acquire a second after a crashed holder’s lease expired',
      axis: 'milliseconds, lease of 3 s',
    },
  },
  {
    header: '64 callers: grants/s',
    measurement: 'contention',
    what: (name) => `64 contenders, ${name}`,
    cell: ({ median }) => number(median ?? Number.NaN),
    chart: {
      file: 'contention',
      title: '64 callers come at once, each wants the key once',
      axis: 'grants a second',
      ofServer: { what: (name) => `64 at once, ${name}` },
    },
  },
  {
    header: 'requests for each',
    measurement: 'contention',
    what: (name) => `64 contenders, requests for a grant, ${name}`,
    cell: ({ median }) => number(median ?? Number.NaN),
  },
];

/** Quantities with a chart, but without a column. */
const SERVERS: Quantity = {
  header: '',
  measurement: 'servers',
  what: (name) => `hand-off, ${name}, 5 ms away`,
  contestants: ['holdfast', ...SERVER_CONTESTANTS],
  chart: {
    file: 'servers',
    title: 'From the release to the grant of the caller who waits, 5 ms from the table or the server',
    axis: 'milliseconds, lease of 10 s',
  },
};
const PERMITS: Quantity = {
  header: '',
  measurement: 'permits',
  what: (name) => permitFigure('atOnce', CHARTED_LIMIT, name),
  contestants: PERMIT_ENTRIES.map(({ name }) => name),
  chart: {
    file: 'permits',
    title: `64 callers come at once for ${permitsFor(CHARTED_LIMIT)}, and each wants one`,
    axis: 'requests for each grant',
  },
};

const find = (results: Results, { measurement, what }: Quantity, contestant: string): Figure | undefined =>
  findFigure(results, measurement, what(contestant));

/** The figures of docs/benchmarks.md in Markdown, made only from results.json: first the comparison, then the details. */
export function figuresBlock(results: Results): string {
  return [
    ...provenance(results),
    ...summaryTable(results),
    ...faultsTable(results),
    '### Charts',
    ...charts(results).map(({ file, title }) => `![${title}](../${file})`),
    '### Details',
    comparison(results, { contestants: CONTESTANTS, quantities: QUANTITIES }),
    ...permitsTable(results.measurements.permits),
    ...wholeTables(results),
    ...coldTable(results),
    ...initTable(results),
    ...unmet(results),
  ].join('\n\n');
}

/** The figures of the README. */
export const summaryBlock = (results: Results): string => choiceTable(results).join('\n\n');

interface Compared {
  contestants: string[];
  quantities: Quantity[];
}

function comparison(results: Results, { contestants, quantities }: Compared): string {
  const header = ['', ...quantities.map(({ header }) => header)];
  const rows = contestants
    .map((contestant) => [
      contestant,
      ...quantities.map((quantity) => {
        const figure = find(results, quantity, contestant);
        return figure ? (quantity.cell?.(figure) ?? figure.value.replace(' /s', '')) : '';
      }),
    ])
    .filter((cells) => cells.slice(1).some(Boolean));
  return markdown([header, ...rows]);
}

/** The date, the machine and the versions. If measurements stem from another run, names them with their day and machine. */
function provenance(results: Results): string[] {
  const [first, ...others] = runsOf(results);
  const libraries = new Set(Object.values(results.measurements).flatMap(({ libraries }) => libraries));
  return [
    ...(first ? [`${first.when}.`] : []),
    ...others.map(({ when, names }) => `From another run: ${names.map((name) => `*${name}*`).join(', ')}. ${when}.`),
    ...(libraries.size > 0 ? [`Compared with ${[...libraries].join(', ')}.`] : []),
  ];
}

/** Measurements that docs/benchmarks.md shows as they are. */
const WHOLE = [
  ...['overhead', 'throttled', 'namespace', 'heartbeat', 'line', 'waiting', 'fairness'],
  ...['commits', 'nameservice', 'scale', 'parked', 'permitcost', 'report'],
  ...['servers', 'faults'],
];

function wholeTables({ measurements }: Results): string[] {
  return WHOLE.flatMap((name) => {
    const result = measurements[name];
    if (!result) return [];
    const rows = result.figures.map((figure) => [
      figure.what,
      figure.value,
      factor(figure),
      figure.bar ? limits(figure.bar) : '',
    ]);
    const heading = `<details><summary>${result.title}</summary>\n\n${result.method}.`;
    return [`${heading}\n\n${markdown([['', 'median', 'x floor', 'bar'], ...rows])}\n\n</details>`];
  });
}

const factor = ({ toFloor }: Figure) => toFloor?.toFixed(2) ?? '';

/** Shows more digits than the tables, so that a bar that is narrowly missed does not look met. */
const digits = (value: number) => String(Number(value.toPrecision(4)));

/** The bars that are missed, with the reasons. Figures of a measurement with the same bar and reason share a line. */
function unmet({ measurements }: Results): string[] {
  const reasons = Object.entries(measurements).flatMap(([name, { figures }]) => {
    const missed = figures.flatMap(({ what, bar, toBestLibrary }) => {
      if (!bar || bar.verdict === 'kept') return [];
      const { measured } = bar;
      const value = `${digits(measured)}${measured === toBestLibrary ? ' times the best npm library' : ''}`;
      return [
        {
          ...{ line: `${what}: ${value}`, measured },
          rest: ` (bar: ${limits(bar)}): ${bar.excuse && bar.verdict === 'explained' ? bar.excuse.why : 'no reason found yet'}`,
        },
      ];
    });
    return Object.entries(Object.groupBy(missed, ({ rest }) => rest)).map(([rest, group = []]) => {
      const values = group.map(({ measured }) => measured);
      const range = `${digits(Math.min(...values))} to ${digits(Math.max(...values))}`;
      const what =
        group.length > 3 ? `${group.length} figures of ${name}: ${range}` : group.map(({ line }) => line).join('; ');
      return `- ${what}${rest}`;
    });
  });
  return reasons.length > 0 ? [`Bars that are not met:\n\n${reasons.join('\n')}`] : [];
}

export interface Chart {
  /** The path from the root of the repository. */
  file: string;
  title: string;
  /** Vega-Lite. */
  spec: object;
  /** Written into the SVG, so that a test can tell whether the chart shows these figures. */
  digest: string;
}

const isOurs = (contestant: string) => contestant.startsWith('holdfast');

export function charts(results: Results): Chart[] {
  return [...QUANTITIES, SERVERS, PERMITS].flatMap((quantity) => {
    if (!quantity.chart) return [];
    const { file, title, axis, ofServer } = quantity.chart;
    const bar = (contestant: string, figure: Figure | undefined, value = (median: number) => median) =>
      figure?.median === undefined ? [] : [{ contestant, median: value(figure.median), ours: isOurs(contestant) }];
    const values = (quantity.contestants ?? CONTESTANTS).flatMap((name) => bar(name, find(results, quantity, name)));
    if (ofServer)
      for (const name of SERVER_CONTESTANTS)
        values.push(...bar(name, findFigure(results, 'servers', ofServer.what(name)), ofServer.value));
    if (values.length === 0) return [];
    const spec = barChart(title, axis, values);
    const digest = createHash('sha256').update(JSON.stringify(spec)).digest('hex');
    return [{ file: `bench/${file}.svg`, title, spec, digest }];
  });
}

/** The axis is logarithmic if the values are decades apart. It then begins at the power of ten below the lowest value. */
function barChart(title: string, axis: string, values: { median: number }[]): object {
  const medians = values.map(({ median }) => median);
  const [least, most] = [Math.min(...medians), Math.max(...medians)];
  const isWide = least > 0 && most > 30 * least;
  const start = isWide ? 10 ** Math.floor(Math.log10(least)) : 0;
  const scale = isWide ? { type: 'log', domainMin: start } : { zero: true };
  return {
    $schema: 'https://vega.github.io/schema/vega-lite/v6.json',
    title,
    width: 420,
    background: 'white',
    data: { values },
    encoding: {
      y: { field: 'contestant', type: 'nominal', sort: null, title: null },
      x: { field: 'median', type: 'quantitative', title: isWide ? `${axis}, logarithmic` : axis, scale },
    },
    layer: [
      {
        mark: 'bar',
        encoding: {
          x2: { datum: start },
          color: {
            field: 'ours',
            type: 'nominal',
            legend: null,
            scale: { domain: [true, false], range: ['#1f6feb', '#9aa4b2'] },
          },
        },
      },
      {
        mark: { type: 'text', align: 'left', dx: 4 },
        encoding: { text: { field: 'median', type: 'quantitative', format: ',.3~r' } },
      },
    ],
    config: { axisY: { labelLimit: 320 } },
  };
}
