import { execFileSync, spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { readOptions } from '../../local/options.ts';
import { entered, nextSeed, type Played, readLedger, summary, writeLedger } from './ledger.ts';

const HELP = `npm run verify -- campaign: plays histories under faults with new seeds, one process for each core, and enters them in a
ledger. The next run goes on where the last one stopped. The first run begins at a random seed.

  --minutes N     how long (10)
  --histories N   stop after N histories
  --only NAME     only one capability, as npm run verify -- faults names them; may be given again
  --processes N   how many at once (as many as there are cores)
  --ledger FILE   the ledger (.cache/campaign.json)
  --summary       print what was played, and play nothing

It goes on after a broken promise, and then exits with 1.`;

const ROOT = resolve(import.meta.dirname, '../..');

/** How many histories a process plays before they are entered into the ledger: about a minute's worth, which is the most that an interrupted run loses. */
const BLOCK = 250;

async function main(): Promise<boolean> {
  const { values, number } = readOptions({
    minutes: { type: 'string', default: '10' },
    processes: { type: 'string' },
    histories: { type: 'string' },
    only: { type: 'string', multiple: true, default: [] },
    ledger: { type: 'string', default: join(ROOT, '.cache/campaign.json') },
    summary: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  });
  if (values.help) {
    console.log(HELP);
    return true;
  }
  let ledger = await readLedger(values.ledger);
  if (values.summary) {
    console.log(summary(ledger));
    return true;
  }
  const endsAt = performance.now() + (number('minutes', { min: 0.1 }) ?? 10) * 60_000;
  const processes = number('processes', { min: 1, whole: true }) ?? availableParallelism();
  const commit = presentCommit();
  const { only } = values;
  let next = nextSeed(ledger);
  console.log(`From seed ${next}`);
  const last = next + (number('histories', { min: 1, whole: true }) ?? Number.POSITIVE_INFINITY);
  let broken = 0;
  /** Entries are made one after the other, because all processes end at once when the time is over. */
  let saved = Promise.resolve();
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-campaign-'));
  const enter = async (played: Played) => {
    ledger = entered(ledger, commit, played);
    if (played.failed) {
      broken += 1;
      console.log(`seed ${played.failed.seed} breaks: ${played.failed.promises.join(', ')}`);
    }
    saved = saved.then(() => writeLedger(values.ledger, ledger));
    await saved;
  };
  /** A process stops at a broken promise. It then plays the seeds that it has left out. */
  const work = async (index: number) => {
    while (performance.now() < endsAt && next < last) {
      const seed = next;
      const end = Math.min(seed + BLOCK, last);
      next = end;
      for (let from = seed; from < end; ) {
        const seconds = Math.max(1, Math.ceil((endsAt - performance.now()) / 1000));
        const played = await play({ from, max: end - from, seconds, only }, join(folder, `${index}.json`));
        await enter(played);
        if (!played.failed) break;
        from += played.histories;
      }
    }
  };
  try {
    await Promise.all(Array.from({ length: processes }, (_, index) => work(index)));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  console.log(summary(ledger.filter((one) => one.commit === commit)));
  return broken === 0;
}

/** The commit whose code is played, with a remark if there are uncommitted changes. */
function presentCommit(): string {
  const git = (...args: string[]) => execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' }).trim();
  const isChanged = git('status', '--porcelain') !== '';
  return `${git('rev-parse', '--short=12', 'HEAD')}${isChanged ? ' with changes' : ''}`;
}

interface Block {
  from: number;
  max: number;
  seconds: number;
  only: string[];
}

async function play({ from, max, seconds, only }: Block, report: string): Promise<Played> {
  const options = { seed: from, histories: max, seconds };
  const args = [...Object.entries(options), ...only.map((name) => ['only', name] as const)].flatMap(([name, value]) => [
    `--${name}`,
    String(value),
  ]);
  const child = spawn(process.execPath, ['verification/histories/run.ts', ...args, '--whole', '--report', report], {
    cwd: ROOT,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text) => {
    errors += text;
  });
  const exitCode = await new Promise((resolve, reject) => child.once('error', reject).once('close', resolve));
  if (exitCode !== 0 && exitCode !== 1) throw new Error(`the histories from seed ${from} on could not run: ${errors}`);
  return JSON.parse(await readFile(report, 'utf8')) as Played;
}

main().then(
  (passed) => process.exit(passed ? 0 : 1),
  (error: Error) => {
    console.error(`npm run verify -- campaign: ${error.message}`);
    process.exit(2);
  },
);
