import { spawn } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { readOptions } from '../../local/options.ts';
import { seededRandom } from '../../test/support/chance/seed.ts';
import { startStores } from '../histories/service.ts';
import { type Mutation, placeOfChange, readProduct, type ShownByHistory, type ShownByTest } from './mutation.ts';
import { MUTATIONS } from './mutations.ts';

const HELP = `npm run mutations: breaks a copy of the product on purpose, in one way after the other, and fails unless the history
with the seed that is listed for it shows that a promise is broken, or the test that is listed fails. The unbroken product must pass
the same history or test.

  --only TEXT   those alone whose name has it
  --by KIND     those alone that a history shows, or a test: history or test
  --some N      so many of these, drawn by --seed
  --seed N      what to draw them by, from 0 (1)
  --find        look for a seed that shows each one, instead of trying the one listed`;

/** What the histories and the tests need of the repository. */
const PARTS = [
  'client/src',
  'contract',
  'deployment',
  'functions',
  'infrastructure',
  'local',
  'shared',
  'test',
  'verification/histories',
  'package.json',
  'serverless.yml',
  'tsconfig.json',
  'vitest.config.ts',
];
const ROOT = resolve(import.meta.dirname, '../..');

/** How long to look for a seed. */
const FIND_SECONDS = 60;

async function main(): Promise<boolean> {
  const { values, number } = readOptions({
    only: { type: 'string', default: '' },
    by: { type: 'string' },
    some: { type: 'string' },
    seed: { type: 'string' },
    find: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h' },
  });
  if (values.help) {
    console.log(HELP);
    return true;
  }
  const { by } = values;
  if (by !== undefined && by !== 'history' && by !== 'test')
    throw new Error(`--by must be history or test, not '${by}'`);
  if (values.seed !== undefined && values.some === undefined) throw new Error('--seed draws what --some asks for');
  if (values.find && by === 'test') throw new Error('--find looks for seeds, and a test has none');
  const kind = by ?? (values.find ? 'history' : undefined);
  const chosen = MUTATIONS.filter(({ name }) => name.includes(values.only)).filter(
    (mutation) => kind === undefined || kind === kindOf(mutation),
  );
  if (chosen.length === 0)
    throw new Error(`no mutation has '${values.only}' in its name${kind ? ` and is shown by a ${kind}` : ''}`);
  const most = number('some', { least: 1, whole: true });
  const seed = number('seed', { least: 0, whole: true }) ?? 1;
  const tried = most === undefined ? chosen : drawn(chosen, { most, seed });
  const stores = await startStores();
  try {
    let survivors = 0;
    for (const mutation of tried) {
      const fault = await missed(mutation, values.find);
      if (fault) survivors += 1;
      console.log(
        `${fault ? `MISSED (${fault})` : 'caught'}: ${mutation.name}${values.find ? '' : ` (${shownBy(mutation)})`}`,
      );
    }
    console.log(`${tried.length - survivors} of ${tried.length} mutations caught`);
    return survivors === 0;
  } finally {
    await stores.stop();
  }
}

function drawn(mutations: Mutation[], { most, seed }: { most: number; seed: number }): Mutation[] {
  const random = seededRandom(seed);
  const lots = mutations.map((mutation) => ({ mutation, lot: random() })).toSorted((one, other) => one.lot - other.lot);
  return lots.slice(0, most).map(({ mutation }) => mutation);
}

const kindOf = (mutation: Mutation) => ('test' in mutation ? 'test' : 'history');

const shownBy = (mutation: Mutation) =>
  'test' in mutation ? `${mutation.test.file}: ${mutation.test.name}` : `seed ${mutation.seed}`;

