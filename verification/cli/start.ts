import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { median } from '../../bench/measurement.ts';
import { bundle } from '../../cli/bundle.ts';
import { readOptions } from '../../local/options.ts';
import { serveLeases } from '../client/service.ts';

const HELP = `npm run verify -- cli-start: what holdfast run adds to the start of a command, with one acquire at a service on this machine: from
the start of the process to the command's first instruction, beside the same command alone, in turns. It fails where the
medians are more than 150 ms apart.

  --rounds N   how many times (40)`;

const MAX_MS = 150;

/** The first runs do not count: they bring files and code into the caches. */
const WARM_UP = 5;

async function main(): Promise<boolean> {
  const { values, number } = readOptions({
    rounds: { type: 'string', default: '40' },
    help: { type: 'boolean', short: 'h' },
  });
  if (values.help) {
    console.log(HELP);
    return true;
  }
  const rounds = number('rounds', { min: 1, whole: true }) ?? 1;
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-start-'));
  const service = await serveLeases();
  try {
    const holdfast = join(folder, 'holdfast.mjs');
    await bundle(holdfast);
    const wrapped = [process.execPath, holdfast, 'run', 'start', `--endpoint=${service.url}`, '--'];
    const times = { bare: [] as number[], holdfast: [] as number[] };
    for (let round = -WARM_UP; round < rounds; round++) {
      const [bare, ours] = [await started([]), await started(wrapped)];
      if (round < 0) continue;
      times.bare.push(bare);
      times.holdfast.push(ours);
    }
    const [floor, ours] = [median(times.bare), median(times.holdfast)];
    const added = ours - floor;
    console.log(
      `bare ${floor.toFixed(1)} ms, holdfast run ${ours.toFixed(1)} ms (medians of ${rounds}), added ${added.toFixed(1)} ms`,
    );
    return added <= MAX_MS;
  } finally {
    await service.stop();
    await rm(folder, { recursive: true });
  }
}

/** Milliseconds until `date` reads the clock, which it does first. */
async function started(before: string[]): Promise<number> {
  const [command = '', ...args] = [...before, 'date', '+%s%N'];
  const startedAt = performance.timeOrigin + performance.now();
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const exited = new Promise((resolve) => child.once('exit', resolve));
  const startedMs = Number(await text(child.stdout)) / 1e6;
  if ((await exited) !== 0 || !startedMs) throw new Error(`${command} ended with ${child.exitCode}`);
  return startedMs - startedAt;
}

main().then(
  (passed) => {
    process.exitCode = passed ? 0 : 1;
  },
  (error: Error) => {
    console.error(`npm run verify -- cli-start: ${error.message}`);
    process.exitCode = 2;
  },
);
