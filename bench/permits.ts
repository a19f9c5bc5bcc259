import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { readService } from '../infrastructure/read.ts';
import { type Cost, countTurn, requestsFigure } from './contention.ts';
import { type Arena, type Entry, withArena } from './contestants.ts';
import { CREDENTIALS } from './environment.ts';
import { CONTENTION_BARS, inWholeTurns } from './line.ts';
import type { Bar, Figure, Measurement, Options } from './measurement.ts';
import { countParked } from './parked.ts';
import { PARKED_PERMITS, PERMIT_ENTRIES, PERMIT_LIMITS, permitFigure } from './permits.entries.ts';
import { freeKey, seed } from './seed.ts';

const CONTENDERS = 64;
const HOLD_MS = 5;
const TTL_SECONDS = 10;
/** How long a crowd that comes at once may take, and for how long callers return. */
const [AT_ONCE_MS, COME_BACK_MS] = [8000, 10_000];

/** The bars for the requests of a grant: for callers in line, by the limit of the key, and for parked tasks. A limit of one may cost what a lease costs. */
const MAX_REQUESTS: Record<number, number> = { 1: 11, 8: 8, 64: 2.1 };
const MAX_PARKED = 12;

const permits: Measurement = {
  name: 'permits',
  title: `Permits: ${CONTENDERS} callers for ${PERMIT_LIMITS.slice(0, -1).join(', ')} and ${PERMIT_LIMITS.at(-1)} permits, next to other ways to count`,
  method:
    'Each algorithm runs in its own process, with one SDK client, on a key that had shared holders before. Each caller holds its permit for 5 ms. We measure a crowd that comes at once, until all have had a permit or eight seconds have passed, and callers that return for ten seconds, counted from when each has had one. A proxy before the emulator counts the requests. The *AWS sample* is the state machine of an AWS blog post: it tries again after 1, 2, 4 ... 32 seconds, reads, and begins again after three seconds. In the other row, it pauses as Holdfast does outside the line. Consul waits with a blocking query, which DynamoDB does not have, so it polls after the same pauses. Parked tasks are measured as under *Parked tasks*',
  run: (options) => withArena(options, (arena) => permitFigures(arena, options), PERMIT_ENTRIES),
};

async function permitFigures(arena: Arena, options: Options): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const limit of options.quick ? [PARKED_PERMITS.limit] : PERMIT_LIMITS)
    for (const entry of arena.entries) {
      options.progress(`permits: ${limit}, ${entry.name}`);
      figures.push(...(await contending(arena, { entry, limit }, options)));
    }
  options.progress('permits: parked tasks');
  return [...figures, await parkedFigure(options)];
}

async function contending(
  arena: Arena,
  { entry, limit }: { entry: Entry; limit: number },
  { quick, dynamodbEndpoint }: Options,
): Promise<Figure[]> {
  const named = (what: Parameters<typeof permitFigure>[0]) => permitFigure(what, limit, entry.name);
  const task = { limit, contenders: CONTENDERS, ttlSeconds: TTL_SECONDS, holdMs: HOLD_MS };
  const [atOnceMs, comeBackMs] = quick ? [500, 300] : [AT_ONCE_MS, COME_BACK_MS];
  const play = async (how: string, ms: number, oneTurnEach: boolean) => {
    const key = `${how}, ${limit}, ${entry.name}`;
    if (entry.kind === 'ours') await seedPool(dynamodbEndpoint, key);
    return countTurn(arena, entry, {
      task: { ...task, key, ms, oneTurnEach, settled: !oneTurnEach },
      dynamodbEndpoint,
    });
  };
  const atOnce = await play('at once', atOnceMs, true);
  const back = await play('back', comeBackMs, false);
  const { turns, perSecond } = back;
  const [most, least] = [Math.max(...turns), Math.min(...turns)];
  const ratio = most / Math.max(1, least);
  const isJudged = entry.name === 'holdfast, in line' && !quick;
  const bar = isJudged ? barOf(limit) : undefined;
  return [
    requestsFigure({ what: named('atOnce'), bar }, atOnce),
    {
      ...{ what: named('took'), unit: 'ms', n: atOnce.grants, median: atOnce.tookMs },
      value: isServed(atOnce)
        ? `${(atOnce.tookMs / 1000).toFixed(1)} s`
        : `${atOnce.grants} had one in ${atOnceMs / 1000} s`,
    },
    {
      ...{ what: named('perSecond'), unit: '/s', n: back.grants, median: perSecond },
      value: `${perSecond.toFixed(0)} grants/s`,
    },
    {
      ...{ what: named('turns'), value: `${most} : ${least}`, n: back.grants, median: ratio },
      ...(isJudged && { bar: { measured: ratio, ...inWholeTurns(CONTENTION_BARS.unfair, least) } }),
    },
    requestsFigure({ what: named('back'), bar: undefined }, back),
  ];
}

/** A key that has had shared holders, which have left. */
async function seedPool(endpoint: string, key: string): Promise<void> {
  const { environment } = await readService('bench');
  const { AWS_REGION: region, AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey } = CREDENTIALS;
  const dynamodb = new DynamoDBClient({ endpoint, region, credentials: { accessKeyId, secretAccessKey } });
  await seed(dynamodb, { table: environment.LEASES_TABLE ?? '', count: 1, item: () => freeKey(key) });
  dynamodb.destroy();
}

const isServed = ({ grants }: Cost) => grants === CONTENDERS;

/** If there are more requests than `upTo`, some caller polls again and again. */
const EXCUSES: Record<number, Bar['excuse']> = {
  1: {
    upTo: 20,
    why: 'the release of a permit and the next grant are two writes, and one for a lease; a read of the line serves only one caller',
  },
  8: {
    upTo: 20,
    why: 'a grant costs at least 7.4 requests, as derived under “How to read the details”; the rest are polls, because a caller cannot foresee its turn. Callers that race pay for neither, and have no order',
  },
};

function barOf(limit: number): Omit<Bar, 'measured'> | undefined {
  const [max, excuse] = [MAX_REQUESTS[limit], EXCUSES[limit]];
  return max === undefined ? undefined : { max, ...(excuse && { excuse }) };
}

async function parkedFigure(options: Options): Promise<Figure> {
  const contention = {
    contenders: CONTENDERS,
    turns: options.quick ? 1 : 3,
    holdMs: HOLD_MS,
    limit: PARKED_PERMITS.limit,
  };
  const { grants, counted } = await countParked(contention, options);
  return requestsFigure({ what: PARKED_PERMITS.what, bar: { max: MAX_PARKED } }, { grants, ...counted });
}

export const permitsMeasurements: Measurement[] = [permits];
