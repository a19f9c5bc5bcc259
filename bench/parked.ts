import { startCounter } from './counter.ts';
import { type Figure, inParts, type Measurement, milliseconds, type Options } from './measurement.ts';
import type { ParkedResult, ParkedTask } from './parked.worker.ts';
import { inWorker } from './worker.ts';

const DEPTHS = [1, 10, 1000, 10_000];
const CONTENDERS = 64;
const HOLD_MS = 5;

/** The bar from the release to SendTaskSuccess, on the emulator. */
const MAX_P99_MS = 100;
/** The bar for requests to DynamoDB of one task: to park it, to notify it and to release the lease. */
const MAX_REQUESTS = 6;
/** The bar for the most grants of a contender, divided by the fewest. */
const MAX_UNFAIR = 1.1;

const NO_CONTENTION = { contenders: 0, turns: 0, holdMs: 0 };

const parked: Measurement = {
  name: 'parked',
  title: 'Parked tasks: from sending the release to the arrival of SendTaskSuccess, and 64 that return for one key',
  method:
    'The built functions in one process, a DynamoDB emulator and a Step Functions double on this machine. Each contender holds the lease for 5 ms and parks again. Requests are those to DynamoDB for parking, hand-off and release together, counted in a separate run. A parked acquire is one state transition, however long it waits; a state machine that polls pays one for each poll',
  run: async (options) => {
    const samples = options.quick ? 10 : 500;
    const depths = options.quick ? DEPTHS.slice(0, 2) : DEPTHS;
    const turns = options.quick ? 1 : 20;
    const contention = { contenders: CONTENDERS, turns, holdMs: HOLD_MS };
    const found = await play({ depths, samples, contention }, options);
    const { grants, counted } = await countParked({ ...contention, turns: options.quick ? 1 : 3 }, options);
    return [
      ...found.waits.map((times, at) => {
        const figure = milliseconds(
          `release to SendTaskSuccess, ${depths[at]?.toLocaleString('en')} parked`,
          inParts(times),
        );
        return { ...figure, bar: { measured: figure.p99, max: MAX_P99_MS } };
      }),
      milliseconds('the first of a process, which loads the code of the line', [[found.first]]),
      notificationFigure(found.notified),
      ...contended(found.contention),
      {
        ...{ what: `${CONTENDERS} contenders, requests for a grant`, unit: 'requests', n: grants },
        value: `${(counted.requests / grants).toFixed(2)} (${(counted.writeUnits / grants).toFixed(1)} write, ${(counted.readUnits / grants).toFixed(1)} read units)`,
        median: counted.requests / grants,
        bar: { measured: counted.requests / grants, max: MAX_REQUESTS },
      },
    ];
  },
};

/** A quota above the longest line of this measurement, because the default one would end it with QueueFull. */
const quotaFor = ({ depths, contention }: ParkedTask) => 2 * Math.max(...depths, contention.contenders, 1);

const play = (task: ParkedTask, options: Options) =>
  inWorker<ParkedTask, ParkedResult>(new URL('parked.worker.ts', import.meta.url), task, {
    ...options,
    variables: { MAX_WAITERS_PER_KEY: String(quotaFor(task)) },
  });

/** The requests and units for grants of tasks that park again. */
export async function countParked(contention: ParkedTask['contention'], options: Options) {
  const counter = await startCounter(options.dynamodbEndpoint);
  try {
    const through = { ...options, dynamodbEndpoint: counter.endpoint };
    // The process also makes one hand-off, of two grants.
    await play({ depths: [], samples: 0, contention: NO_CONTENTION }, through);
    const besides = counter.take();
    const { contention: found } = await play({ depths: [], samples: 0, contention }, through);
    const all = counter.take();
    const counted = {
      requests: all.requests - besides.requests,
      writeUnits: all.writeUnits - besides.writeUnits,
      readUnits: all.readUnits - besides.readUnits,
    };
    return { counted, grants: found.all };
  } finally {
    await counter.stop();
  }
}

const notificationFigure = ({ requests, grants }: ParkedResult['notified']): Figure => ({
  ...{ what: 'requests to Step Functions for a grant', unit: 'requests', n: grants },
  value: (requests / grants).toFixed(2),
  median: requests / grants,
});

function contended({ grants, tookMs }: ParkedResult['contention']): Figure[] {
  const all = grants.reduce((left, right) => left + right, 0);
  const [most, least] = [Math.max(...grants), Math.min(...grants)];
  const unfair = most / Math.max(1, least);
  return [
    {
      ...{ what: `${CONTENDERS} contenders, parked`, unit: '/s', n: all },
      value: `${((1000 * all) / tookMs).toFixed(1)} grants/s`,
      median: (1000 * all) / tookMs,
    },
    {
      ...{ what: `${CONTENDERS} contenders, most : fewest grants`, n: all, median: unfair },
      value: `${most} : ${least}`,
      bar: { measured: unfair, max: MAX_UNFAIR },
    },
  ];
}

export const parkedMeasurements: Measurement[] = [parked];
