import { setTimeout as delay } from 'node:timers/promises';
import { HOLD_AFTER_MS, WORK_MS } from '../contestants/scenarios.ts';
import { type Arena, type Running, withArena } from '../contestants.ts';
import type { Figure, Measurement, Options } from '../measurement.ts';
import { absentServers, faultEntries, type ServerEntry, serverLibraries } from './entries.ts';
import { type LockServer, launch } from './launch.ts';
import { PROTOCOLS } from './protocols.ts';
import { startLosingProxy } from './proxy.ts';
import { addressed } from './speed.ts';
import { doubleWrites, type Store, startStore } from './store.ts';

/** ZooKeeper sessions and etcd leases last at least two seconds. */
const TTL_SECONDS = 3;
const TTL_MS = TTL_SECONDS * 1000;
/** How long the first holder goes on after the fault, and how long the bench waits for the next caller. */
const GOES_ON_MS = 2000;
const PATIENCE_MS = 4 * TTL_MS;

const faults: Measurement = {
  name: 'faults',
  comparesLibraries: true,
  title: 'Locks under faults, next to other servers: a paused holder, a lost reply, a server that loses its disk',
  method: `A ttl of ${TTL_SECONDS} s, which each client extends as its documentation says. The holder checks that it has the lock, works for 50 ms, and writes to a store, again and again. Paused: SIGSTOP for twice the ttl, while another caller waits, gets the lock and writes; then SIGCONT. A store with fences refuses a lower fence than it has seen: the fence of Holdfast, the revision of the lock's key in etcd, the czxid of its node in ZooKeeper. Redis has none. Lost reply: a proxy reads the protocol (HTTP, HTTP/2, RESP, the frames of ZooKeeper), and breaks the connection instead of passing on the reply that grants the lock. Measured: how long another caller then waits, up to ${PATIENCE_MS / 1000} s. Restart: the server is killed and starts without its data, and another caller asks for the key. Measured: for how long both write. DynamoDB keeps each write on three disks, so the restart of its emulator shows only what the client does`,
  run: async (options) => {
    const entries = faultEntries();
    if (options.quick) return (await Promise.all(entries.map((entry) => faultsOf(entry, options)))).flat();
    const figures: Figure[] = [];
    for (const entry of entries) figures.push(...(await faultsOf(entry, options)));
    return figures;
  },
  libraries: serverLibraries,
  leftOut: absentServers,
};

/** How often each fault is repeated, because timing differs from run to run. With `--quick`, it happens once. */
const REPETITIONS = { paused: 2, 'lost reply': 3, restart: 2 };
type Fault = keyof typeof REPETITIONS;

interface Trial {
  arena: Arena;
  entry: ServerEntry;
  server: LockServer;
  store: Store;
  /** A key that no other trial has. */
  key: string;
}

async function faultsOf(entry: ServerEntry, options: Options): Promise<Figure[]> {
  const server = await launch(entry.server);
  const store = await startStore();
  const dynamodb = entry.server === 'dynamodb' ? server : await launch('dynamodb');
  try {
    return await withArena(
      { quick: false, dynamodbEndpoint: `http://${dynamodb.address}` },
      async (arena) => {
        const play = async <Found>(what: Fault, trial: (trial: Trial) => Promise<Found>) => {
          const found: Found[] = [];
          for (let repetition = 0; repetition < (options.quick ? 1 : REPETITIONS[what]); repetition++) {
            options.progress(`faults: ${entry.name}, ${what}`);
            store.writes.length = 0;
            found.push(await trial({ arena, entry, server, store, key: `${what} ${repetition}` }));
          }
          return found;
        };
        return [
          ...pausedFigures(entry.name, await play('paused', pauseHolder)),
          lostFigure(entry.name, await play('lost reply', lostReply)),
          restartFigure(entry.name, await play('restart', restartServer)),
        ];
      },
      [entry],
    );
  } finally {
    await server.stop();
    await store.stop();
    if (dynamodb !== server) await dynamodb.stop();
  }
}

