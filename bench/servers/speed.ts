import { type Arena, type Running, withArena } from '../contestants.ts';
import { type Figure, type Measurement, milliseconds, type Options, shuffle, statistics, sum } from '../measurement.ts';
import { HAND_OFF } from '../waiting.ts';
import { absentServers, type ServerEntry, serverLibraries, speedEntries } from './entries.ts';
import { type LockServer, launch, type ServerName } from './launch.ts';
import { startProxy } from './proxy.ts';

const NETWORK_MS = 5;
const CONTENDERS = 64;
const [HOLD_MS, TTL_SECONDS] = [5, 10];
/** Each contestant goes around its own ring of this many keys, so that the data of the server does not grow. */
const ringOf = (name: string) => Array.from({ length: 50 }, (_, at) => `cycle ${at} ${name}`);

interface Samples {
  blocks: number;
  block: number;
  handOffs: number;
  heldMs: number;
  crowds: number;
  returningMs: number;
}

const WAITED = { handOffs: 4, heldMs: HAND_OFF.heldMs, crowds: 3 };
const NEAR: Samples = { blocks: 10, block: 100, ...WAITED, returningMs: 10_000 };
const FAR: Samples = { blocks: 6, block: 50, ...WAITED, returningMs: 5000 };
const QUICK: Samples = { blocks: 1, block: 10, handOffs: 1, heldMs: 300, crowds: 1, returningMs: 300 };

const servers: Measurement = {
  name: 'servers',
  comparesLibraries: true,
  title: 'Locks on other servers: a free lock, hand-off, and 64 callers for one key',
  method: `Each client runs in its own process and language, with the defaults of its documentation. Each server runs on this machine with its own defaults. Hand-off: ${HAND_OFF.atATime} keys at a time, held for three seconds, from sending the release to the grant. The 64 callers share a process and hold the lock for 5 ms a turn. They come at once and want one turn each, or return, counted from when each has had a turn`,
  run: (options) =>
    withServers(speedEntries(), async (addresses) => {
      const figures: Figure[] = [];
      for (const networkMs of options.quick ? [NETWORK_MS] : [0, NETWORK_MS])
        figures.push(...(await column({ addresses, networkMs }, options)));
      return figures;
    }),
  libraries: serverLibraries,
  leftOut: absentServers,
};

/** Runs the servers of some contestants during `work`. */
async function withServers<T>(entries: ServerEntry[], work: (addresses: Addresses) => Promise<T>): Promise<T> {
  const running = new Map<ServerName, LockServer>();
  try {
    for (const { server } of entries) if (!running.has(server)) running.set(server, await launch(server));
    return await work((server) => running.get(server)?.address ?? '');
  } finally {
    for (const server of running.values()) await server.stop();
  }
}

type Addresses = (server: ServerName) => string;

/** The environment variables that tell a contestant the address of its server. */
export const addressed = ({ server }: ServerEntry, address: string): Record<string, string> =>
  server === 'dynamodb' ? { AWS_ENDPOINT_URL_DYNAMODB: `http://${address}` } : { SERVER: address };

async function column({ addresses, networkMs }: { addresses: Addresses; networkMs: number }, options: Options) {
  const entries = speedEntries();
  const samples = options.quick ? QUICK : networkMs > 0 ? FAR : NEAR;
  const suffix = networkMs > 0 ? `, ${networkMs} ms away` : '';
  const found = new Map<ServerEntry, Figure[]>();
  const dynamodbEndpoint = `http://${addresses('dynamodb')}`;
  await withArena(
    { quick: false, dynamodbEndpoint },
    async (arena) => {
      const play = async (entry: ServerEntry) => {
        options.progress(`servers${suffix}: ${entry.name}`);
        const proxy = networkMs > 0 ? await startProxy(addresses(entry.server), networkMs) : undefined;
        try {
          const env = addressed(entry, proxy?.address ?? addresses(entry.server));
          found.set(entry, await contest(arena, { entry, env, suffix }, samples));
        } finally {
          await proxy?.stop();
        }
      };
      if (options.quick) await Promise.all(entries.map(play));
      else for (const entry of shuffle([...entries])) await play(entry);
    },
    entries,
  );
  return entries.flatMap((entry) => found.get(entry) ?? []);
}

