import { setTimeout as delay } from 'node:timers/promises';
import { readOptions } from '../../local/options.ts';
import { seededRandom } from '../../test/support/chance/seed.ts';
import { npmStart } from '../start/npm-start.ts';
import { ApiClient, Tally } from './client.ts';
import { Knowledge, MIX } from './workloads.ts';

const HELP = `npm run verify -- load: 64 connections against npm start, with mixed calls on few names and on many.

  --seconds N       how long (60)
  --connections N   how many at once (64)

It fails on a wrong answer, an error that is not documented, memory that grows, or more than one call in a hundred that
was answered Throttled, Unavailable or OutcomeUnknown. It exits with 1 then, and with 2 where it could not run.`;

/** Part of the time after which caches, pools and compiled code have come to rest. */
const WARM_UP = 0.3;

/** Shorter, and memory is looked at too rarely to tell anything of it. */
const LEAST_SECONDS = 5;

/** On one machine nothing is overloaded; a server that refuses everything gives no wrong answer either. */
const MAX_REFUSED = 0.01;

/** What garbage collection makes of the same live memory, from one moment to the next. */
const MAX_GROWTH = 1.25;

async function main(): Promise<boolean> {
  const { values, number } = readOptions({
    seconds: { type: 'string', default: '60' },
    connections: { type: 'string', default: '64' },
    help: { type: 'boolean', short: 'h' },
  });
  if (values.help) {
    console.log(HELP);
    return true;
  }
  const ms = (number('seconds', { least: LEAST_SECONDS }) ?? 0) * 1000;
  const connections = number('connections', { least: 1, most: 10_000, whole: true }) ?? 0;
  const server = await npmStart();
  const tally = new Tally();
  try {
    const memory: { at: number; bytes: number }[] = [];
    const startedAt = performance.now();
    const elapsed = () => performance.now() - startedAt;
    const known = new Knowledge();
    const workers = Array.from({ length: connections }, async (_, id) => {
      const worker = { id, api: new ApiClient(server.url, tally), tally, random: seededRandom(id) };
      while (elapsed() < ms) await MIX[Math.floor(worker.random() * MIX.length)]?.(worker, known);
    });
    const sampler = (async () => {
      for (; elapsed() < ms; await delay(500)) memory.push({ at: elapsed() / ms, bytes: await server.memory() });
    })();
    await Promise.all([...workers, sampler]);
    return report(tally, { connections, seconds: elapsed() / 1000 }, memory);
  } finally {
    await server.stop();
  }
}

function report(
  tally: Tally,
  { connections, seconds }: { connections: number; seconds: number },
  memory: { at: number; bytes: number }[],
): boolean {
  const sorted = tally.latencies.toSorted((a, b) => a - b);
  const percentile = (part: number) => (sorted[Math.floor(sorted.length * part)] ?? Number.NaN).toFixed(1);
  const between = (from: number, to: number) =>
    memory.filter(({ at }) => at >= from && at < to).map(({ bytes }) => bytes);
  // The lowest of each stretch is nearest to what is really in use.
  const middle = WARM_UP + (1 - WARM_UP) / 2;
  const [warm, end] = [Math.min(...between(WARM_UP, middle)), Math.min(...between(middle, 1.01))];
  const growth = end / warm;
  const mib = (bytes: number) => `${(bytes / 1024 ** 2).toFixed(0)} MiB`;
  console.log(
    `${connections} connections, ${sorted.length} calls in ${seconds.toFixed(1)} s: ${(sorted.length / seconds).toFixed(0)} per second`,
  );
  console.log(`p50 ${percentile(0.5)} ms, p99 ${percentile(0.99)} ms`);
  console.log(
    `RSS of the server: peak ${mib(Math.max(...memory.map(({ bytes }) => bytes)))}, ${mib(warm)} after the warm-up, ${mib(end)} at the end`,
  );
  for (const [outcome, count] of [...tally.outcomes].toSorted())
    console.log(`  ${outcome.padEnd(48)}${String(count).padStart(8)}`);
  for (const wrong of tally.wrong) console.log(`WRONG: ${wrong}`);
  if (growth > MAX_GROWTH) console.log(`GROWS: memory is ${growth.toFixed(2)} times of what it was after the warm-up`);
  const refused = tally.refused / sorted.length;
  if (refused > MAX_REFUSED) console.log(`REFUSED: ${(refused * 100).toFixed(1)} % of all calls`);
  return tally.wrong.length === 0 && growth <= MAX_GROWTH && refused <= MAX_REFUSED;
}

main().then(
  (passed) => process.exit(passed ? 0 : 1),
  (error: Error) => {
    console.error(`npm run verify -- load: ${error.message}`);
    process.exit(2);
  },
);