/** @returns two processes of a contestant that have done their first cycles: `first` over `address`, `second` to the server */
async function two({ arena, entry, server, key }: Trial, address = server.address): Promise<[Running, Running]> {
  const first = await arena.start(entry, addressed(entry, address));
  const second = await arena.start(entry, addressed(entry, server.address));
  for (const one of [first, second]) await one.ask('cycles', { keys: [key], count: 3 });
  return [first, second];
}

const holding = ({ key, store }: Trial, writer: 'first' | 'second', ms: number) => ({
  ...{ key, ttlSeconds: TTL_SECONDS, storeUrl: store.url, writer, ms },
});

/** The outcome of a call. Even if it failed, the trial goes on, and the figure shows the outcome. */
const outcome = <T>(call: Promise<T>): Promise<T | Error> => call.catch((error: Error) => error);

async function thenStop<Found>([first, second]: [Running, Running], trial: () => Promise<Found>): Promise<Found> {
  try {
    return await trial();
  } finally {
    first.signal('SIGCONT');
    await Promise.all([first.stop(), second.stop()]);
  }
}

interface Paused {
  wasGranted: boolean;
  without: number;
  withFences: number | undefined;
}

async function pauseHolder(trial: Trial): Promise<Paused> {
  const { store } = trial;
  const [first, second] = await two(trial);
  return thenStop([first, second], async () => {
    const holder = outcome(first.ask('hold', holding(trial, 'first', 2 * TTL_MS + GOES_ON_MS)));
    await begun(holder, store);
    const waiter = outcome(second.ask('hold', holding(trial, 'second', 3 * TTL_MS)));
    await delay(2 * HOLD_AFTER_MS);
    first.signal('SIGSTOP');
    await delay(2 * TTL_MS);
    const wasGranted = store.writes.some(({ writer }) => writer === 'second');
    first.signal('SIGCONT');
    await Promise.race([Promise.all([holder, waiter]), delay(GOES_ON_MS)]);
    return { wasGranted, ...doubleWrites(store.writes, 'first', 'second') };
  });
}

/** Waits until the first holder writes. @throws Error if it does not */
async function begun(holder: Promise<object | Error>, store: Store): Promise<void> {
  if (await store.first('first', PATIENCE_MS)) return;
  const ended = await Promise.race([holder, delay(0)]);
  throw new Error('the first holder did not get the lock', { cause: ended });
}

function pausedFigures(name: string, found: Paused[]): Figure[] {
  const granted = found.filter(({ wasGranted }) => wasGranted).length;
  const most = (of: (one: Paused) => number) => Math.max(...found.map(of));
  const without = most((one) => one.without);
  const withFences = most((one) => one.withFences ?? Number.NaN);
  const counted = { unit: 'writes', n: found.length };
  return [
    {
      ...{ what: `paused, double writes without fences, ${name}`, ...counted, median: without },
      value: granted === 0 ? 'no other caller got the lock' : `at most ${without}`,
    },
    ...(Number.isNaN(withFences)
      ? [{ what: `paused, double writes with fences, ${name}`, ...counted, median: without, value: 'has no fences' }]
      : [
          {
            ...{ what: `paused, double writes with fences, ${name}`, ...counted, median: withFences },
            ...{
              value: `at most ${withFences}`,
              ...(name.startsWith('holdfast') && { bar: { measured: withFences, max: 0 } }),
            },
          },
        ]),
  ];
}

interface Lost {
  /** What the caller whose reply was lost received: a grant, with how long it took, or an error. */
  outcome: string;
  /** How long another caller waited that asked `HOLD_AFTER_MS` after the loss. Undefined if it did not get the lock in time. */
  waitedMs: number | undefined;
}

