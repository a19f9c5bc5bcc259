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
const CONTENDERS = [2, 16, 64];
const REPETITIONS = 3;
/** At least so many times the grants a second of the best npm library with its own defaults. */
const LEAST_TO_PEER = 10;
export const CONTENTION_BARS = {
  /** Turns of the luckiest caller to those of the unluckiest in ten seconds. */
  unfair: 1.2,
  /** For a grant, of a crowd that comes at once, and of callers that come back. */
  requests: 13,
  requestsReturning: 11,
  perSecondReturning: 40,
};

const contention: Measurement = {
  name: 'contention',
  comparesLibraries: true,
  title: 'Contention: callers who come at the same time, each wants the key once, and holds it for five milliseconds',
  method: `grants a second until all had it, or until the time was up; leases of ${TTL_SECONDS} s; a new process for each turn, turns in random order; requests and units from a turn of their own, by what stands between contestant and emulator and counts. The ratio is to the best npm library with its own defaults; with its option to trust clocks, and to poll, it is a line of its own`,
  run: (options) => withArena(options, (arena) => bursts(arena, options)),
};

async function bursts(arena: Arena, options: Options): Promise<Figure[]> {
  const { quick, progress } = options;
  const entries = arena.entries.filter(({ waits, throughStack }) => waits && !throughStack);
  const figures: Figure[] = [];
  for (const contenders of quick ? CONTENDERS.slice(-1) : CONTENDERS) {
    const ms = quick ? 1500 : 10_000;
    const task = { contenders, ttlSeconds: TTL_SECONDS, ms, holdMs: HOLD_MS, once: true };
    const rates = new Map(entries.map((entry) => [entry, [] as number[]]));
    const costs = new Map<Entry, Cost>();
    for (let repetition = 1; repetition <= (quick ? 0 : REPETITIONS); repetition++)
      for (const entry of shuffle([...entries])) {
        progress(`contention: ${contenders} contenders, ${repetition} of ${REPETITIONS}: ${entry.name}`);
        const { perSecond } = await turn(arena, entry, {
          ...task,
          key: `burst ${contenders} ${repetition} ${entry.name}`,
        });
        rates.get(entry)?.push(perSecond);
      }
    for (const entry of entries) {
      progress(`contention: ${contenders} contenders, counting the requests of ${entry.name}`);
      const {
        perSecond,
        tookMs: _,
        ...cost
      } = await counted(arena, entry, {
        task: { ...task, key: `counted ${contenders} ${entry.name}` },
        dynamodbEndpoint: options.dynamodbEndpoint,
      });
      if (quick) rates.get(entry)?.push(perSecond);
      costs.set(entry, cost);
    }
    figures.push(...burstFigures(contenders, rates, costs));
  }
  return figures;
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
  once: boolean;
  settled?: boolean;
  /** Of permits. */
  limit?: number;
  env?: Record<string, string>;
  /** Called just before they contend. */
  begin?: () => void;
}

/** In a fresh process, which is stopped together with the callers that still wait in it. */
export async function turn({ start }: Arena, entry: Entry, { env = {}, begin = () => {}, ...task }: Turn) {
  const running = await start(entry, env);
  try {
    await running.ask('cycles', { keys: ['warm 1', 'warm 2'], count: 60 });
    begin();
    const { grants, tookMs } = await running.ask('contend', task);
    return { grants, tookMs, perSecond: (1000 * sum(grants)) / tookMs };
  } finally {
    await running.stop();
  }
}

export async function counted(
  arena: Arena,
  entry: Entry,
  { task, dynamodbEndpoint }: { task: Task; dynamodbEndpoint: string },
) {
  const counter = await startCounter(dynamodbEndpoint);
  try {
    const env = { AWS_ENDPOINT_URL_DYNAMODB: counter.endpoint };
    const begin = () => void counter.take();
    const { grants, ...times } = await turn(arena, entry, { ...task, env, begin });
    return { ...counter.take(), grants: sum(grants), ...times };
  } finally {
    await counter.stop();
  }
}

function burstFigures(contenders: number, found: Map<Entry, number[]>, costs: Map<Entry, Cost>): Figure[] {
  const best = bestLibrary(found, median);
  const rates = [...found].map(([entry, rates]): Figure => {
    const { n, median: middle, spread } = statistics(rates.map((one) => [one]));
    const toBestLibrary = best && middle / median(found.get(best) ?? []);
    const isHeldToIt = entry.kind === 'ours' && contenders === 64 && toBestLibrary !== undefined;
    return {
      what: `${contenders} contenders, ${entry.name}`,
      ...{ value: `${middle.toFixed(1)} grants/s`, unit: '/s', n, median: middle, spread },
      ...(toBestLibrary !== undefined && { toBestLibrary }),
      ...(isHeldToIt && { bar: { measured: toBestLibrary, least: LEAST_TO_PEER } }),
    };
  });
  const burnt = [...costs].map(([{ name, kind }, cost]) => {
    const bar = kind === 'ours' && contenders === 64 ? { most: CONTENTION_BARS.requests } : undefined;
    return requestsFigure({ what: `${contenders} contenders, requests for a grant, ${name}`, bar }, cost);
  });
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
  title: 'Fairness: callers who come back for the same key at once, each holds it for five milliseconds',
  method: `grants of the luckiest and the unluckiest caller; a caller that releases has its next write under way before any other can look, so only a queue is fair here; leases of ${TTL_SECONDS} s; one turn each`,
  run: (options) =>
    withArena(options, async (arena) => {
      const ms = options.quick ? 500 : 10_000;
      const figures: Figure[] = [];
      for (const contenders of options.quick ? CONTENDERS.slice(-1) : CONTENDERS)
        for (const entry of arena.entries.filter(({ waits, throughStack }) => waits && !throughStack)) {
          options.progress(`fairness: ${contenders} contenders: ${entry.name}`);
          const key = `returning ${contenders} ${entry.name}`;
          const task = { key, contenders, ttlSeconds: TTL_SECONDS, ms, holdMs: HOLD_MS, once: false };
          const { grants, perSecond } = await turn(arena, entry, task);
          const [most, least] = [Math.max(...grants), Math.min(...grants)];
          const ratio = most / Math.max(1, least);
          const isHeldToIt = entry.kind === 'ours' && contenders === 64;
          const what = `${contenders} contenders, ${entry.name}`;
          figures.push({
            ...{ what, value: `${most} : ${least} of ${sum(grants)}, ${perSecond.toFixed(0)} grants/s` },
            ...{ median: ratio, n: sum(grants) },
            ...(isHeldToIt && { bar: { measured: ratio, most: CONTENTION_BARS.unfair } }),
          });
          if (!isHeldToIt) continue;
          const cost = await counted(arena, entry, {
            task: { ...task, key: `counted ${key}` },
            dynamodbEndpoint: options.dynamodbEndpoint,
          });
          figures.push(
            {
              what: `${what}, grants/s`,
              value: perSecond.toFixed(0),
              bar: { measured: perSecond, least: CONTENTION_BARS.perSecondReturning },
            },
            requestsFigure(
              {
                what: `${contenders} contenders, requests for a grant, ${entry.name}`,
                bar: { most: CONTENTION_BARS.requestsReturning },
              },
              cost,
            ),
          );
        }
      return figures;
    }),
};

export const contentionMeasurements: Measurement[] = [contention, fairness];
