import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Holdfast } from '../../client/src/index.ts';
import { readOptions } from '../../local/options.ts';
import { systemIds } from '../../shared/ids.ts';
import { broken, type Left, type Line } from './check.ts';
import { type FaultyProxy, startProxy } from './proxy.ts';
import { serveLeases } from './service.ts';

const HELP = `npm run client:chaos: many callers of the client, in processes that are stopped and killed, over a proxy that drops,
delays, duplicates and cuts requests and answers 503. By a log of every fence no two may work at once, none may leave a
lease but those who were killed, and no process may be kept alive.

  --seconds N     how long (600)
  --processes N   how many (8)
  --at-once N     pieces of work in each (8)
  --keys N        that they share (16)`;

/** A client may still be at what it gives back, for as long as the service waits and answers. */
const MAX_END_MS = 45_000;

/** The longest ttl, and what take-overs wait for. */
const EXPIRY_MS = 4000;

interface Settings {
  seconds: number;
  processes: number;
  atOnce: number;
  keys: number;
}

async function main(): Promise<boolean> {
  const { values, number } = readOptions({
    seconds: { type: 'string', default: '600' },
    processes: { type: 'string', default: '8' },
    'at-once': { type: 'string', default: '8' },
    keys: { type: 'string', default: '16' },
    help: { type: 'boolean', short: 'h' },
  });
  if (values.help) {
    console.log(HELP);
    return true;
  }
  const atLeastOne = (name: 'seconds' | 'processes' | 'at-once' | 'keys') => number(name, { least: 1 }) ?? 1;
  const settings = {
    seconds: atLeastOne('seconds'),
    processes: atLeastOne('processes'),
    atOnce: atLeastOne('at-once'),
    keys: atLeastOne('keys'),
  };
  const service = await serveLeases();
  const proxy = await startProxy(service.url, systemIds.random);
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-chaos-'));
  try {
    return await play(settings, { serviceUrl: service.url, proxy, log: join(folder, 'log') });
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
  serviceUrl: string;
  proxy: FaultyProxy;
  log: string;
}

async function play(settings: Settings, { serviceUrl, proxy, log }: Stage): Promise<boolean> {
  const { seconds, processes, atOnce, keys } = settings;
  const killed = new Set<string>();
  let [started, stops] = [0, 0];
  const start = (): [string, Worker] => {
    const holder = `process-${++started}`;
    const args = [join(import.meta.dirname, 'worker.ts'), proxy.url, holder, log, `${keys}`, `${atOnce}`];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    return [holder, { child, ready: once(child.stdout, 'data') }];
  };
  const running = new Map(Array.from({ length: processes }, start));

  const endsAt = Date.now() + seconds * 1000;
  let killAt = Date.now() + seconds * 200;
  while (Date.now() < endsAt) {
    await delay(500 + Math.random() * 2000);
    const [holder, { child } = {}] = [...running][Math.floor(Math.random() * running.size)] ?? [];
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
      await delay(500 + Math.random() * 5500); // up to thrice the shortest ttl
      child.kill('SIGCONT');
    }
  }

  proxy.calm();
  const stoppedAt = Date.now();
  const ends = await Promise.all([...running].map(([holder, worker]) => endOf(holder, worker)));
  const endedMs = Date.now() - stoppedAt;
  await delay(EXPIRY_MS);
  const left: Left[] = [];
  for await (const lease of new Holdfast({ endpoint: serviceUrl, holder: 'judge' }).leases()) left.push(lease);

  const lines = (await readFile(log, 'utf8'))
    .split('\n')
    .filter(Boolean)
    .map((line): Line => JSON.parse(line));
  const complaints = [...broken(lines, left, killed, proxy.copies), ...ends.filter((end) => end !== '')];
  tell(lines, { stops, kills: killed.size, endedMs, struck: proxy.struck });
  for (const [fault, count] of Object.entries(proxy.struck))
    if (count === 0) complaints.push(`the fault ${fault} never struck`);
  if (stops === 0 || killed.size === 0) complaints.push('no process was stopped and killed');
  for (const complaint of complaints) console.error(complaint);
  return complaints.length === 0;
}

/** A complaint, unless the process ends by itself and in time. */
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

function tell(lines: Line[], more: object): void {
  const counts: Record<string, number> = {};
  const fences = new Set<string>();
  for (const line of lines) {
    const name = line.type === 'failure' ? [line.code, line.reason].filter(Boolean).join(' ') : line.type;
    counts[name] = (counts[name] ?? 0) + 1;
    if (line.type === 'step') fences.add(`${line.key} ${line.fence}`);
  }
  console.log(JSON.stringify({ leases: fences.size, ...counts, ...more }, null, 2));
}

main().then(
  (passed) => {
    process.exitCode = passed ? 0 : 1;
  },
  (error: Error) => {
    console.error(`npm run client:chaos: ${error.message}`);
    process.exitCode = 2;
  },
);
