import { type Cost, counted, requestsFigure, turn } from './contention.ts';
import { type Arena, type Entry, withArena } from './contestants.ts';
import { type Bar, type Figure, type Measurement, type Options, sum } from './measurement.ts';
import { countParked } from './parked.ts';
import { PARKED_PERMITS, PERMIT_ENTRIES, PERMIT_LIMITS, permitFigure } from './permits.entries.ts';

const CONTENDERS = 64;
const HOLD_MS = 5;
const TTL_SECONDS = 10;
/** How long a crowd that comes at once may take, and how long callers come back: to see who has how many turns, and to count. */
const [AT_ONCE_MS, COME_BACK_MS, COUNTED_MS] = [10_000, 6000, 3000];

/** Requests for a grant: of callers in line, and of parked tasks. */
const MOST_REQUESTS: Record<number, number> = { 8: 8, 64: 2.1 };
const MOST_PARKED = 12;

const permits: Measurement = {
  name: 'permits',
  title: `Permits: ${CONTENDERS} callers for ${PERMIT_LIMITS.slice(0, -1).join(', ')} and ${PERMIT_LIMITS.at(-1)} of them, next to other ways of counting`,
  method: `all callers of one algorithm in a process of its own, on one emulator, with one client of the SDK; each holds its permit for five milliseconds; once as a crowd that comes at once, each for one permit, until all had one or ten seconds were over, and once as callers that come back for six seconds; requests and units are counted in between, of those who come back in a turn of their own. The sample of AWS is the state machine of its blog post, as one request for each of its requests: it tries again after 1, 2, 4 ... 32 seconds, reads, and begins again after three; in the other row it has the pauses that Holdfast has outside the line. Consul waits by a blocking query, which DynamoDB does not have, so it looks after the same pauses. ${PARKED_PERMITS.limit} permits for ${CONTENDERS} parked tasks are measured as for parked leases`,
  run: (options) => withArena(options, (arena) => permitFigures(arena, options), PERMIT_ENTRIES),
};

async function permitFigures(arena: Arena, options: Options): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const limit of PERMIT_LIMITS)
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
  const key = (what: string) => `${what}, ${limit}, ${entry.name}`;
  const task = { limit, contenders: CONTENDERS, ttlSeconds: TTL_SECONDS, holdMs: HOLD_MS };
  const [atOnceMs, comeBackMs, countedMs] = quick ? [1500, 500, 500] : [AT_ONCE_MS, COME_BACK_MS, COUNTED_MS];
  const atOnce = await counted(arena, entry, {
    task: { ...task, key: key('at once'), ms: atOnceMs, once: true },
    dynamodbEndpoint,
  });
  const back = { ...task, key: key('back'), ms: comeBackMs, once: false };
  const { grants, perSecond } = await turn(arena, entry, back);
  const cost = await counted(arena, entry, {
    task: { ...back, key: key('counted'), ms: countedMs },
    dynamodbEndpoint,
  });
  const [most, least] = [Math.max(...grants), Math.min(...grants)];
  const bar = entry.name === 'holdfast, in line' && !quick ? barOf(limit) : undefined;
  return [
    requestsFigure({ what: named('atOnce'), bar }, atOnce),
    {
      ...{ what: named('took'), unit: 'ms', n: atOnce.grants, median: atOnce.tookMs },
      value: isServed(atOnce)
        ? `${(atOnce.tookMs / 1000).toFixed(1)} s`
        : `${atOnce.grants} had one in ${atOnceMs / 1000} s`,
    },
    {
      ...{ what: named('perSecond'), unit: '/s', n: sum(grants), median: perSecond },
      value: `${perSecond.toFixed(0)} grants/s`,
    },
    { ...{ what: named('turns'), n: sum(grants), median: most / Math.max(1, least) }, value: `${most} : ${least}` },
    requestsFigure({ what: named('back'), bar: undefined }, cost),
  ];
}

const isServed = ({ grants }: Cost) => grants === CONTENDERS;

function barOf(limit: number): Omit<Bar, 'measured'> | undefined {
  const most = MOST_REQUESTS[limit];
  return most === undefined ? undefined : { most };
}

async function parkedFigure(options: Options): Promise<Figure> {
  const contention = { contenders: CONTENDERS, turns: 3, holdMs: HOLD_MS, limit: PARKED_PERMITS.limit };
  const { grants, counted } = await countParked(contention, options);
  return requestsFigure({ what: PARKED_PERMITS.what, bar: { most: MOST_PARKED } }, { grants, ...counted });
}

export const permitsMeasurements: Measurement[] = [permits];