/** Why a mutation was not caught; undefined where it was. */
async function missed(mutation: Mutation, find: boolean): Promise<string | undefined> {
  const copy = await mkdtemp(join(tmpdir(), 'holdfast-mutation-'));
  const mutate = () => apply(mutation, copy);
  try {
    for (const part of PARTS) await cp(join(ROOT, part), join(copy, part), { recursive: true });
    await symlink(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
    return await ('test' in mutation
      ? missedByTest(mutation, copy, mutate)
      : missedByHistory(mutation, copy, { mutate, find }));
  } finally {
    await rm(copy, { recursive: true, force: true });
  }
}

/** @returns why it cannot be applied */
async function apply({ changes }: Mutation, copy: string): Promise<string | undefined> {
  try {
    for (const change of changes) {
      const product = readProduct(copy);
      const path = placeOfChange(change, product);
      await writeFile(
        join(copy, path),
        String(product.get(path)).replace(change.search, () => change.replace),
      );
    }
  } catch (error) {
    return (error as Error).message;
  }
  return undefined;
}

interface How {
  mutate: () => Promise<string | undefined>;
  find: boolean;
}

async function missedByHistory(
  { promise, only, seed }: ShownByHistory,
  copy: string,
  { mutate, find }: How,
): Promise<string | undefined> {
  const where = ['--only', only, '--whole', '--seconds', String(FIND_SECONDS)];
  const whole = ['--seed', String(seed), '--histories', '1'];
  if (!find) {
    const control = await faults(copy, [...where, ...whole]);
    if (control.exitCode !== 0) return 'the unbroken product fails as well';
  }
  const obstacle = await mutate();
  if (obstacle) return obstacle;
  if (find) return search(copy, promise, where);
  const { exitCode, output } = await faults(copy, [...where, ...whole]);
  if (exitCode !== 1) return exitCode === 0 ? 'no promise broken' : output;
  return output.includes(`Broken: ${promise}`)
    ? undefined
    : `another promise is broken: ${output.match(/Broken: .*/g)}`;
}

async function missedByTest({ test }: ShownByTest, copy: string, mutate: How['mutate']): Promise<string | undefined> {
  const before = await verdictOf(test, copy);
  if (before !== 'passed') return `on the unbroken product the test ${before}`;
  const obstacle = await mutate();
  if (obstacle) return obstacle;
  const after = await verdictOf(test, copy);
  return after === 'failed' ? undefined : `the test ${after}`;
}

interface VitestReport {
  testResults: { assertionResults: { title: string; status: string }[] }[];
}

/** `passed`, `failed`, or why it is neither. */
async function verdictOf({ file, name }: ShownByTest['test'], copy: string): Promise<string> {
  const report = join(copy, 'report.json');
  const pattern = name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  const vitest = join(ROOT, 'node_modules/vitest/vitest.mjs');
  const args = ['run', file, '--project', 'product', '-t', pattern, '--reporter=json', `--outputFile=${report}`];
  await rm(report, { force: true });
  // Tests that go by chance always go the same way.
  const { output } = await execute(copy, [vitest, ...args], { SEED: '1' });
  const text = await readFile(report, 'utf8').catch(() => undefined);
  if (text === undefined) return `could not be run: ${output}`;
  const { testResults } = JSON.parse(text) as VitestReport;
  const found = testResults
    .flatMap(({ assertionResults }) => assertionResults)
    .filter(({ title }) => title.startsWith(name));
  if (found.length === 0) return 'is not there';
  return found.find(({ status }) => status !== 'passed')?.status ?? 'passed';
}

/** Prints the first seed that shows the promise broken. */
async function search(copy: string, promise: string, where: string[]): Promise<string | undefined> {
  const broken = new Set<string>();
  for (let seed = 1; broken.size < 10; ) {
    const { exitCode, output } = await faults(copy, [...where, '--seed', String(seed)]);
    if (exitCode !== 1) return `no seed found; others break ${[...broken]}`;
    const found = Number(/--seed (\d+) --histories/.exec(output)?.[1]);
    if (output.includes(`Broken: ${promise}`)) {
      console.log(`seed ${found}`);
      return undefined;
    }
    broken.add(`${found}: ${output.match(/Broken: .*/g)}`);
    seed = found + 1;
  }
  return `no seed found; others break ${[...broken].join('; ')}`;
}

const faults = (folder: string, args: string[]) => execute(folder, ['verification/histories/run.ts', ...args]);

function execute(
  folder: string,
  args: string[],
  more: Record<string, string> = {},
): Promise<{ exitCode: number | null; output: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, {
      cwd: folder,
      env: { ...process.env, ...more },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text) => {
        output += text;
      });
    child.once('error', reject);
    child.once('close', (exitCode) => resolve({ exitCode, output }));
  });
}

main().then(
  (passed) => process.exit(passed ? 0 : 1),
  (error: Error) => {
    console.error(`npm run mutations: ${error.message}`);
    process.exit(2);
  },
);
