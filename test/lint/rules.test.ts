import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { expect, it } from 'vitest';
import { fragmentsIn, HAS_TITLES, longTitlesIn } from '../../lint/prose/titles.ts';
import lock from '../../package-lock.json' with { type: 'json' };

const CYCLE = 'lint/suspicious/noImportCycles';
const IMPORT = 'lint/style/noRestrictedImports';
const PARAMETERS = 'lint/complexity/useMaxParams';
const PLUGIN = 'plugin';

const parameters = (count: number) =>
  `export const f = (${Array.from({ length: count }, (_, at) => `p${at}: number`).join()}) => [${Array.from({ length: count }, (_, at) => `p${at}`)}];`;

/** Files that break a rule of the house, with how often each rule is broken; and files that only come close. */
const FILES: [path: string, source: string, broken?: Record<string, number>][] = [
  ['shared/locks/a.ts', "import '../commits/b.ts';", { [IMPORT]: 1 }],
  ['shared/locks/line/wait.ts', "import '../../lambda/stored-names.ts';", { [IMPORT]: 1 }],
  ['shared/locks/b.ts', "import '../lambda/b.ts';\nimport '../commits/b.ts';", { [IMPORT]: 2 }],
  ['functions/leases/a.ts', "import '../../shared/locks/b.ts';"],
  ['shared/commits/a.ts', "export * from '../locks/part/b.ts';", { [IMPORT]: 1 }],
  ['shared/nameservice/a.ts', "import type { B } from '../expiry/b.ts'; export type A = B;", { [IMPORT]: 1 }],
  ['shared/nameservice/c.ts', "import type { B } from '../expiry/sources/b.ts'; export type A = B;"],
  ['shared/expiry/a.ts', "export const a = () => import('../locks/expired.ts');", { [IMPORT]: 1 }],
  ['shared/locks/part/a.ts', "import '../../expiry/b.ts';", { [IMPORT]: 1 }],
  ['shared/lambda/a.ts', "import '../locks/b.ts';", { [IMPORT]: 1 }],
  ['shared/a.ts', "import './locks/b.ts';", { [IMPORT]: 1 }],
  ['shared/rates/a.ts', "import '../locks/b.ts';\nimport '../commits/record.ts';", { [IMPORT]: 1 }],
  ['functions/expiry/a.ts', "import '../../shared/expiry/b.ts';\nimport '../../shared/locks/b.ts';"],

  ['shared/locks/local.ts', "import '../../local/b.ts';", { [PLUGIN]: 1 }],
  ['functions/leases/test.ts', "export * from '../../test/support/b.ts';", { [PLUGIN]: 1 }],
  ['shared/locks/f.ts', "import '../../functions/leases/b.ts';", { [PLUGIN]: 1 }],
  ['shared/bench.ts', "import type { B } from '../bench/b.ts'; export type A = B;", { [PLUGIN]: 1 }],
  ['shared/build.ts', "export const a = () => import('../build/b.ts');", { [PLUGIN]: 1 }],
  ['shared/aws/verification.ts', "import '../../verification/b.ts';", { [PLUGIN]: 1 }],
  ['functions/commits/contract.ts', "import '../../contract/b.ts';", { [PLUGIN]: 1 }],
  ['infrastructure/local.ts', "import '../local/b.ts';", { [PLUGIN]: 1 }],
  ['local/a.ts', "import '../test/b.ts';"],

  ['shared/locks/time.ts', 'export const a = [Date.now(), new Date(), Date(), performance.now()];', { [PLUGIN]: 4 }],
  ['functions/leases/time.ts', 'export const now = Date.now;', { [PLUGIN]: 1 }],
  ['shared/locks/date.ts', 'export const now = new Date;', { [PLUGIN]: 1 }],
  ['shared/aws/time.ts', 'export const iso = (ms: number) => new Date(ms).toISOString();'],
  ['shared/surroundings/clock.ts', 'export const now = Date.now;'],
  ['shared/locks/chance.ts', 'export const a = [Math.random(), crypto.randomUUID()];', { [PLUGIN]: 2 }],
  ['shared/commits/chance.ts', "import { randomUUID as id } from 'node:crypto';\nexport { id };", { [PLUGIN]: 1 }],
  ['shared/surroundings/ids.ts', 'export const ids = { random: Math.random };'],
  ['local/chance.ts', 'export const id = crypto.randomUUID();'],

  ['shared/locks/chicken.ts', "import { egg } from './egg.ts';\nexport const chicken = egg;", { [CYCLE]: 1 }],
  ['shared/locks/egg.ts', "import { chicken } from './chicken.ts';\nexport const egg = () => chicken;", { [CYCLE]: 1 }],
  ['local/one.ts', "import type { Two } from './two.ts';\nexport type One = Two[];", { [CYCLE]: 1 }],
  ['local/two.ts', "import type { One } from './one.ts';\nexport type Two = One[] | 0;", { [CYCLE]: 1 }],

  ['shared/three.ts', parameters(3)],
  ['shared/four.ts', parameters(4), { [PARAMETERS]: 1 }],
  ['functions/leases/four.ts', parameters(4), { [PARAMETERS]: 1 }],
  ['clients/typescript/src/four.ts', parameters(4)],
  ['clients/typescript/src/five.ts', parameters(5), { [PARAMETERS]: 1 }],
  ['bench/four.ts', parameters(4), { [PARAMETERS]: 1 }],
];

