import { type Arena, bestLibrary, type Entry, type Running, withArena } from './contestants.ts';
import { type Counted, startCounter } from './counter.ts';
import {
  type Figure,
  type Measurement,
  median,
  milliseconds,
  type Options,
  shuffle,
  statistics,
  sum,
} from './measurement.ts';

const NETWORK_MS = 5;
/** Each contestant goes around its own ring of this many keys, so that the tables do not grow. */
const KEYS = Array.from({ length: 50 }, (_, at) => `cycle ${at}`);

const cycles: Measurement = {
  name: 'cycles',
  comparesLibraries: true,
  title: 'Acquire and release of a free key, next to the libraries',
  method: `Each in its own process, one cycle after the other, in blocks in random order, on one emulator, which answers in about half a millisecond. Ratios are of cycles a second. Then with each answer ${NETWORK_MS} ms later, as from a service on another machine`,
  run: (options) => withArena(options, (arena) => cyclesFigures(arena, options)),
};

async function cyclesFigures({ entries, start }: Arena, { quick, progress, dynamodbEndpoint }: Options) {
  const [repetitions, block] = quick ? [1, 10] : [9, 200];
  progress('cycles: starting');
  const near = await race(await startAll(entries, start, quick ? 10 : 400), { repetitions, block }, (text) =>
    progress(`cycles: ${text}`),
  );
  const counter = await startCounter(dynamodbEndpoint, NETWORK_MS);
  const env = { AWS_ENDPOINT_URL_DYNAMODB: counter.endpoint };
  const counts = new Map<string, Counted>();
  try {
    const distant = await startAll(entries, (entry) => start(entry, env), quick ? 1 : 10);
    for (const one of distant) {
      progress(`cycles: counting the requests of ${one.name}`);
      counter.take();
      await one.ask('cycles', { keys: KEYS, count: COUNTED });
      counts.set(one.name, counter.take());
    }
    const far = await race(distant, { repetitions: quick ? 1 : 7, block: quick ? 5 : 40 }, (text) =>
      progress(`cycles, far: ${text}`),
    );
    return [...rates(near), ...latencies(near), ...costs(entries, counts), ...rates(far, `, ${NETWORK_MS} ms away`)];
  } finally {
    await counter.stop();
  }
}

const COUNTED = 10;

type Times = { acquireMs: number[]; releaseMs: number[] };
/** The times of each contestant, one for each repetition. */
type TimesByContestant = Map<Entry, Times[]>;

async function startAll(entries: Entry[], start: Arena['start'], warmUp: number): Promise<Running[]> {
  const running = await Promise.all(entries.map((entry) => start(entry)));
  // The contestants take turns, and Java needs time to compile.
  for (const one of running) await one.ask('cycles', { keys: KEYS, count: one.kind === 'other' ? 5 * warmUp : warmUp });
  return running;
}

async function race(
  running: Running[],
  { repetitions, block }: { repetitions: number; block: number },
  progress: (text: string) => void,
) {
  const found: TimesByContestant = new Map(running.map((one) => [one, []]));
  for (let repetition = 1; repetition <= repetitions; repetition++) {
    progress(`${repetition} of ${repetitions}`);
    for (const one of shuffle([...running])) {
      const times = await one.ask('cycles', { keys: KEYS, count: block });
      found.get(one)?.push(times);
    }
  }
  return found;
}

const cycleTimes = ({ acquireMs, releaseMs }: Times) => acquireMs.map((ms, at) => ms + (releaseMs[at] ?? 0));
const perSecond = (times: Times) => (1000 * times.acquireMs.length) / sum(cycleTimes(times));

/** The bar for the domain functions, which run in the process of the caller, as libraries do. */
const MIN_TO_PEER = 1.4;
const PROCESSOR_BOUND = {
  upTo: 1, // never slower than the library
  why: 'two requests instead of three give 1.5 times the cycles only if requests take all of the time. Next to the emulator, half of a cycle is processor time of the SDK and node:http, where no function takes more than 5 %. The library’s extra request is a read, which costs less than a write. The bare SDK does not reach the bar either',
};

