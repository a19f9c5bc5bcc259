import { setTimeout as delay } from 'node:timers/promises';
import { countTurn, requestsFigure, turn } from './contention.ts';
import { type Arena, type Entry, type Running, withArena } from './contestants.ts';
import { type Bar, type Figure, type Measurement, median, type Options, statistics, sum } from './measurement.ts';
import { CLOCK_SKEW_MS } from './waiting.ts';

/** The bars for a waiting caller, in milliseconds. */
const WAITING_BARS = { handOff: { p50: 30, p99: 80 }, takeOver: { p99: CLOCK_SKEW_MS + 100 } };
export const CONTENTION_BARS = {
  /** How many times as many grants the most served caller may have as the least served one, in ten seconds. */
  unfair: 1.2,
  /** Requests for a grant: in a crowd that comes at once, and of callers that return. */
  requests: 13,
  requestsReturning: 11,
  /** For each held call, the service takes a slot and gives it back, and often the first slot that it tries is taken. */
  requestsOfSlot: 3,
  perSecondReturning: 40,
};

const CONTENDERS = 64;
const REPETITIONS = 12;
/** How many keys have a waiting caller at the same time. One process serves this many callers without slowing them down. */
const AT_A_TIME = 5;
/** How long holders keep the keys, and the ttl of those that crash. */
const [HELD_MS, CRASHED_TTL_SECONDS] = [1000, 2];
/** The bare write is so rare that it is hardly a load. */
const BARE_EVERY_MS = 100;
const BARE_WRITES = 1000;

/** Callers that return are stopped while their calls are held, and the slot of such a call is free only after this time. */
const SLOT_MS = 21_000;

/** The requests of a grant in line, without polls. */
const REQUESTS_WITHOUT_POLLS = 7;

/** The bars suppose that a request takes a millisecond. If it takes longer, each figure that depends on it may be longer in proportion. */
class Supposed {
  readonly #bareMs: number;
  readonly #when: string;

  constructor(bareMs: number, when = 'when nothing else runs') {
    this.#bareMs = Math.max(1, bareMs);
    this.#when = when;
  }

