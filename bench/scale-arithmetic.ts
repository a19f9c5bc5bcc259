import { PARAMETERS } from '../infrastructure/parameters.ts';

/**
 * Computes what an account can bear and what it pays, from published limits and prices. docs/scale.md quotes what `npm run verify -- bench-scale` prints.
 * Nothing here is measured.
 */

/** The published AWS defaults, for one account in one region, unless a comment says otherwise. */
const LIMITS = {
  /** Write units a second of one partition, and so of one item. */
  partitionWrites: 1000,
  /** Write units a second of one on-demand table. */
  tableWrites: 40_000,
  /** Write units a second of a new on-demand table, before it has been warmed or has grown. */
  newTableWrites: 4000,
  lambdaConcurrency: 1000,
  /** Further environments of one function in ten seconds. */
  lambdaScaling: 1000,
  /** Invocations a second for each environment of concurrency. */
  lambdaRequestsPerEnvironment: 10,
  gatewayRequests: 10_000,
};

/** A price, and up to how much it holds. */
type Tier = [amount: number, price: number];

/** US dollars in us-east-1, without free tier, discount or savings plan. */
export const PRICES = {
  millionWrites: 0.625,
  millionReads: 0.125,
  lambdaMillionRequests: 0.2,
  /** For each GB-second on arm64, in tiers: up to how many a month, and the price. */
  lambdaSeconds: [
    [7.5e9, 0.0000133334],
    [11.25e9, 0.0000120001],
    [Number.POSITIVE_INFINITY, 0.0000106667],
  ] as Tier[],
  /** For each million calls of an HTTP API, in tiers: up to how many a month, and the price. */
  gatewayMillions: [
    [300, 1.0],
    [Number.POSITIVE_INFINITY, 0.9],
  ] as Tier[],
  /** For each gigabyte of a function's log, in tiers: up to how many a month, and the price. */
  logGigabytes: [
    [10_000, 0.5],
    [20_000, 0.25],
    [20_000, 0.1],
    [Number.POSITIVE_INFINITY, 0.05],
  ] as Tier[],
};

/** What a call of this service uses. Tests count the units. The rest is assumed, as the page says. */
export const CALL = {
  writeUnits: 1,
  milliseconds: 10,
  memoryGb: 0.5,
  logKilobytes: 1, // our line has 600 bytes, and Lambda adds START, END and REPORT
};

const MONTH_SECONDS = 30 * 24 * 3600;

type Row = [string, string, string];

const defaultOf = (name: string) => count(Number(PARAMETERS[name]?.default));

/** The highest rate of each kind, and what limits it. */
function ceilings(): Row[] {
  const cycles = LIMITS.partitionWrites / (2 * CALL.writeUnits);
  const concurrent = LIMITS.lambdaConcurrency / (CALL.milliseconds / 1000);
  const invoked = LIMITS.lambdaConcurrency * LIMITS.lambdaRequestsPerEnvironment;
  return [
    ['writes on one key, won or lost', perSecond(LIMITS.partitionWrites), 'partition: 1,000 write units'],
    ['acquire and release of one key', perSecond(cycles), 'the same, two writes each'],
    ['callers in line for one key', defaultOf('maxWaitersPerKey'), 'maxWaitersPerKey (can be raised to 100,000)'],
    ['acquires on all keys of a new table', perSecond(LIMITS.newTableWrites), 'first capacity of an on-demand table'],
    [
      'acquires on all keys of one table',
      perSecond(LIMITS.tableWrites),
      'table quota of 40,000 write units (can be raised)',
    ],
    ['calls through API Gateway', perSecond(LIMITS.gatewayRequests), 'account quota (can be raised)'],
    [
      'calls by Lambda, of 10 ms each',
      perSecond(Math.min(concurrent, invoked)),
      `10 a second for each of 1,000 environments; their time would allow ${count(concurrent)}`,
    ],
    ['calls held at the same time', defaultOf('maxHeldCalls'), 'maxHeldCalls: each occupies an environment'],
    [
      'callers that sleep, with a call a minute each',
      count(60 * Number(PARAMETERS.throttlingRate?.default)),
      'throttlingRate: 2,000 requests a second on a route (can be raised)',
    ],
  ];
}

/** What an account needs for this many acquires a second, spread over many keys, through API Gateway. */
function needs(acquires: number): Row[] {
  const environments = Math.max((acquires * CALL.milliseconds) / 1000, acquires / LIMITS.lambdaRequestsPerEnvironment);
  const times = (value: number) => `${count(Math.ceil(value))} x`;
  return [
    [
      'write units a second',
      perSecond(acquires * CALL.writeUnits),
      `${times((acquires * CALL.writeUnits) / LIMITS.tableWrites)} the table quota`,
    ],
    [
      'partitions, at least',
      count((acquires * CALL.writeUnits) / LIMITS.partitionWrites),
      'at 1,000 write units; warm throughput has to be asked for',
    ],
    [
      'Lambda environments',
      count(environments),
      `${times(environments / LIMITS.lambdaConcurrency)} the default concurrency`,
    ],
    [
      'seconds to scale there from nothing',
      count((environments / LIMITS.lambdaScaling) * 10),
      '1,000 environments every 10 s',
    ],
    ['calls through API Gateway', perSecond(acquires), `${times(acquires / LIMITS.gatewayRequests)} the default quota`],
  ];
}

/** The price of this many acquires a second for a month of 30 days, in US dollars. */
function bill(acquires: number): Row[] {
  const millions = (acquires * MONTH_SECONDS) / 1e6;
  const seconds = acquires * MONTH_SECONDS * (CALL.milliseconds / 1000) * CALL.memoryGb;
  const parts: [string, number][] = [
    ['DynamoDB writes', millions * CALL.writeUnits * PRICES.millionWrites],
    ['API Gateway', tiered(millions, PRICES.gatewayMillions)],
    ['Lambda requests', millions * PRICES.lambdaMillionRequests],
    ['Lambda time', tiered(seconds, PRICES.lambdaSeconds)],
    ['logs', tiered(millions * CALL.logKilobytes, PRICES.logGigabytes)],
  ];
  const all = parts.reduce((sum, [, dollars]) => sum + dollars, 0);
  return [...parts, ['together', all] as [string, number]].map(([part, dollars]) => [
    part,
    `$${count(Math.round(dollars))}`,
    `$${(dollars / millions).toFixed(3)}`,
  ]);
}

function tiered(amount: number, steps: Tier[]): number {
  let [left, sum] = [amount, 0];
  for (const [upTo, price] of steps) {
    const here = Math.min(left, upTo);
    sum += here * price;
    left -= here;
  }
  return sum;
}

const count = (value: number) => value.toLocaleString('en', { maximumFractionDigits: 0 });
const perSecond = (value: number) => `${count(value)} /s`;

const table = (header: Row, rows: Row[]) =>
  [header, ['---', '---', '---'], ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');

/** The tables of docs/scale.md by their names there. */
export const scaleTables = (): Record<string, string> => ({
  ceilings: table(['what', 'at most', 'stopped by'], ceilings()),
  'needs of 1,000,000 acquires a second': table(['what', 'how much', 'which is'], needs(1e6)),
  'price of 1,000,000 acquires a second': table(['part', 'a month', 'a million calls'], bill(1e6)),
  'price of 100 acquires a second': table(['part', 'a month', 'a million calls'], bill(100)),
});

if (import.meta.main) for (const [name, text] of Object.entries(scaleTables())) console.log(`${name}\n\n${text}\n`);
