import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { build } from 'rolldown';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { inputsOf } from '../../build/bundle.ts';
import { MAX_BYTES } from '../../clients/typescript/budget.ts';
import { freePort } from '../../local/ports.ts';
import manifest from '../../package.json' with { type: 'json' };
import { npmStart } from '../start/npm-start.ts';
import { startRegistry } from './support/registry.ts';
import { emptyFolder, run } from './support/run.ts';
import { toolIn } from './support/tools.ts';

interface Packed {
  name: string;
  filename: string;
  size: number;
  files: { path: string }[];
}

const { version } = manifest;
const COMMAND = `holdfast@${version}`;

/** The most time for a start from an empty folder and an empty cache, with the download. */
const MAX_MS = 30_000;
/** The most time with the cache of npm, on a machine that does nothing else. */
const MAX_WARM_MS = 5000;
const MAX_PACKED_BYTES = { 'holdfast-client': 400_000, holdfast: 180_000, 'holdfast-dev': 800_000 };
const FOLDERS: Record<string, string> = {
  'holdfast-client': 'clients/typescript',
  holdfast: 'cli',
  'holdfast-dev': 'local',
};
const CODE: Record<string, string[]> = {
  'holdfast-client': [
    'dist/index.js',
    'dist/node/index.js',
    'dist/index.d.ts',
    'dist/cjs/index.js',
    'dist/cjs/index.d.ts',
  ],
  holdfast: ['dist/holdfast.mjs'],
  'holdfast-dev': ['dist/dev.mjs'],
};
/** The package of another publisher that `holdfast-dev` needs here. */
const EMULATOR = './node_modules/@dynoxide/linux-x64';

let tarballs: string;
let packed: Packed[];
let registry: Awaited<ReturnType<typeof startRegistry>>;
let stack: Awaited<ReturnType<typeof npmStart>>;
let user: Awaited<ReturnType<typeof emptyFolder>>;

beforeAll(async () => {
  tarballs = await mkdtemp(join(tmpdir(), 'holdfast-tarballs-'));
  const pack = async (...what: string[]): Promise<Packed[]> => {
    const { stdout } = await run('npm', ['pack', ...what, '--json', '--pack-destination', tarballs]);
    return Object.values(JSON.parse(stdout));
  };
  const [own, emulator, ...started] = await Promise.all([
    pack('--workspaces'),
    pack(EMULATOR),
    startRegistry(),
    npmStart(),
  ]);
  [registry, stack] = started;
  packed = own;
  for (const { filename } of [...own, ...emulator]) await registry.publish(join(tarballs, filename));
  user = await emptyFolder(registry.url);
});
afterAll(async () => {
  await Promise.all([user.remove(), registry.stop(), stack.stop()]);
  await rm(tarballs, { recursive: true, force: true });
});

describe.each(Object.entries(MAX_PACKED_BYTES))('The package %s', (name, maxBytes) => {
  const own = () => packed.find((one) => one.name === name);
  const folder = FOLDERS[name] ?? '';

  it('the package has its code, its README and the licences, and no source map', () => {
    const files = own()?.files.map(({ path }) => path) ?? [];
    expect(files).toEqual(expect.arrayContaining([...(CODE[name] ?? []), 'README.md', 'LICENSE', 'dist/LICENSES.txt']));
    expect(files.filter((file) => file.endsWith('.map'))).toEqual([]);
  });

  it(`the package is packed in less than ${maxBytes / 1000} kB`, () => {
    expect(own()?.size).toBeGreaterThan(10_000);
    expect(own()?.size).toBeLessThan(maxBytes);
  });

  it('the package has a README without a link that npm could not follow', async () => {
    const text = await readFile(join(folder, 'README.md'), 'utf8');
    const targets = [...text.matchAll(/\]\(([^)]*)\)/g)].map(([, target]) => target);
    expect(targets.filter((target) => !target?.startsWith('https://'))).toEqual([]);
  });

  it('the package has no fault that publint finds', async () => {
    const { exitCode, output } = await run(toolIn('.bin/publint'), ['--strict'], { cwd: folder });
    expect(exitCode, output).toBe(0);
  });
});

