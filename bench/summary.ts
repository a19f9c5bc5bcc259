import type { Figure } from './measurement.ts';
import type { Results } from './results.ts';
import { markdown, number } from './table.ts';

/** The locks on other servers, by their names in the measurements `servers` and `faults`. */
export const SERVER_CONTESTANTS = [
  'etcd concurrency.Mutex',
  'redlock-universal',
  'redis-semaphore Mutex',
  'redis-semaphore Semaphore of 1',
  'Curator InterProcessMutex',
];

export const findFigure = (results: Results, measurement: string, what: string): Figure | undefined =>
  results.measurements[measurement]?.figures.find((figure) => figure.what === what);

interface Row {
  label: string;
  /** The name of the contestant in results.json. */
  name: string;
  isServer?: true;
}

/** The products of the comparison, each with the defaults of the documentation. */
const ROWS: Row[] = [
  { label: 'Holdfast', name: 'holdfast' },
  { label: '@deliveryhero/dynamodb-lock (npm)', name: '@deliveryhero/dynamodb-lock' },
  { label: 'dynamodb-lock-client (npm)', name: 'dynamodb-lock-client' },
  { label: 'amazon-dynamodb-lock-client (Java)', name: 'Java amazon-dynamodb-lock-client' },
  { label: 'dynamodb-lease (Rust)', name: 'Rust dynamodb-lease' },
  { label: 'etcd (concurrency.Mutex)', name: 'etcd concurrency.Mutex', isServer: true },
  { label: 'Redis (redlock-universal)', name: 'redlock-universal', isServer: true },
  { label: 'Redis (redis-semaphore, fair)', name: 'redis-semaphore Semaphore of 1', isServer: true },
  { label: 'ZooKeeper (Curator InterProcessMutex)', name: 'Curator InterProcessMutex', isServer: true },
];

interface Column {
  header: string;
  cell: (figure: Figure) => string;
  /** The measurement of Holdfast and the libraries. `what` gives the name of the figure for a contestant. */
  measurement: string;
  what: (name: string) => string;
  /** The name of the same figure in the measurement `servers`. */
  ofServer: (name: string) => string;
}

const middle = ({ median = Number.NaN }: Figure) => number(median);
/** The two numbers of a figure such as "8 : 7, 40 grants/s". */
const turns = ({ value }: Figure) => /^\d+ : \d+/.exec(value)?.[0] ?? value;

const COLUMNS: Column[] = [
  {
    header: 'free lock: acquire + release, p50 ms',
    cell: middle,
    measurement: 'cycles',
    what: (name) => `a cycle, ${name}`,
    ofServer: (name) => `free lock, acquire and release, ${name}`,
  },
  {
    header: 'hand-off to a waiter, p50 ms',
    cell: middle,
    measurement: 'handoff',
    what: (name) => name,
    ofServer: (name) => `hand-off, ${name}`,
  },
  {
    header: '64 callers arrive at once: grants/s',
    cell: middle,
    measurement: 'contention',
    what: (name) => `64 contenders, ${name}`,
    ofServer: (name) => `64 at once, ${name}`,
  },
  {
    header: '64 callers return: most and fewest grants',
    cell: turns,
    measurement: 'fairness',
    what: (name) => `64 contenders, ${name}`,
    ofServer: (name) => `64 returning callers, most : fewest grants, ${name}`,
  },
];

const SERVERS_LINE =
  'etcd, Redis and ZooKeeper are servers that you keep running. Holdfast and the libraries need only a DynamoDB table.';

/** The comparison in Markdown: a row for each product that was measured, and four columns. */
export function summaryTable(results: Results): string[] {
  const rows = ROWS.map(({ label, name, isServer }) => [
    label,
    ...COLUMNS.map(({ cell, measurement, what, ofServer }) => {
      const figure = isServer
        ? findFigure(results, 'servers', ofServer(name))
        : findFigure(results, measurement, what(name));
      return figure ? cell(figure) : '';
    }),
  ]).filter((cells) => cells.slice(1).some(Boolean));
  const table = markdown([['', ...COLUMNS.map(({ header }) => header)], ...rows]);
  return results.measurements.servers ? [table, SERVERS_LINE] : [table];
}

const FAULTS: Record<string, string> = {
  'paused, double writes without fences': 'paused holder: double writes',
  'paused, double writes with fences': 'paused holder: double writes that a store with fences takes',
  'lost reply to acquire': 'lost reply to acquire',
  'restart without the disk': 'restart without the disk',
};

/** The effects of the faults on each lock, in Markdown. */
export function faultsTable(results: Results): string[] {
  if (!results.measurements.faults) return [];
  const cells = (name: string) =>
    Object.keys(FAULTS).map((fault) => findFigure(results, 'faults', `${fault}, ${name}`)?.value ?? '');
  const rows = ['holdfast client', ...SERVER_CONTESTANTS]
    .map((name) => [name, ...cells(name)])
    .filter((row) => row.slice(1).some(Boolean));
  return ['### Under faults', markdown([['', ...Object.values(FAULTS)], ...rows])];
}

/** The price of the smallest servers that the product needs for a month, without a single call. List prices of us-east-1, on demand. */
const IDLE: Record<string, [servers: string, dollars: string]> = {
  'holdfast client': ['none', '$5'],
  'etcd concurrency.Mutex': ['3', '$37'],
  'redlock-universal': ['1', '$12'],
  'redis-semaphore Semaphore of 1': ['1', '$12'],
  'Curator InterProcessMutex': ['3', '$37'],
};

const NAMES: Record<string, string> = {
  'holdfast client': '**Holdfast**',
  'etcd concurrency.Mutex': 'etcd (`Mutex`)',
  'redlock-universal': 'Redis (redlock-universal)',
  'redis-semaphore Semaphore of 1': 'Redis (redis-semaphore, fair)',
  'Curator InterProcessMutex': 'ZooKeeper (Curator)',
};

/** How many late writes of a paused holder a store accepts, if the lock has fences and the store checks them. */
function lateWrites(value: (what: string) => string, name: string): string {
  const withFences = value(`paused, double writes with fences, ${name}`);
  if (withFences !== 'has no fences') return withFences === 'at most 0' ? 'none' : withFences;
  return `${value(`paused, double writes without fences, ${name}`)}, no fences`;
}

/** Holdfast beside locks on servers, for the README: faults, speed and what you keep running. */
export function choiceTable(results: Results): string[] {
  const value = (what: string) => findFigure(results, 'faults', what)?.value ?? '';
  const rows = Object.entries(IDLE).map(([name, [servers, dollars]]) => {
    const handOff =
      name === 'holdfast client'
        ? findFigure(results, 'handoff', 'holdfast')
        : findFigure(results, 'servers', `hand-off, ${name}`);
    return [
      NAMES[name] ?? name,
      lateWrites(value, name),
      value(`lost reply to acquire, ${name}`),
      handOff ? `${middle(handOff)} ms` : '',
      servers,
      dollars,
    ];
  });
  const header = ['', 'late writes', 'lost reply', 'hand-off to a waiter', 'servers to run', 'a month without calls'];
  return [markdown([header, ...rows])];
}