  /** @param fixed the part that does not depend on requests */
  max(max: number, fixed = 0) {
    return { max, excuse: { why: this.#why, upTo: fixed + (max - fixed) * this.#bareMs } };
  }

  min(min: number) {
    return { min, excuse: { why: this.#why, upTo: min / this.#bareMs } };
  }

  get #why() {
    return `the bar assumes that a request takes a millisecond. Here, a bare write takes ${this.#bareMs.toFixed(1)} ms ${this.#when}`;
  }
}

const line: Measurement = {
  name: 'line',
  title: 'Callers in line: hand-off, take-over, and 64 for one key, beside a bare write',
  method: `Only Holdfast's variants, one after the other. Hand-off: ${AT_A_TIME} keys at a time, ${REPETITIONS} times, each held for a second. Take-over: the same, with leases of ${CRASHED_TTL_SECONDS} s that are not released. The 64 callers hold the key for 5 ms a turn. They come at once and want one turn each, or return for ten seconds, counted from when each has had a turn. Requests are counted in a separate run. A bare write is one of the bare SDK in another process, ten times a second`,
  run: (options) =>
    withArena(options, async (arena) => {
      const bare = arena.entries.find(({ kind }) => kind === 'floor') as Entry;
      const floor = await arena.start(bare);
      const { acquireMs, releaseMs } = await floor.ask('cycles', {
        keys: ['bare'],
        count: options.quick ? 10 : BARE_WRITES / 2,
      });
      const alone = bareFigure('and nothing else', [...acquireMs, ...releaseMs]);
      const supposed = new Supposed(alone.median ?? Number.NaN);
      const figures: Figure[] = [alone];
      const own = arena.entries.filter(({ kind, throughStack }) => kind === 'ours' && !throughStack);
      for (const entry of options.quick ? own.slice(0, 1) : own) {
        options.progress(`line: ${entry.name} waits`);
        figures.push(...(await waiting(arena, { entry, floor, supposed }, options)));
        for (const oneTurnEach of [false, true]) {
          if (oneTurnEach && !options.quick) await delay(SLOT_MS);
          options.progress(`line: ${entry.name}, 64 callers${oneTurnEach ? ', one turn each' : ''}`);
          figures.push(...(await contending(arena, { entry, floor, supposed, oneTurnEach }, options)));
        }
      }
      // A quick run sees only the beginning of a crowd, which the bars are not about.
      return options.quick ? figures.map(({ bar: _, ...figure }) => figure) : figures;
    }),
};

interface Beside {
  entry: Entry;
  floor: Running;
  supposed: Supposed;
}

/** @returns how long the bare SDK took for a write while `act` ran */
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

async function waiting(arena: Arena, { entry, floor, supposed }: Beside, options: Options): Promise<Figure[]> {
  const running = await arena.start(entry);
  const keysOf = (what: string) => Array.from({ length: AT_A_TIME }, (_, at) => `${what} ${at}, ${entry.name}`);
  const handOffs = (repetition: number) =>
    running.ask('handoff', {
      keys: keysOf(`hand-off ${repetition}`),
      ttlSeconds: 10,
      delaysMs: keysOf('').map(() => (options.quick ? 100 : HELD_MS) + Math.random() * 250),
    });
  const takeOvers = (repetition: number) =>
    running.ask('takeover', {
      keys: keysOf(`take-over ${repetition}`),
      ttlSeconds: CRASHED_TTL_SECONDS,
      arriveMs: CRASHED_TTL_SECONDS * 500,
    });
  await handOffs(0); // opens the connections, and runs all code once
  const all = async (act: (repetition: number) => Promise<{ waitedMs: number[] }>) => {
    const times: number[][] = [];
    for (let repetition = 1; repetition <= (options.quick ? 1 : REPETITIONS); repetition++)
      times.push((await act(repetition)).waitedMs);
    return statistics(times);
  };
  const handOff = await beside(floor, () => all(handOffs));
  const takeOver = await beside(floor, () => all(takeOvers));
  await running.stop();
  const { n, median: p50, p99 } = handOff.result;
  return [
    timed(`hand-off p50, ${entry.name}`, { n, ms: p50 }, supposed.max(WAITING_BARS.handOff.p50)),
    timed(`hand-off p99, ${entry.name}`, { n, ms: p99 }, supposed.max(WAITING_BARS.handOff.p99)),
    bareFigure(`beside the hand-off of ${entry.name}`, handOff.bareMs),
    timed(`take-over p50, ${entry.name}`, { n: takeOver.result.n, ms: takeOver.result.median }),
    timed(
      `take-over p99, ${entry.name}`,
      { n: takeOver.result.n, ms: takeOver.result.p99 },
      supposed.max(WAITING_BARS.takeOver.p99, CLOCK_SKEW_MS),
    ),
    bareFigure(`beside the take-over of ${entry.name}`, takeOver.bareMs),
  ];
}

async function contending(
  arena: Arena,
  { entry, floor, supposed, oneTurnEach }: Beside & { oneTurnEach: boolean },
  { quick, dynamodbEndpoint }: Options,
): Promise<Figure[]> {
  const how = oneTurnEach ? '64 callers at once' : '64 returning callers';
  const ms = quick ? 500 : 10_000;
  const task = { key: `${how} ${entry.name}`, contenders: CONTENDERS, ttlSeconds: 10, ms, holdMs: 5, oneTurnEach };
  const { result, bareMs } = await beside(floor, () => turn(arena, entry, { ...task, settled: !oneTurnEach }));
  const { grants, perSecond } = result;
  const counting = { ...task, key: `counted ${task.key}`, settled: !oneTurnEach };
  const cost = await countTurn(arena, entry, { task: counting, dynamodbEndpoint });
  const { perSecondReturning, requests, requestsReturning, requestsOfSlot, unfair } = CONTENTION_BARS;
  const [most, least] = [Math.max(...grants), Math.min(...grants)];
  const ratio = most / Math.max(1, least);
  // Callers poll by time, and share a process.
  const beside64 = new Supposed(median(bareMs), 'beside these callers');
  const ofSlot = entry.name.endsWith('domain') ? 0 : requestsOfSlot;
  const maxRequests = (oneTurnEach ? requests : requestsReturning) + ofSlot;
  return [
    {
      ...{ what: `${how}, ${entry.name}`, value: `${perSecond.toFixed(0)} grants/s`, unit: '/s' },
      ...{ n: sum(grants), median: perSecond },
      ...(!oneTurnEach && { bar: { measured: perSecond, ...supposed.min(perSecondReturning) } }),
    },
    ...(oneTurnEach
      ? []
      : [
          {
            ...{ what: `${how}, most : fewest grants, ${entry.name}`, value: `${most} : ${least}` },
            ...{ n: sum(grants), median: ratio, bar: { measured: ratio, ...inWholeTurns(unfair, least) } },
          },
        ]),
    requestsFigure(
      { what: `${how}, requests for a grant, ${entry.name}`, bar: beside64.max(maxRequests, REQUESTS_WITHOUT_POLLS) },
      cost,
    ),
    bareFigure(`beside ${how}, ${entry.name}`, bareMs),
  ];
}

/** A difference of one turn is unavoidable. */
export const inWholeTurns = (max: number, min: number) => ({
  max,
  excuse: {
    why: `the fewest grants were ${min}, and one more is the least difference`,
    upTo: (min + 1) / Math.max(1, min),
  },
});

export const lineMeasurements: Measurement[] = [line];