it('the types of the client resolve in each kind of project', async () => {
  const args = ['--pack', '.', '--exclude-entrypoints', './package.json']; // this entry has no types
  const { exitCode, output } = await run(toolIn('.bin/attw'), args, { cwd: 'clients/typescript' });
  expect(exitCode, output).toBe(0);
});

it('programs that use the client in all ways compile', async () => {
  const { exitCode, output } = await run('npx', ['tsc', '-p', 'clients/typescript/check']);
  expect(exitCode, output).toBe(0);
});

it.each(['clients/typescript/README.md', 'docs/client.md'])(
  'the page %s names the sizes that the build of the client allows',
  async (file) => {
    const text = await readFile(file, 'utf8');
    for (const bytes of [MAX_BYTES.index, MAX_BYTES.all]) expect(text).toContain(`${bytes / 1000} kB`);
  },
);

describe('npx in an empty folder', () => {
  it('npx runs the command, and takes a first lease within 30 seconds', async () => {
    const startedAt = performance.now();
    const settings = { HOLDFAST_ENDPOINT: stack.url };
    const taken = await user.run('npx', ['--yes', COMMAND, 'run', 'first', '--', 'node', '-p', '1 + 1'], settings);
    const tookMs = Math.round(performance.now() - startedAt);
    expect(taken, taken.output).toMatchObject({ exitCode: 0, stdout: '2\n' });
    console.log(`npx took a first lease within ${tookMs} ms`);
    expect(tookMs).toBeLessThan(MAX_MS);
    const said = await user.run('npx', ['--yes', COMMAND, 'version'], settings);
    expect(said.stdout).toBe(`holdfast ${version}\ndeployment ${version} (${stack.url})\n`);
  });

  it('npx starts the service, and a job runs within 30 seconds', async () => {
    const other = await emptyFolder(registry.url);
    const port = await freePort();
    const settings = { HOLDFAST_ENDPOINT: `http://127.0.0.1:${port}` };
    const firstRun = async () => {
      const startedAt = performance.now();
      const dev = other.start('npx', ['--yes', COMMAND, 'dev', '--memory', '--port', `${port}`]);
      await dev.says('Ctrl-C stops it.');
      const ran = await other.run('npx', ['--yes', COMMAND, 'run', 'hello', '--', 'node', '-p', '1 + 1'], settings);
      const tookMs = Math.round(performance.now() - startedAt);
      expect(ran, ran.output).toMatchObject({ exitCode: 0, stdout: '2\n' });
      await dev.interrupt();
      await vi.waitFor(() => expect(fetch(settings.HOLDFAST_ENDPOINT)).rejects.toThrow(), 5000);
      return tookMs;
    };
    try {
      const [cold, warm] = [await firstRun(), await firstRun()];
      console.log(`npx started the service and ran a first job within ${cold} ms, and the next time within ${warm} ms`);
      expect(cold).toBeLessThan(MAX_MS);
      expect(warm).toBeLessThan(MAX_WARM_MS);
    } finally {
      await other.remove();
    }
  });

  it('npx finds the command by only its name', async () => {
    expect((await user.run('npx', ['--yes', 'holdfast', '--version'])).stdout).toBe(`${version}\n`);
  });
});

/** The compilers of the repository, because the registry only has the packages of Holdfast. */
const COMPILERS = { 7: 'node_modules/typescript', '5.9': 'clients/typescript/node_modules/typescript' };

const TSCONFIG = {
  compilerOptions: {
    ...{ target: 'es2022', module: 'nodenext', outDir: 'built', skipLibCheck: false },
    ...{ strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true },
    ...{ types: ['node'], typeRoots: [resolve('node_modules/@types')] },
  },
  include: ['*.ts'],
};

