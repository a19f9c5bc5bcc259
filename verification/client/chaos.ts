import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Holdfast } from '../../clients/typescript/src/index.ts';
import { readOptions } from '../../local/options.ts';
import { seededRandom } from '../../test/support/chance/seed.ts';
import { broken, excused, type Left, type Line } from './check.ts';
import { commandOf, keysOf, startRust, workerEnvironment } from './others.ts';
import { type FaultyProxy, startProxy } from './proxy.ts';
import { serveLeases } from './service.ts';

const HELP = `npm run verify -- chaos: many callers of the client, in processes that are stopped and killed, over a proxy that drops,
delays, duplicates and cuts requests and answers 503. By a log of every fence no two may work at once, none may leave a
lease but those who were killed, and no process may be kept alive. Each second process uses the Python client, if there is
Python 3.10 or newer. Callers of the Rust crate dynamodb-lease share a quarter of the keys, if npm run bench has built them.

  --seconds N     how long (600)
  --processes N   how many (8)
  --at-once N     pieces of work in each (8)
  --keys N        that they share (16)
  --plain         use only the TypeScript client
  --seed N        the same faults, stops, kills and pieces of work as in the run that printed it; what meets what depends on
                  the machine's time as well`;

/** After the end, a client may still be releasing or withdrawing for as long as the service waits and answers. */
const MAX_END_MS = 45_000;

/** The longest ttl, and what take-overs wait for. */
const EXPIRY_MS = 5000;

interface Settings {
  seconds: number;
  processes: number;
  atOnce: number;
  keys: number;
  seed: number;
  isPlain: boolean;
}

