import { spawn } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { readOptions } from '../../local/options.ts';
import { startStores } from '../../test/histories/service.ts';
import { MUTATIONS, type Mutation } from './mutations.ts';

const HELP = `npm run mutations: breaks a copy of the product on purpose, in one way after the other, and fails unless the history
with the seed that is listed for it shows that a promise is broken. The unbroken product must pass the same history.

  --only TEXT   those alone whose name has it
  --find        look for a seed that shows each one, instead of trying the one listed`;

/** What the histories need of the repository. */
const PARTS = [
  'functions',
  'infrastructure',
  'local',
  'shared',
  'test',
  'package.json',
  'serverless.yml',
  'tsconfig.json',
];
const ROOT = resolve(import.meta.dirname, '../..');

/** How long to look for a seed. */
const FIND_SECONDS = 60;

async function main(): Promise<boolean> {
  const { values } = readOptions({
    only: { type: 'string', default: '' },
    find: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h' },
  });
  if (values.help) {
    console.log(HELP);
    return true;
  }
  const chosen = MUTATIONS.filter(({ name }) => name.includes(values.only));
  if (chosen.length === 0) throw new Error(`no mutation has '${values.only}' in its name`);
  const stores = await startStores();
  try {
    let survivors = 0;
    for (const mutation of chosen) {
      const fault = await missed(mutation, values.find);
      if (fault) survivors += 1;
      console.log(
        `${fault ? `MISSED (${fault})` : 'caught'}: ${mutation.name}${values.find ? '' : ` (seed ${mutation.seed})`}`,
      );
    }
    console.log(`${chosen.length - survivors} of ${chosen.length} mutations caught`);
    return survivors === 0;
  } finally {
    await stores.stop();
  }
}

/** Why a mutation was not caught; undefined where it was. */
async function missed({ promise, changes, only, seed }: Mutation, find: boolean): Promise<string | undefined> {
  const copy = await mkdtemp(join(tmpdir(), 'holdfast-mutation-'));
  try {
    for (const part of PARTS) await cp(join(ROOT, part), join(copy, part), { recursive: true });
    await symlink(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
    const where = ['--only', only, '--whole', '--seconds', String(FIND_SECONDS)];
    const whole = ['--seed', String(seed), '--histories', '1'];
    if (!find) {
      const control = await faults(copy, [...where, ...whole]);
      if (control.exitCode !== 0) return 'the unbroken product fails as well';
    }
    for (const { file, search, replace } of changes) {
      const path = join(copy, file);
      const parts = (await readFile(path, 'utf8')).split(search);
      if (parts.length !== 2) return `${file} has ${parts.length - 1} times: ${search}`;
      await writeFile(path, parts.join(replace));
    }
    if (find) return await search(copy, promise, where);
    const { exitCode, output } = await faults(copy, [...where, ...whole]);
    if (exitCode !== 1) return exitCode === 0 ? 'no promise broken' : output;
    return output.includes(`Broken: ${promise}`)
      ? undefined
      : `another promise is broken: ${output.match(/Broken: .*/g)}`;
  } finally {
    await rm(copy, { recursive: true, force: true });
  }
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

function faults(folder: string, args: string[]): Promise<{ exitCode: number | null; output: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ['test/histories/run.ts', ...args], {
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
    console.error(`npm run mutations: ${error.message}`);
    process.exit(2);
  },
);