interface Contest {
  entry: ServerEntry;
  env: Record<string, string>;
  /** The end of the names of its figures and keys. */
  suffix: string;
}

async function contest(arena: Arena, { entry, env, suffix }: Contest, samples: Samples): Promise<Figure[]> {
  const name = `${entry.name}${suffix}`;
  const running = await arena.start(entry, env);
  const figures = [await free(running, name, samples)];
  if (entry.waits) figures.push(await handOff(running, name, samples));
  await running.stop();
  if (!entry.waits) return figures;
  const contend = async (oneTurnEach: boolean, repetition: number) => {
    const fresh = await arena.start(entry, env);
    const task = {
      contenders: CONTENDERS,
      ttlSeconds: TTL_SECONDS,
      ms: samples.returningMs,
      holdMs: HOLD_MS,
      oneTurnEach,
    };
    await fresh.ask('cycles', { keys: ringOf(name), count: samples.block });
    const found = await fresh.ask('contend', {
      ...task,
      key: `64 ${oneTurnEach} ${repetition} ${name}`,
      settled: !oneTurnEach,
    });
    await fresh.stop();
    return found;
  };
  const rates: number[][] = [];
  for (let crowd = 0; crowd < samples.crowds; crowd++) {
    const { grants, tookMs } = await contend(true, crowd);
    rates.push([(1000 * sum(grants)) / tookMs]);
  }
  const { grants, tookMs } = await contend(false, 0);
  const [most, least] = [Math.max(...grants), Math.min(...grants)];
  const { n, median, spread } = statistics(rates);
  return [
    ...figures,
    {
      ...{ what: `${CONTENDERS} at once, ${name}`, value: `${median.toFixed(0)} grants/s` },
      ...{ unit: '/s', n, median, spread },
    },
    {
      what: `${CONTENDERS} returning callers, most : fewest grants, ${name}`,
      value: `${most} : ${least}, ${((1000 * sum(grants)) / tookMs).toFixed(0)} grants/s`,
      ...{ median: most / Math.max(1, least), n: sum(grants) },
    },
  ];
}

/** Java needs time to compile. */
const WARM_UPS = { other: 5, others: 1 };

async function free({ ask, kind }: Running, name: string, { blocks, block }: Samples): Promise<Figure> {
  const keys = ringOf(name);
  await ask('cycles', { keys, count: block * (kind === 'other' ? WARM_UPS.other : WARM_UPS.others) });
  const times: number[][] = [];
  for (let done = 0; done < blocks; done++) {
    const { acquireMs, releaseMs } = await ask('cycles', { keys, count: block });
    times.push(acquireMs.map((ms, at) => ms + (releaseMs[at] ?? 0)));
  }
  return milliseconds(`free lock, acquire and release, ${name}`, times);
}

async function handOff({ ask }: Running, name: string, { handOffs, heldMs }: Samples): Promise<Figure> {
  const times: number[][] = [];
  for (let repetition = 0; repetition <= handOffs; repetition++) {
    const keys = Array.from({ length: HAND_OFF.atATime }, (_, at) => `hand-off ${repetition} ${at} ${name}`);
    // The first repetition does not count, because it opens connections and runs code for the first time.
    const delaysMs = keys.map(() => (repetition === 0 ? 1 : heldMs + Math.random() * 250));
    times.push((await ask('handoff', { keys, ttlSeconds: HAND_OFF.ttlSeconds, delaysMs })).waitedMs);
  }
  return milliseconds(`hand-off, ${name}`, times.slice(1));
}

export const serverMeasurements: Measurement[] = [servers];
