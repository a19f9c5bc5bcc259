import { spawn } from 'node:child_process';
import { cp, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { readOptions } from '../../local/options.ts';
import { seededRandom } from '../../test/support/chance/seed.ts';
import { startStores } from '../histories/service.ts';
import { type Mutation, placeOfChange, readProduct } from './mutation.ts';
import { MUTATIONS } from './mutations.ts';

const HELP = `npm run verify -- mutations: breaks a copy of the product on purpose, in one way after the other, and fails unless a history shows
within five minutes that the promise is broken.

  --only TEXT   only those whose name has TEXT
  --some N      only N of these, drawn by --seed
  --seed N      what to draw them by, and the first history, from 0 (1)`;

/** What the histories need of the repository. */
const PARTS = [
  'clients/typescript/src',
  'contract',
  'deployment',
  'functions',
  'infrastructure',
  'local',
  'shared',
  'test/support',
  'verification/histories',
  'package.json',
  'serverless.yml',
  'tsconfig.json',
];
const ROOT = resolve(import.meta.dirname, '../..');

/** How long histories may take to show a break. Most show it in seconds. */
const MAX_SECONDS = 300;

async function main(): Promise<boolean> {
  const { values, number } = readOptions({
    only: { type: 'string', default: '' },
    some: { type: 'string' },
    seed: { type: 'string' },
    help: { type: 'boolean', short: 'h' },
  });
  if (values.help) {
    console.log(HELP);
    return true;
  }
  const chosen = MUTATIONS.filter(({ name }) => name.includes(values.only));
  if (chosen.length === 0) throw new Error(`no mutation has '${values.only}' in its name`);
  const seed = number('seed', { min: 0, whole: true }) ?? 1;
  const max = number('some', { min: 1, whole: true }) ?? chosen.length;
  const tried = drawn(chosen, { max, seed });
  const stores = await startStores();
  try {
    let survivors = 0;
    for (const mutation of tried) {
      const { seed: shownBy, fault } = await tryOut(mutation, seed);
      if (fault !== undefined) survivors += 1;
      console.log(
        fault === undefined ? `caught by history ${shownBy}: ${mutation.name}` : `MISSED (${fault}): ${mutation.name}`,
      );
    }
    console.log(`${tried.length - survivors} of ${tried.length} mutations caught`);
    return survivors === 0;
  } finally {
    await stores.stop();
  }
}

function drawn(mutations: Mutation[], { max, seed }: { max: number; seed: number }): Mutation[] {
  const random = seededRandom(seed);
  const lots = mutations.map((mutation) => ({ mutation, lot: random() })).toSorted((one, other) => one.lot - other.lot);
  return lots.slice(0, max).map(({ mutation }) => mutation);
}

/** The history that showed the break, or why none did. */
type Outcome = { seed: number; fault?: undefined } | { seed?: undefined; fault: string };

async function tryOut(mutation: Mutation, from: number): Promise<Outcome> {
  const copy = await mkdtemp(join(tmpdir(), 'holdfast-mutation-'));
  try {
    for (const part of PARTS) await cp(join(ROOT, part), join(copy, part), { recursive: true });
    await symlink(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
    await apply(mutation, copy);
    return await search(copy, mutation, from);
  } finally {
    await rm(copy, { recursive: true, force: true });
  }
}

/** @throws Error if the product does not have the text of a change exactly once */
async function apply({ changes }: Mutation, copy: string): Promise<void> {
  for (const change of changes) {
    const product = readProduct(copy);
    const path = placeOfChange(change, product);
    await writeFile(
      join(copy, path),
      String(product.get(path)).replace(change.search, () => change.replace),
    );
  }
}

/** Plays histories until one breaks the promise. A mutation may break other promises too, in earlier histories. */
async function search(copy: string, { promise, only }: Mutation, from: number): Promise<Outcome> {
  const others = new Set<string>();
  const endsAt = performance.now() + MAX_SECONDS * 1000;
  for (let seed = from; performance.now() < endsAt; ) {
    const seconds = String(Math.max(1, Math.ceil((endsAt - performance.now()) / 1000)));
    const args = ['--only', only, '--whole', '--seconds', seconds, '--seed', String(seed)];
    const { exitCode, output } = await faults(copy, args);
    const broken: string[] = output.match(/Broken: .*/g) ?? [];
    if (exitCode !== 1) return { fault: exitCode === 0 ? listOf(others) : output };
    const found = Number(/--seed (\d+) --histories/.exec(output)?.[1]);
    if (broken.includes(`Broken: ${promise}`)) return { seed: found };
    for (const one of broken) others.add(one);
    seed = found + 1;
  }
  return { fault: listOf(others) };
}

const listOf = (others: ReadonlySet<string>): string =>
  others.size === 0 ? 'no promise broken' : `other promises are broken: ${[...others].join('; ')}`;

function faults(folder: string, args: string[]): Promise<{ exitCode: number | null; output: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ['verification/histories/run.ts', ...args], {
      cwd: folder,
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
    console.error(`npm run verify -- mutations: ${error.message}`);
    process.exit(2);
  },
);