it("npm run lint fails on each rule's violation, and not on close cases", async () => {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-lint-'));
  try {
    for (const part of ['biome.json', 'lint', '.gitignore']) await cp(part, join(folder, part), { recursive: true });
    for (const [path, source] of FILES) {
      await mkdir(dirname(join(folder, path)), { recursive: true });
      await writeFile(join(folder, path), `${source.trimEnd()}\n`);
    }
    const { code, found } = await lint(folder);
    expect(code).toBe(1);
    expect(found).toEqual(Object.fromEntries(FILES.flatMap(([path, , broken]) => (broken ? [[path, broken]] : []))));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

it('npm run lint fails on a module with too many lines of any kind', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-lint-'));
  const run = runIn(folder);
  const write = async (path: string, lines: number) => {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), `// one\n\n${'export {};\n'.repeat(lines - 2)}`);
  };
  try {
    await run('git', ['init']);
    await write('shared/a.ts', 400);
    await write('test/a.test.ts', 650);
    expect(await run(process.execPath, [resolve('lint/lines.ts')])).toMatchObject({ code: 0 });
    await write('shared/b.ts', 401);
    await write('test/b.test.ts', 651);
    await write('clients/typescript/src/testing.ts', 401);
    await write('local/test/c.ts', 401);
    expect(await run(process.execPath, [resolve('lint/lines.ts')])).toEqual({
      code: 1,
      stderr:
        'clients/typescript/src/testing.ts has 401 lines. It may have 400.\n' +
        'local/test/c.ts has 401 lines. It may have 400.\n' +
        'shared/b.ts has 401 lines. It may have 400.\n' +
        'test/b.test.ts has 651 lines. It may have 650.\n',
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

it('npm run lint fails on a name with two meanings and a deep folder', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-lint-'));
  const run = runIn(folder);
  const write = async (path: string, code = 'export {};\n') => {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), code);
  };
  const NAMES = [resolve('lint/names.ts')];
  try {
    await run('git', ['init']);
    await cp('docs/glossary.md', join(folder, 'docs/glossary.md'), { recursive: true });
    await write('shared/locks/calls/read.ts', 'export const reader = 1;\ntype Shown = 1;\nconst [A] = [1];\n');
    await write('shared/commits/read.ts', 'export const reader = 2;\n');
    await write(
      'shared/locks/line/next.ts',
      'export const drawn = () => {\n  const reader = 1;\n  return reader;\n};\n',
    );
    await write('functions/leases/next.ts', 'export const drawn = 1;\nconst backup = 1;\n');
    await write('local/events.ts', 'export const delivery = 1;\n');
    await write('clients/typescript/src/contract.ts', 'export const told = 1;\n');
    await write('shared/rates/gone.ts', 'export const reader = 1;\n');
    await run('git', ['add', 'shared/rates/gone.ts']);
    await rm(join(folder, 'shared/rates/gone.ts'));
    await write('test/a.test.ts', "it('a call is not repeated', () => answered('a task was told'));\n");
    expect(await run(process.execPath, NAMES)).toEqual({ code: 0, stderr: '' });
    await write('shared/commits/write.ts', 'async function reader() {}\n');
    await write('shared/locks/record/read.ts', 'interface Shown {}\nabstract class giveBack {}\nconst { A } = {};\n');
    await write(
      'shared/locks/line/keys/count.ts',
      "const text = ['a task was told', `a task hears`];\nconst delivery = 1;\n",
    );
    await write('cli/src/give-back.ts');
    await write('test/a.test.ts', "it('a task hears of its grant', () => told('a task hears'));\n");
    await write('verification/models/a.ts', 'export const state = { isTold: true, of: class { #hears = 1; } };\n');
    await write('bench/looks.worker.ts', 'export const place = 1;\n');
    await write(
      'clients/python/src/holdfast/a.py',
      'def hears(row: str, *wakes_told: str) -> None:\n    self.is_told = row\n',
    );
    expect(await run(process.execPath, NAMES)).toEqual({
      code: 1,
      stderr: [
        'shared/locks/record/read.ts has the name read.ts of shared/locks/calls/read.ts, and means something else.',
        'shared/commits/write.ts has the name reader of shared/commits/read.ts, and means something else.',
        'shared/locks/calls/read.ts has the name reader of shared/commits/write.ts, and means something else.',
        'shared/locks/record/read.ts has the name Shown of shared/locks/calls/read.ts, and means something else.',
        'shared/locks/record/read.ts has the name A of shared/locks/calls/read.ts, and means something else.',
        'shared/locks/line/keys/count.ts is 3 folders deep. It may be 2.',
        'bench/looks.worker.ts: the file name says looks: write poll, read, check; look is only the question about an execution',
        'cli/src/give-back.ts: the file name says give back: write give up (a grant); release is the call of the API',
        'clients/python/src/holdfast/a.py: the name hears says hears: write notify, notified, unnotified',
        'clients/python/src/holdfast/a.py: the name wakes_told says told: write notify, notified, unnotified',
        'clients/python/src/holdfast/a.py: the name is_told says told: write notify, notified, unnotified',
        "shared/locks/line/keys/count.ts: the text 'a task was told' says told: write notify, notified, unnotified",
        'shared/locks/line/keys/count.ts: the text `a task hears` says hears: write notify, notified, unnotified',
        'shared/locks/line/keys/count.ts: the name delivery says delivery: write notify, notified, unnotified',
        'shared/locks/record/read.ts: the name giveBack says give back: write give up (a grant); release is the call of the API',
        "test/a.test.ts: the title 'a task hears of its grant' says hears: write notify, notified, unnotified",
        'test/a.test.ts: the name told says told: write notify, notified, unnotified',
        'verification/models/a.ts: the name isTold says told: write notify, notified, unnotified',
        'verification/models/a.ts: the name #hears says hears: write notify, notified, unnotified',
        '',
      ].join('\n'),
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

it('npm run lint names the line of a word that this project writes otherwise', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-lint-'));
  try {
    const file = join(folder, 'a.ts');
    const word = 'anew';
    await writeFile(file, `export const a = [\n  1,\n];\n\n/** Asks ${word}. */\nexport const b = \`asks ${word}\`;\n`);
    const { code, stderr } = await runIn('.')(process.execPath, ['lint/prose/check.ts', file]);
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/a\.ts:5 says anew: write again[\s\S]*a\.ts:6 says anew/),
    ]);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

it('npm run lint names the line of a doc comment that directly follows another one', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-lint-'));
  try {
    const file = join(folder, 'a.ts');
    const apart = '/** The file. */\n\n/** One. */\nexport const a = 1;\n\n/** Two. */\n// why\nexport const b = 2;\n';
    await writeFile(file, apart);
    expect(await runIn('.')(process.execPath, ['lint/prose/check.ts', file])).toEqual({ code: 0, stderr: '' });
    await writeFile(file, `${apart}\n/** Three. */\n/** Three. */\nexport const c = 3;\n`);
    const { code, stderr } = await runIn('.')(process.execPath, ['lint/prose/check.ts', file]);
    expect([code, stderr]).toEqual([1, expect.stringMatching(/a\.ts:11 has a doc comment directly after another one/)]);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

const runIn = (folder: string) => (command: string, args: string[]) =>
  new Promise<{ code: unknown; stderr: string }>((answer) =>
    execFile(command, args, { cwd: folder }, (error, _, stderr) => answer({ code: error?.code ?? 0, stderr })),
  );

/** How often each file breaks each rule at the level of an error. */
async function lint(folder: string): Promise<{ code: unknown; found: Record<string, Record<string, number>> }> {
  const biome = resolve('node_modules/.bin/biome');
  const { code, stdout } = await new Promise<{ code: unknown; stdout: string }>((answer) =>
    execFile(biome, ['lint', '--reporter=json', '--max-diagnostics=none', '.'], { cwd: folder }, (error, stdout) =>
      answer({ code: error?.code, stdout }),
    ),
  );
  const found: Record<string, Record<string, number>> = {};
  for (const { category, severity, location } of JSON.parse(stdout).diagnostics) {
    if (severity !== 'error') continue;
    found[location.path] ??= {};
    const rules = found[location.path] ?? {};
    rules[category] = (rules[category] ?? 0) + 1;
  }
  return { code, found };
}

it.each([
  ["it('is refused', async () => {", ['is refused']],
  ["it.each([1])(\n  'of %i callers, none waits', () => {", ['of %i callers, none waits']],
  ["it.each(WAYS)('%s', () => {", ['%s']],
  ["it('keeps the lease', () => {", ['keeps the lease']],
  ["it('a call keeps the lease', () => {", []],
  ["it('leases of two holders are refused', () => {\n  text.split('is', 2);", []],
])('the lint finds each title of a test that lacks its subject: %s', (code, titles) => {
  expect(fragmentsIn(code).map(({ title }) => title)).toEqual(titles);
});

const FOURTEEN = 'a break names when its holder must have stopped and what it did last';

it.each([
  [`it('${FOURTEEN}', () => {`, []],
  [`it('${FOURTEEN} then', () => {`, [`${FOURTEEN} then`]],
  [`it.each([1])(\n  '${FOURTEEN} %i', () => {`, [`${FOURTEEN} %i`]],
  [`it(\`a call waits for \${MOST / 1000} s\`, () => {`, []],
  [`it(\`\${MOST - LEAST + 1} ${FOURTEEN.slice(2)}\`, () => {`, []],
])('the lint finds each title of more than fourteen words: %s', (code, titles) => {
  expect(longTitlesIn(code).map(({ title }) => title)).toEqual(titles);
});

it('the lint reads the titles of tests, and of the modules that tests share', () => {
  const files = ['test/leases/acquire.test.ts', 'test/line/hand-offs.ts', 'verification/packages/packages.test.ts'];
  expect([...files, 'shared/locks/line/wait.ts', 'docs/permits.md'].filter((file) => HAS_TITLES.test(file))).toEqual(
    files,
  );
});

interface Entry {
  optionalDependencies?: Record<string, string>;
  libc?: string[];
}

const entries = lock.packages as Record<string, Entry>;

/** The places of a package that a package at a path may load: in its own folder, and in each folder around it. */
const placesOf = (name: string, path: string): string[] => [
  `node_modules/${name}`,
  ...[...`${path && `${path}/`}node_modules/`.matchAll(/node_modules\//g)].map(
    ({ index }) => `${path.slice(0, index)}node_modules/${name}`,
  ),
];

it('the lock file has each optional package of every platform', () => {
  const missing = Object.entries(entries).flatMap(([path, { optionalDependencies = {} }]) =>
    Object.keys(optionalDependencies)
      .filter((name) => !placesOf(name, path).some((place) => entries[place]))
      .map((name) => `${name} of ${path}`),
  );
  expect(missing).toEqual([]);
});

it('the lock file does not have the field libc, because npm versions disagree', () => {
  expect(Object.keys(entries).filter((path) => entries[path]?.libc)).toEqual([]);
});