async function main(): Promise<boolean> {
  const { values, number } = readOptions({
    seconds: { type: 'string', default: '600' },
    processes: { type: 'string', default: '8' },
    'at-once': { type: 'string', default: '8' },
    keys: { type: 'string', default: '16' },
    seed: { type: 'string' },
    plain: { type: 'boolean' },
    help: { type: 'boolean', short: 'h' },
  });
  if (values.help) {
    console.log(HELP);
    return true;
  }
  const atLeastOne = (name: 'seconds' | 'processes' | 'at-once' | 'keys') => number(name, { min: 1 }) ?? 1;
  const settings = {
    seconds: atLeastOne('seconds'),
    processes: atLeastOne('processes'),
    atOnce: atLeastOne('at-once'),
    keys: atLeastOne('keys'),
    seed: number('seed', { min: 0 }) ?? Math.floor(Math.random() * 1e6),
    isPlain: values.plain === true,
  };
  console.log(`seed ${settings.seed}`);
  const service = await serveLeases();
  const proxy = await startProxy(service.url, seededRandom(settings.seed));
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-chaos-'));
  try {
    return await play(settings, { service, proxy, log: join(folder, 'log') });
  } finally {
    await proxy.stop();
    await service.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

interface Worker {
  child: ChildProcess;
  ready: Promise<unknown>;
}

interface Stage {
  service: Awaited<ReturnType<typeof serveLeases>>;
  proxy: FaultyProxy;
  log: string;
}

async function play(settings: Settings, { service, proxy, log }: Stage): Promise<boolean> {
  const { seconds, processes, atOnce, seed, isPlain } = settings;
  const keys = keysOf(settings.keys, isPlain);
  // Each process draws its own numbers, so that none changes what another draws.
  const random = seededRandom(seed + 1);
  const killed = new Set<string>();
  let [started, stops] = [0, 0];
  const start = (): [string, Worker] => {
    const { name, command, words, last } = commandOf(++started, isPlain);
    const holder = `${name}-${started}`;
    const args = [proxy.url, holder, log, JSON.stringify(keys), `${atOnce}`, `${seed * 1000 + started}`];
    const child = spawn(command, [...words, ...args, ...last], {
      env: workerEnvironment,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    return [holder, { child, ready: once(child.stdout, 'data') }];
  };
  const running = new Map(Array.from({ length: processes }, start));
  const rust = startRust({ keys, log, seconds, isPlain }, service.store);

  const endsAt = Date.now() + seconds * 1000;
  let killAt = Date.now() + seconds * 200;
  while (Date.now() < endsAt) {
    await delay(500 + random() * 2000);
    const [holder, { child } = {}] = [...running][Math.floor(random() * running.size)] ?? [];
    if (!holder || !child) throw new Error('every process has ended');
    if (Date.now() >= killAt) {
      killAt += Math.min(seconds * 200, 30_000);
      child.kill('SIGKILL');
      killed.add(holder);
      running.delete(holder);
      running.set(...start());
    } else {
      stops++;
      child.kill('SIGSTOP');
      await delay(500 + random() * 5500); // up to three times the shortest ttl
      child.kill('SIGCONT');
    }
  }

  proxy.calm();
  const stoppedAt = Date.now();
  const ends = await Promise.all([...running].map(([holder, worker]) => endOf(holder, worker)));
  const endedMs = Date.now() - stoppedAt;
  await delay(EXPIRY_MS);
  const left: Left[] = [];
  for await (const lease of new Holdfast({ endpoint: service.url, holder: 'judge' }).leases()) left.push(lease);

  const lines = (await readFile(log, 'utf8'))
    .split('\n')
    .filter(Boolean)
    .map((line): Line => JSON.parse(line));
  const excuse = { killed, copies: proxy.copies, copied: proxy.copied };
  const complaints = {
    ...broken(lines, left, excuse),
    processesKeptAlive: ends.filter((end) => end !== ''),
    notTried: [
      ...Object.entries(proxy.struck).flatMap(([fault, count]) => (count ? [] : [`the fault ${fault} never struck`])),
      ...(stops && killed.size ? [] : ['no process was stopped and killed']),
    ],
  };
  const counts = Object.fromEntries(Object.entries(complaints).map(([kind, cases]) => [kind, cases.length]));
  const { leasesOfKilled, leasesOfCopies } = excused(left, excuse);
  const faults = Object.values(proxy.struck).reduce((sum, count) => sum + count, 0);
  report(lines, {
    ...counts,
    ...{ leasesOfKilled, leasesOfCopies, stops, kills: killed.size, endedMs, faults, struck: proxy.struck },
    rustUses: await rust,
  });
  for (const complaint of Object.values(complaints).flat()) console.error(complaint);
  return Object.values(complaints).every((cases) => cases.length === 0);
}

/** @returns a complaint, unless the process ends by itself and in time */
async function endOf(holder: string, { child, ready }: Worker): Promise<string> {
  const exit = once(child, 'exit');
  await Promise.race([ready, exit]);
  child.kill('SIGTERM');
  const ended = await Promise.race([exit, delay(MAX_END_MS, undefined, { ref: false })]);
  if (!ended) {
    child.kill('SIGKILL');
    return `${holder} was kept alive`;
  }
  return ended[0] === 0 ? '' : `${holder} ended with ${ended[0] ?? ended[1]}`;
}

function report(lines: Line[], more: object): void {
  const counts: Record<string, number> = {};
  const fences = new Set<string>();
  const uses: Record<string, Set<string>> = {};
  let steps = 0;
  for (const line of lines) {
    if (line.type === 'step') {
      steps++;
      fences.add(`${line.key} ${line.fence}`);
      const kind = line.holder.replace(/-\d+$/, '');
      uses[kind] ??= new Set();
      uses[kind].add(`${line.key} ${line.fence}`);
      continue;
    }
    const name = line.type === 'failure' ? [line.code, line.reason].filter(Boolean).join(' ') : line.type;
    counts[name] = (counts[name] ?? 0) + 1;
  }
  const { success = 0, done = 0, ...failures } = counts;
  const figures = {
    piecesOfWork: fences.size,
    ofEach: Object.fromEntries(Object.entries(uses).map(([kind, works]) => [kind, works.size])),
    steps,
    withLeaseReturned: success,
    processesEnded: done,
    failures,
    ...more,
  };
  console.log(JSON.stringify(figures, null, 2));
}

main().then(
  (passed) => {
    process.exitCode = passed ? 0 : 1;
  },
  (error: Error) => {
    console.error(`npm run verify -- chaos: ${error.message}`);
    process.exitCode = 2;
  },
);
