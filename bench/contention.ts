import { type Arena, bestLibrary, type Entry, withArena } from './contestants.ts';
import { type Counted, startCounter } from './counter.ts';
import {
  type Bar,
  type Figure,
  type Measurement,
  median,
  type Options,
  shuffle,
  statistics,
  sum,
} from './measurement.ts';

const TTL_SECONDS = 10;
const HOLD_MS = 5;
const CONTENDERS = 64;
const REPETITIONS = 3;
/** Holdfast must make at least this many times the grants a second of the best npm library with its defaults. */
const MIN_TO_PEER = 10;

const contention: Measurement = {
  name: 'contention',
  comparesLibraries: true,
  title: `Contention: ${CONTENDERS} callers who come at the same time, each wants the key once, and holds it for five milliseconds`,
  method: `Grants a second, until all have had the key or the time is up. Leases of ${TTL_SECONDS} s. A new process for each turn, in random order. A proxy counts requests and units in a separate run. The ratio is to the best npm library with its own defaults; its options to trust clocks and to poll have rows of their own`,
  run: (options) => withArena(options, (arena) => bursts(arena, options)),
};

async function bursts(arena: Arena, options: Options): Promise<Figure[]> {
  const { quick, progress } = options;
  const entries = arena.entries.filter(({ waits, throughStack }) => waits && !throughStack);
  const ms = quick ? 500 : 10_000;
  const task = { contenders: CONTENDERS, ttlSeconds: TTL_SECONDS, ms, holdMs: HOLD_MS, oneTurnEach: true };
  const rates = new Map(entries.map((entry) => [entry, [] as number[]]));
  const costs = new Map<Entry, Cost>();
  for (let repetition = 1; repetition <= (quick ? 0 : REPETITIONS); repetition++)
    for (const entry of shuffle([...entries])) {
      progress(`contention: ${repetition} of ${REPETITIONS}: ${entry.name}`);
      const { perSecond } = await turn(arena, entry, { ...task, key: `burst ${repetition} ${entry.name}` });
      rates.get(entry)?.push(perSecond);
    }
  for (const entry of entries) {
    progress(`contention: counting the requests of ${entry.name}`);
    const {
      perSecond,
      tookMs: _,
      ...cost
    } = await countTurn(arena, entry, {
      task: { ...task, key: `counted ${entry.name}` },
      dynamodbEndpoint: options.dynamodbEndpoint,
    });
    if (quick) rates.get(entry)?.push(perSecond);
    costs.set(entry, cost);
  }
  const figures = burstFigures(rates, costs);
  // A quick run sees only the beginning of a crowd, which the bars are not about.
  return quick ? figures.map(({ bar: _, ...figure }) => figure) : figures;
}

type Task = Parameters<typeof turn>[2];
export interface Cost extends Counted {
  grants: number;
}

interface Turn {
  key: string;
  contenders: number;
  ttlSeconds: number;
  ms: number;
  holdMs: number;
  oneTurnEach: boolean;
  settled?: boolean;
  /** The limit of permits. */
  limit?: number;
  env?: Record<string, string>;
  /** Called just before they contend, and again if the count begins only later. */
  begin?: () => void;
}

/** Measures in a fresh process, which is stopped together with the callers that still wait in it. */
export async function turn({ start }: Arena, entry: Entry, { env = {}, begin = () => {}, ...task }: Turn) {
  const running = await start(entry, env);
  try {
    await running.ask('cycles', { keys: ['warm 1', 'warm 2'], count: 60 });
    begin();
    const { grants, tookMs } = await running.ask('contend', task, begin);
    return { grants, tookMs, perSecond: (1000 * sum(grants)) / tookMs };
  } finally {
    await running.stop();
  }
}

export async function countTurn(
  arena: Arena,
  entry: Entry,
  { task, dynamodbEndpoint }: { task: Task; dynamodbEndpoint: string },
) {
  const counter = await startCounter(dynamodbEndpoint);
  try {
    const env = { AWS_ENDPOINT_URL_DYNAMODB: counter.endpoint };
    const begin = () => void counter.take();
    const { grants, ...times } = await turn(arena, entry, { ...task, env, begin });
    return { ...counter.take(), grants: sum(grants), turns: grants, ...times };
  } finally {
    await counter.stop();
  }
}

function burstFigures(found: Map<Entry, number[]>, costs: Map<Entry, Cost>): Figure[] {
  const best = bestLibrary(found, median);
  const rates = [...found].map(([entry, rates]): Figure => {
    const { n, median: middle, spread } = statistics(rates.map((one) => [one]));
    const toBestLibrary = best && middle / median(found.get(best) ?? []);
    const isJudged = entry.kind === 'ours' && toBestLibrary !== undefined;
    return {
      what: `${CONTENDERS} contenders, ${entry.name}`,
      ...{ value: `${middle.toFixed(1)} grants/s`, unit: '/s', n, median: middle, spread },
      ...(toBestLibrary !== undefined && { toBestLibrary }),
      ...(isJudged && { bar: { measured: toBestLibrary, min: MIN_TO_PEER } }),
    };
  });
  const burnt = [...costs].map(([{ name }, cost]) =>
    requestsFigure({ what: `${CONTENDERS} contenders, requests for a grant, ${name}`, bar: undefined }, cost),
  );
  return [...rates, ...burnt];
}

export function requestsFigure(
  { what, bar }: { what: string; bar: Omit<Bar, 'measured'> | undefined },
  { grants, requests, writeUnits, readUnits }: Cost,
): Figure {
  const each = (count: number) => count / Math.max(1, grants);
  return {
    what,
    value: `${each(requests).toFixed(1)} (${each(writeUnits).toFixed(1)} write, ${each(readUnits).toFixed(1)} read units)`,
    ...{ median: each(requests), unit: 'requests', n: grants },
    ...(bar && { bar: { measured: each(requests), ...bar } }),
  };
}

const fairness: Measurement = {
  name: 'fairness',
  comparesLibraries: true,
  title: `Fairness: ${CONTENDERS} callers that return for one key at once, and hold it for 5 ms`,
  method: `The most and the fewest grants of a caller in ten seconds, from when each has had one, or after twenty seconds if a caller starves (in Rust, from the beginning). Leases of ${TTL_SECONDS} s. A releasing caller writes again before others poll, so only a line is fair`,
  run: (options) =>
    withArena(options, async (arena) => {
      const ms = options.quick ? 300 : 10_000;
      const task = {
        contenders: CONTENDERS,
        ttlSeconds: TTL_SECONDS,
        ms,
        holdMs: HOLD_MS,
        oneTurnEach: false,
        settled: true,
      };
      const figures: Figure[] = [];
      for (const entry of arena.entries.filter(({ waits, throughStack }) => waits && !throughStack)) {
        options.progress(`fairness: ${entry.name}`);
        const { grants, perSecond } = await turn(arena, entry, { ...task, key: `returning ${entry.name}` });
        const [most, least] = [Math.max(...grants), Math.min(...grants)];
        figures.push({
          what: `${CONTENDERS} contenders, ${entry.name}`,
          value: `${most} : ${least} of ${sum(grants)}, ${perSecond.toFixed(0)} grants/s`,
          ...{ median: most / Math.max(1, least), n: sum(grants) },
        });
      }
      return figures;
    }),
};

export const contentionMeasurements: Measurement[] = [contention, fairness];