function rates(raced: TimesByContestant, suffix = ''): Figure[] {
  const rates = new Map([...raced].map(([entry, times]) => [entry, times.map(perSecond)]));
  const best = rates.get(bestLibrary(rates, median) as Entry);
  const floor = [...rates].find(([{ kind }]) => kind === 'floor')?.[1] ?? [];
  return [...rates].map(([entry, own]): Figure => {
    const { n, median: middle, spread } = statistics(own.map((rate) => [rate]));
    // The ratio of each repetition, so that other work of the machine affects both sides.
    const by = (others: number[]) => median(own.map((rate, at) => rate / (others[at] ?? Number.NaN)));
    const toBestLibrary = best && by(best);
    const isJudged = toBestLibrary !== undefined && entry.name === 'holdfast domain';
    return {
      what: `cycles a second${suffix}, ${entry.name}`,
      ...{ value: `${middle.toFixed(0)} /s`, unit: '/s', n, median: middle, spread, toFloor: by(floor) },
      ...(toBestLibrary !== undefined && { toBestLibrary }),
      ...(isJudged && { bar: { measured: toBestLibrary, min: MIN_TO_PEER, excuse: PROCESSOR_BOUND } }),
    };
  });
}

const latencies = (raced: TimesByContestant): Figure[] =>
  [...raced].map(([{ name }, times]) => milliseconds(`a cycle, ${name}`, times.map(cycleTimes)));

/** The bar: an acquire is one conditional write, and so is a release. */
const MAX_REQUESTS = 2;

const costs = (entries: Entry[], counts: Map<string, Counted>): Figure[] =>
  entries.map(({ name, kind }) => {
    const { requests, writeUnits, readUnits } = counts.get(name) ?? { requests: NaN, writeUnits: NaN, readUnits: NaN };
    const [each, writes, reads] = [requests, writeUnits, readUnits].map((count) => count / COUNTED);
    return {
      what: `requests of a cycle, ${name}`,
      value: `${each} (${writes} write, ${reads} read units)`,
      median: each ?? Number.NaN,
      unit: 'requests',
      n: COUNTED,
      ...(kind === 'ours' && { bar: { measured: each ?? Number.NaN, max: MAX_REQUESTS } }),
    };
  });

const heartbeat: Measurement = {
  name: 'heartbeat',
  comparesLibraries: true,
  title: 'Heartbeat: one lease extended again and again',
  method:
    'Each in its own process, in blocks in random order. Libraries that extend only by their own timer have no such call',
  run: (options) =>
    withArena(options, async ({ entries, start }) => {
      const { quick, progress } = options;
      const [repetitions, count] = quick ? [1, 10] : [9, 200];
      const running = await Promise.all(entries.filter(({ beats }) => beats).map((entry) => start(entry)));
      const beat = (one: Running, count: number) => one.ask('heartbeats', { key: `beat ${one.name}`, count });
      for (const one of running) await beat(one, quick ? 10 : 400);
      const found = new Map(running.map((one) => [one, [] as number[][]]));
      for (let repetition = 1; repetition <= repetitions; repetition++) {
        progress(`heartbeat: ${repetition} of ${repetitions}`);
        for (const one of shuffle([...running])) found.get(one)?.push((await beat(one, count)).beatMs);
      }
      const floor = [...found].find(([{ kind }]) => kind === 'floor')?.[1] ?? [];
      return [...found].map(([{ name }, times]) => {
        const toFloor = median(times.map((one, at) => median(one) / median(floor[at] ?? [])));
        return { ...milliseconds(`heartbeat, ${name}`, times), toFloor };
      });
    }),
};

export const cycleMeasurements: Measurement[] = [cycles, heartbeat];