/** The functions that the examples of the README leave to the reader. */
const READERS = `declare function render(signal: AbortSignal): Promise<void>;
declare function backup(signal: AbortSignal): Promise<void>;
`;

const FAILS = `
import { Holdfast, type Lease } from 'holdfast-client';
const holdfast = new Holdfast({ endpoint: 'http://127.0.0.1:9', holder: 'x' });
export async function nightlyReport(): Promise<Lease> {
  return await holdfast.acquire('nightly', { timeoutMs: 0, signal: AbortSignal.timeout(60_000) });
}
await nightlyReport().catch((error: unknown) => console.log(error));
`;

describe('new projects', () => {
  let project: typeof user;
  beforeAll(async () => {
    project = await emptyFolder(registry.url);
    const write = (file: string, text: string) => writeFile(join(project.folder, file), text);
    const readme = await readFile('clients/typescript/README.md', 'utf8');
    const [first = '', ...others] = [...readme.matchAll(/^```ts\n(.*?)^```/gms)].map(([, code = '']) => code);
    await write('package.json', '{ "type": "module" }');
    await write('tsconfig.json', JSON.stringify(TSCONFIG));
    await write('first.ts', first.replace('http://127.0.0.1:3000', stack.url));
    await write('all.ts', READERS + [first, ...others].join('\n'));
    await write('fails.ts', FAILS);
    const { exitCode, output } = await project.run('npm', ['install', 'holdfast-client']);
    expect(exitCode, output).toBe(0);
  });
  afterAll(() => project.remove());

  it.each(Object.entries(COMPILERS))(
    'a new TypeScript project compiles under strict with TypeScript %s',
    async (prefix, folder) => {
      const tsc = resolve(folder, 'bin/tsc');
      const { exitCode, output } = await project.run(process.execPath, [tsc, '--version']);
      expect([exitCode, output]).toEqual([0, expect.stringContaining(`Version ${prefix}.`)]);
      expect(await project.run(process.execPath, [tsc])).toMatchObject({ exitCode: 0, output: '' });
    },
  );

  it('a new TypeScript project takes a lease by the example of the README', async () => {
    const ran = await project.run('node', ['built/first.js']);
    const [, fence] = /^my turn, with the fence (\d+)\n$/.exec(ran.output) ?? [];
    expect(Number(fence), ran.output).toBeGreaterThan(0);
    const settings = { HOLDFAST_ENDPOINT: stack.url };
    const next = await user.run(
      'npx',
      ['--yes', COMMAND, 'run', 'nightly-report', '--', 'node', '-p', 'process.env.HOLDFAST_FENCE'],
      settings,
    );
    expect(Number(next.stdout), next.output).toBeGreaterThan(Number(fence));
  });

  it("the stack of an error shows the client's function and its caller", async () => {
    const { output } = await project.run('node', ['built/fails.js']);
    expect(output).toMatch(
      /^HoldfastError: .*\n +at unreachable \(.*holdfast-client\/dist\/node\/index\.js:\d+:\d+\)$/m,
    );
    expect(output).toMatch(/^ +at async nightlyReport \(.*fails\.js:\d+:\d+\)$/m);
  });

  it.each([
    ['browser', 'dist/index.js'],
    ['node', 'dist/node/index.js'],
  ] as const)('a new TypeScript project bundles one copy of the client for %s', async (platform, file) => {
    const entries = ['holdfast-client', 'holdfast-client/lambda', 'holdfast-client/direct'];
    const input = join(project.folder, `${platform}.js`);
    await writeFile(input, entries.map((one) => `export * from '${one}';`).join('\n'));
    const external = /^(@aws-sdk\/|node:)/;
    const { output } = await build({ input, cwd: project.folder, platform, external, write: false });
    const mains = [...inputsOf(output).keys()].filter((input) => /dist\/(node\/)?index\.js$/.test(input));
    expect(mains.map((main) => relative(project.folder, main))).toEqual([`node_modules/holdfast-client/${file}`]);
  });
});
