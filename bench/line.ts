import { setTimeout as delay } from 'node:timers/promises';
import { CONTENTION_BARS, counted, requestsFigure, turn } from './contention.ts';
import { type Arena, type Entry, type Running, withArena } from './contestants.ts';
import { type Bar, type Figure, type Measurement, median, type Options, statistics, sum } from './measurement.ts';
import { handOffs, takeOvers, WAITING_BARS } from './waiting.ts';

const CONTENDERS = 64;
const REPETITIONS = 3;
/** A write now and then is no load to speak of. */
const BARE_EVERY_MS = 100;

const WHY =
  'all callers share one process, in which a request of the SDK takes about a millisecond of processor time, and two cores with the emulator; a bare write at that time shows what is left for a request';
/** @param upTo the reading beyond which that reason does not hold */
const excused = (limit: Omit<Bar, 'excuse' | 'measured'>, upTo: number) => ({ ...limit, excuse: { why: WHY, upTo } });

const line: Measurement = {
  name: 'line',
  title: 'Callers in line: hand-off, take-over, and 64 for one key, next to a bare write at the same time',
  method: `our own contestants alone, one after the other; hand-off and take-over of 20 keys at a time, ${REPETITIONS} times; 64 callers, each with turns of five milliseconds for ten seconds, or with one; requests from a turn of their own; the bare write is that of the bare SDK in another process, ten times a second`,
  run: (options) =>
    withArena(options, async (arena) => {
      const bare = arena.entries.find(({ kind }) => kind === 'floor') as Entry;
      const floor = await arena.start(bare);
      const { bareMs } = await beside(floor, () => delay(options.quick ? 500 : 3000));
      const figures: Figure[] = [bareFigure('and nothing else', bareMs)];
      const own = arena.entries.filter(({ kind, throughStack }) => kind === 'ours' && !throughStack);
      for (const entry of options.quick ? own.slice(0, 1) : own) {
        options.progress(`line: ${entry.name} waits`);
        figures.push(...(await waiting(arena, { entry, floor }, options)));
        for (const once of [false, true]) {
          options.progress(`line: ${entry.name}, 64 callers${once ? ', one turn each' : ''}`);
          figures.push(...(await contending(arena, { entry, floor, once }, options)));
        }
      }
      // A second of a crowd of 64 is its beginning, which no bar is about.
      return options.quick ? figures.map(({ bar: _, ...figure }) => figure) : figures;
    }),
};

interface Beside {
  entry: Entry;
  floor: Running;
}

/** @returns what the bare SDK took for a write meanwhile */
async function beside<Result>(floor: Running, act: () => Promise<Result>) {
  const bareMs: number[] = [];
  let isOver = false;
  const writing = (async () => {
    while (!isOver) {
      const { acquireMs, releaseMs } = await floor.ask('cycles', { keys: ['bare'], count: 1 });
      bareMs.push(...acquireMs, ...releaseMs);
      await delay(BARE_EVERY_MS);
    }
  })();
  try {
    return { result: await act(), bareMs };
  } finally {
    isOver = true;
    await writing;
  }
}

const bareFigure = (what: string, ms: number[]): Figure =>
  timed(`a bare write, ${what}`, { n: ms.length, ms: median(ms) });

const timed = (what: string, { n, ms }: { n: number; ms: number }, bar?: Omit<Bar, 'measured'>): Figure => ({
  ...{ what, value: `${ms.toFixed(ms < 10 ? 2 : 0)} ms`, unit: 'ms', n, median: ms },
  ...(bar && { bar: { measured: ms, ...bar } }),
});

async function waiting(arena: Arena, { entry, floor }: Beside, options: Options): Promise<Figure[]> {
  const running = await arena.start(entry);
  const repetitions = Array.from({ length: options.quick ? 1 : REPETITIONS }, (_, index) => index + 1);
  await handOffs(running, options, 0); // as many connections as are needed, and code that has run
  const all = async (act: typeof handOffs) => {
    const times: number[][] = [];
    for (const repetition of repetitions) times.push(await act(running, options, repetition));
    return statistics(times);
  };
  const handOff = await beside(floor, () => all(handOffs));
  const takeOver = await beside(floor, () => all(takeOvers));
  await running.stop();
  const { n, median: p50, p99 } = handOff.result;
  return [
    timed(`hand-off p50, ${entry.name}`, { n, ms: p50 }, excused({ most: WAITING_BARS.handOff.p50 }, 100)),
    timed(`hand-off p99, ${entry.name}`, { n, ms: p99 }, excused({ most: WAITING_BARS.handOff.p99 }, 300)),
    bareFigure(`beside the hand-off of ${entry.name}`, handOff.bareMs),
    timed(`take-over p50, ${entry.name}`, { n: takeOver.result.n, ms: takeOver.result.median }),
    timed(
      `take-over p99, ${entry.name}`,
      { n: takeOver.result.n, ms: takeOver.result.p99 },
      excused({ most: WAITING_BARS.takeOver.p99 }, 800),
    ),
    bareFigure(`beside the take-over of ${entry.name}`, takeOver.bareMs),
  ];
}

async function contending(
  arena: Arena,
  { entry, floor, once }: Beside & { once: boolean },
  { quick, dynamodbEndpoint }: Options,
): Promise<Figure[]> {
  const how = once ? '64 who come at once' : '64 who come back';
  const ms = quick ? 1000 : 10_000;
  const task = { key: `${how} ${entry.name}`, contenders: CONTENDERS, ttlSeconds: 10, ms, holdMs: 5, once };
  const { result, bareMs } = await beside(floor, () => turn(arena, entry, task));
  const { grants, perSecond } = result;
  const cost = await counted(arena, entry, { task: { ...task, key: `counted ${task.key}` }, dynamodbEndpoint });
  const { perSecondReturning, requests, requestsReturning, unfair } = CONTENTION_BARS;
  const [most, least] = [Math.max(...grants), Math.min(...grants)];
  const ratio = most / Math.max(1, least);
  const mostRequests = once ? requests : requestsReturning;
  return [
    {
      ...{ what: `${how}, ${entry.name}`, value: `${perSecond.toFixed(0)} grants/s`, unit: '/s' },
      ...{ n: sum(grants), median: perSecond },
      ...(!once && { bar: { measured: perSecond, ...excused({ least: perSecondReturning }, 20) } }),
    },
    ...(once
      ? []
      : [
          {
            ...{ what: `${how}, luckiest by unluckiest, ${entry.name}`, value: `${most} : ${least}` },
            ...{ n: sum(grants), median: ratio, bar: { measured: ratio, ...excused({ most: unfair }, 2) } },
          },
        ]),
    requestsFigure(
      { what: `${how}, requests for a grant, ${entry.name}`, bar: excused({ most: mostRequests }, 20) },
      cost,
    ),
    bareFigure(`beside ${how}, ${entry.name}`, bareMs),
  ];
}

export const lineMeasurements: Measurement[] = [line];