async function lostReply(trial: Trial): Promise<Lost> {
  const { server, store, entry, key } = trial;
  const proxy = await startLosingProxy(server.address, PROTOCOLS[entry.server]);
  try {
    const [first, second] = await two(trial, proxy.address);
    return await thenStop([first, second], async () => {
      const armed = Promise.withResolvers<void>();
      const arm = () => armed.resolve(proxy.loseGrant(key));
      const holder = outcome(first.ask('hold', holding(trial, 'first', 0), arm));
      const tooEarly = (cause: unknown) => Promise.reject(new Error('no reply to acquire was lost', { cause }));
      await Promise.race([armed.promise, holder.then(tooEarly)]);
      const lostAt = performance.now();
      void outcome(second.ask('hold', holding(trial, 'second', PATIENCE_MS)));
      const granted = await store.first('second', PATIENCE_MS);
      const received = await Promise.race([holder, delay(HOLD_AFTER_MS, undefined)]);
      return {
        outcome: outcomeText(received),
        waitedMs: granted && Math.max(0, granted.at - lostAt - HOLD_AFTER_MS - WORK_MS),
      };
    });
  } finally {
    await proxy.stop();
  }
}

function outcomeText(outcome: { grantedMs: number } | Error | undefined): string {
  if (!outcome) return 'still waits';
  if (outcome instanceof Error) return 'gets an error';
  return `gets the lock after ${outcome.grantedMs.toFixed(0)} ms`;
}

function lostFigure(name: string, found: Lost[]): Figure {
  const times = found.map(({ waitedMs = PATIENCE_MS }) => waitedMs).toSorted((left, right) => left - right);
  const middle = times[Math.floor(times.length / 2)] ?? Number.NaN;
  const isLocked = found.some(({ waitedMs }) => waitedMs === undefined);
  const locked = isLocked ? `another waits more than ${PATIENCE_MS / 1000} s` : `another waits ${middle.toFixed(0)} ms`;
  return {
    ...{ what: `lost reply to acquire, ${name}`, unit: 'ms', n: times.length, median: middle },
    value: `${locked}; the caller ${found[0]?.outcome}`,
  };
}

interface Restarted {
  /** For how long both holders wrote. Undefined if the second one did not get the lock. */
  bothMs: number | undefined;
  /** Whether the first holder stopped before the measurement ended. */
  hasNoticed: boolean;
  /** The error, if the second caller did not get the lock because of one. */
  failure: string | undefined;
}

async function restartServer(trial: Trial): Promise<Restarted> {
  const { server, store } = trial;
  const [first] = await two(trial); // the other one ends with the trial
  // A new process, as after a deployment, because ZooKeeper refuses a client that has seen what the server has lost.
  const second = await trial.arena.start(trial.entry, addressed(trial.entry, server.address));
  return thenStop([first, second], async () => {
    const goesOnMs = 2 * TTL_MS + GOES_ON_MS;
    const holder = outcome(first.ask('hold', holding(trial, 'first', 2 * goesOnMs)));
    await begun(holder, store);
    await server.restartWithoutDisk();
    const waiter = outcome(second.ask('hold', holding(trial, 'second', goesOnMs)));
    const ended = await Promise.race([holder, delay(goesOnMs, undefined)]);
    await Promise.race([waiter, store.first('second', goesOnMs)]);
    const failed = await Promise.race([waiter, delay(HOLD_AFTER_MS, undefined)]);
    const begunAt = store.writes.find(({ writer }) => writer === 'second')?.at;
    const lastAt = store.writes.findLast(({ writer }) => writer === 'first')?.at ?? 0;
    return {
      bothMs: begunAt === undefined ? undefined : Math.max(0, lastAt - begunAt),
      hasNoticed: ended !== undefined,
      failure: failed instanceof Error ? failed.message : undefined,
    };
  });
}

function restartFigure(name: string, found: Restarted[]): Figure {
  const most = Math.max(...found.map(({ bothMs = 0 }) => bothMs));
  const isGranted = found.some(({ bothMs }) => bothMs !== undefined);
  const until = found.every(({ hasNoticed }) => hasNoticed) ? 'until the first stops' : 'and the first goes on';
  const both = most > 0 ? `two holders for up to ${most.toFixed(0)} ms, ${until}` : 'one holder at a time';
  return {
    ...{ what: `restart without the disk, ${name}`, unit: 'ms', n: found.length, median: most },
    value: isGranted ? both : `the second gets no lock: ${found[0]?.failure ?? 'it still waits'}`,
  };
}

export const faultMeasurements: Measurement[] = [faults];
