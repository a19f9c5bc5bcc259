import { setTimeout as delay } from 'node:timers/promises';
import { BatchGetItemCommand, DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { Holdfast } from '../clients/typescript/src/index.ts';
import { PARAMETERS } from '../infrastructure/parameters.ts';
import { readService } from '../infrastructure/read.ts';
import { type Counted, startCounter } from './counter.ts';
import { type Bar, type Figure, type Measurement, mean, milliseconds, type Options, sum } from './measurement.ts';
import type { PlainResult, PlainTask } from './sleepers.plain.ts';
import type { TimelineResult, TimelineTask } from './sleepers.timeline.ts';
import type { CrowdResult, CrowdTask, Wait } from './sleepers.worker.ts';
import { startStack } from './stack.ts';
import { inWorker } from './worker.ts';

const BARS = { held: 10, calls: 30, writeUnits: 20, passingPercent: 5, passed: 10, besideMs: 100 };
const MAX_HELD_CALLS = Number(PARAMETERS.maxHeldCalls?.default);
/** How many processes the callers share. */
const PROCESSES = 4;
/** A caller that asked so much earlier than another is before it in line, however long their calls took. */
const EARLIER_MS = 250;

interface Crowd extends Pick<CrowdTask, 'turnMs' | 'joinMs' | 'callers'> {
  settleMs: number;
  ms: number;
}

const waiting: Measurement = {
  name: 'waiting',
  title: 'Callers that sleep: a long line for one key, many keys with short turns, and many callers that cannot sleep',
  method: `The long line: clients in ${PROCESSES} processes over the local stack and the emulator. Turns have random lengths (exponential) with this mean, and clients that had the key ask again at once. Counting begins when the line has settled. *Held calls* are the slots in use, sampled ten times a second. A grant *passes* a caller that asked ${EARLIER_MS} ms earlier and still waits. Many keys: domain functions over the emulator in simulated time. A request to DynamoDB takes 1.5 ms, and a call 8 to 23 ms each way. Callers that cannot sleep: connections of one process to the local stack, with \`waitSeconds: 20\`, for a key that is always held. They ask again when the response says so. The holder sends a heartbeat and acquires another key ten times a second`,
  run: async (options) => {
    const { quick } = options;
    const times = (joinMs: number, settleMs: number, ms: number) =>
      quick ? { joinMs: 500, settleMs: 3000, ms: 2000 } : { joinMs, settleMs, ms };
    const simulated = quick ? { joinMs: 500, settleMs: 700, ms: 300 } : { joinMs: 1000, settleMs: 1500, ms: 1500 };
    const line = { callers: quick ? 60 : 1000, turnMs: quick ? 100 : 1000, ...times(20e3, 90e3, 240e3) };
    const keys = Array.from({ length: quick ? 3 : 20 }, (_, nth) => `short turns ${nth}`);
    const short = { keys, callers: quick ? 8 : 64, turnMs: 5, ...simulated };
    const plain = { callers: quick ? 50 : 2000, ...times(8000, 15e3, 30e3) };
    const figures = [
      ...(await longLineFigures(line, options)),
      ...(await shortTurnFigures(short, options)),
      ...(await plainFigures(plain, options)),
    ];
    // A quick run sees only the beginning of a line, but the bars are about a settled one.
    return quick ? figures.map(({ bar: _, ...figure }) => figure) : figures;
  },
};

const number = (what: string, measured: number, more: Partial<Figure> & { max?: number } = {}): Figure => {
  const { max, ...rest } = more;
  const bar: Bar | undefined = max === undefined ? undefined : { measured, max };
  return {
    what,
    value: measured.toFixed(Number.isInteger(measured) ? 0 : 1),
    median: measured,
    ...rest,
    ...(bar && { bar }),
  };
};

const heldFigures = (held: number[], what: string, max: number): Figure[] => [
  number(`${what}, held calls at most`, Math.max(...held), { n: held.length, max }),
  number(`${what}, held calls on average`, mean(held), { n: held.length }),
];

async function longLineFigures(crowd: Crowd, options: Options): Promise<Figure[]> {
  const seen = await watch(crowd, options);
  const what = `${crowd.callers.toLocaleString('en')} for one key, turns of ${crowd.turnMs} ms`;
  const { grants, calls, counted, from } = seen;
  const { passing, max } = countPassed(seen.waits, from);
  const each = (value: number) => value / Math.max(1, grants);
  return [
    number(`${what}, grants a second`, (1000 * grants) / crowd.ms, { n: grants, unit: '/s' }),
    ...heldFigures(seen.held, what, BARS.held),
    number(`${what}, calls for a grant`, each(calls), { n: grants, max: BARS.calls }),
    number(`${what}, write units for a grant`, each(counted.writeUnits), { n: grants, max: BARS.writeUnits }),
    number(`${what}, read units for a grant`, each(counted.readUnits), { n: grants }),
    number(`${what}, grants that pass an older waiter, in percent`, 100 * each(passing), {
      n: grants,
      max: BARS.passingPercent,
    }),
    number(`${what}, how often one caller is passed`, max, { n: grants, max: BARS.passed }),
  ];
}

const onTimeline = (task: TimelineTask, options: Options) => {
  options.progress(`waiting: ${task.callers} callers for each of ${task.keys.length} keys, in simulated time`);
  const script = new URL('sleepers.timeline.ts', import.meta.url);
  return inWorker<TimelineTask, TimelineResult>(script, task, options);
};

async function shortTurnFigures(task: TimelineTask, options: Options): Promise<Figure[]> {
  const { grants, calls, held } = await onTimeline(task, options);
  const what = `${task.callers} for each of ${task.keys.length} keys, turns of ${task.turnMs} ms`;
  return [
    number(`${what}, grants a second`, (1000 * grants) / task.ms, { n: grants, unit: '/s' }),
    number(`${what}, calls for a grant`, calls / grants, { n: grants }),
    ...heldFigures(held, what, MAX_HELD_CALLS),
  ];
}

/** The load generator, the service and the emulator share the cores of this machine. */
const SHARED_CORES = 'callers, service and emulator share two cores here';

async function plainFigures(
  { callers, joinMs, settleMs, ms }: Omit<Crowd, 'turnMs'>,
  options: Options,
): Promise<Figure[]> {
  options.progress(`waiting: ${callers} callers that cannot sleep`);
  const stack = await startStack(options.dynamodbEndpoint);
  try {
    const holdfast = new Holdfast({ endpoint: stack.url, holder: 'holder' });
    const { leaseId } = await holdfast.acquire('held', { ttlSeconds: 600, waitMs: 0 });
    const from = Date.now() + settleMs;
    const share = { url: stack.url, key: 'held', callers, joinMs, until: from + ms };
    const script = new URL('sleepers.plain.ts', import.meta.url);
    const running = inWorker<PlainTask, PlainResult>(script, share, options);
    const held = countHeldCalls(options.dynamodbEndpoint, { from, until: share.until, begin: () => {} });
    const beats: number[] = [];
    const acquires: number[] = [];
    const timed = async <Answer>(times: number[], act: Promise<Answer>): Promise<Answer> => {
      const startedAt = performance.now();
      const answer = await act;
      if (Date.now() >= from) times.push(performance.now() - startedAt);
      return answer;
    };
    for (; Date.now() < share.until; await delay(100)) {
      await timed(beats, holdfast.heartbeat({ key: 'held', leaseId }));
      await (await timed(acquires, holdfast.acquire('other'))).release();
    }
    const answered = sum(Object.values(await running));
    const what = `${callers.toLocaleString('en')} callers that cannot sleep`;
    const beside = (name: string, times: number[]): Figure => {
      const figure = milliseconds(`${name} beside ${what}`, [times]);
      const bar = {
        measured: figure.p99,
        max: BARS.besideMs,
        excuse: { why: SHARED_CORES, upTo: BARS.besideMs * 20 },
      };
      return { ...figure, value: `${figure.value}, p99 ${figure.p99.toFixed(0)} ms`, bar };
    };
    return [
      beside('a heartbeat', beats),
      beside('a plain acquire', acquires),
      ...heldFigures(await held, what, MAX_HELD_CALLS),
      number(`${what}, responses a second`, (1000 * answered) / (settleMs + ms), { n: answered, unit: '/s' }),
    ];
  } finally {
    await stack.stop();
  }
}

interface Seen {
  waits: Wait[];
  calls: number;
  grants: number;
  counted: Counted;
  held: number[];
  /** When the measurement begins to count, in epoch milliseconds. */
  from: number;
}

async function watch({ callers, settleMs, ms, ...crowd }: Crowd, options: Options): Promise<Seen> {
  options.progress(`waiting: ${callers} clients for one key`);
  const processes = options.quick ? 1 : PROCESSES;
  const counter = await startCounter(options.dynamodbEndpoint);
  const stack = await startStack(counter.endpoint);
  try {
    const from = Date.now() + settleMs;
    const until = from + ms;
    const share = {
      ...crowd,
      callers: callers / processes,
      url: stack.url,
      key: 'long line',
      countedFrom: from,
      until,
    };
    const script = new URL('sleepers.worker.ts', import.meta.url);
    const running = Promise.all(
      Array.from({ length: processes }, () => inWorker<CrowdTask, CrowdResult>(script, share, options)),
    );
    const held = await countHeldCalls(options.dynamodbEndpoint, { from, until, begin: counter.take });
    const counted = counter.take();
    const found = await running;
    const waits = found.flatMap((one) => one.waits);
    const grants = waits.filter(({ to }) => to !== null && to >= from && to < until).length;
    return { waits, counted, held, from, grants, calls: sum(found.map(({ calls }) => calls)) };
  } finally {
    await stack.stop();
    await counter.stop();
  }
}

/** Counts the slots that are taken, ten times a second. */
async function countHeldCalls(
  endpoint: string,
  { from, until, begin }: { from: number; until: number; begin(): void },
): Promise<number[]> {
  const table = (await readService()).environment.LEASES_TABLE ?? '';
  const dynamodb = new DynamoDBClient({ endpoint });
  const Keys = Array.from({ length: 4 }, (_, nth) => ({ key: { S: `holdfast:held:${nth}` } }));
  const held: number[] = [];
  await delay(from - Date.now());
  begin();
  for (; Date.now() < until; await delay(100)) {
    const { Responses = {} } = await dynamodb.send(
      new BatchGetItemCommand({ RequestItems: { [table]: { Keys, ConsistentRead: true } } }),
    );
    const slots = (Responses[table] ?? []).flatMap((item) =>
      Object.entries(item).filter(([name]) => /^s\d+$/.test(name)),
    );
    held.push(slots.filter(([, { N: end }]) => Number(end) >= Date.now()).length);
  }
  dynamodb.destroy();
  return held;
}

/** From a moment on: how many grants passed a caller that had asked earlier and still waited, and how often a single caller was passed. */
function countPassed(waits: Wait[], from: number): { passing: number; max: number } {
  const times = new Map<Wait, number>();
  let passing = 0;
  for (const { from: asked, to } of waits) {
    if (to === null || to < from) continue;
    const older = waits.filter((one) => one.from < asked - EARLIER_MS && (one.to ?? Number.POSITIVE_INFINITY) > to);
    for (const one of older) times.set(one, (times.get(one) ?? 0) + 1);
    if (older.length > 0) passing++;
  }
  return { passing, max: Math.max(0, ...times.values()) };
}

export const sleeperMeasurements: Measurement[] = [waiting];
