import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { readOptions } from '../../local/options.ts';

const HELP = `npm run verify -- clients: generates clients from contract/openapi.json, and compiles them.

  --only NAME   only openapi-typescript, openapi-python-client or oapi-codegen; may be given again

Each tool is installed into ~/.cache/holdfast once. One that cannot be installed here is skipped, and says so. It fails, and
exits with 1, where a tool refuses or warns of the document, or where its client does not compile.`;

const DOCUMENT = join(import.meta.dirname, '../../contract/openapi.json');
const CACHE = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'holdfast');

interface Tool {
  /** Fails if the tool is not available on this machine. */
  install(): Promise<unknown>;
  /** Fails if the tool refuses the document, or if its client does not compile. */
  check(folder: string): Promise<unknown>;
}

const run = (command: string, args: string[], options: { cwd?: string; env?: NodeJS.ProcessEnv } = {}) =>
  promisify(execFile)(command, args, { maxBuffer: 2 ** 26, ...options });

const TYPESCRIPT = { tool: join(CACHE, 'typescript'), packages: ['openapi-typescript@7.13.0', 'typescript@5.9.3'] };
const PYTHON = { tool: join(CACHE, 'python'), packages: ['openapi-python-client==0.29.1'] };
const GO = { tool: join(CACHE, 'go'), package: 'github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2' };

/** Code that the types must accept, and code that they must refuse. */
const USE = `import type { components, operations } from './api';
type Schemas = components['schemas'];
const request: Schemas['AcquireRequest'] = { key: 'k', holder: 'h', ttlSeconds: 60, waitSeconds: 0, sleepMs: 0, fair: true };
type Failure = operations['acquire']['responses'][409]['content']['application/problem+json'];
export const holder = (problem: Failure): string | null => (problem.code === 'LeaseHeld' ? problem.holder : null);
export const why = (problem: Schemas['LeaseHeld'] | Schemas['LeaseLost']): string =>
  problem.code === 'LeaseLost' ? problem.reason : String(problem.retryAfterMs);
// @ts-expect-error a field that no request has
export const wrong: Schemas['ReleaseRequest'] = { key: request.key, leaseId: 'l', surplus: 1 };
`;

const TOOLS: Record<string, Tool> = {
  'openapi-typescript': {
    install: () =>
      run('npm', ['install', '--prefix', TYPESCRIPT.tool, '--no-audit', '--no-fund', ...TYPESCRIPT.packages]),
    check: async (folder) => {
      const bin = (name: string) => join(TYPESCRIPT.tool, 'node_modules/.bin', name);
      await run(bin('openapi-typescript'), [DOCUMENT, '-o', join(folder, 'api.d.ts')]);
      await writeFile(join(folder, 'use.ts'), USE);
      await run(bin('tsc'), ['--noEmit', '--strict', 'use.ts'], { cwd: folder });
    },
  },
  'openapi-python-client': {
    install: async () => {
      await run('python3', ['-m', 'venv', PYTHON.tool]);
      await run(join(PYTHON.tool, 'bin/pip'), ['install', '-q', ...PYTHON.packages]);
    },
    check: async (folder) => {
      // The document has nothing to do with formatters of Python.
      await writeFile(join(folder, 'config.yml'), 'post_hooks: []\n');
      const options = [
        '--path',
        DOCUMENT,
        '--output-path',
        join(folder, 'client'),
        '--config',
        join(folder, 'config.yml'),
      ];
      await run(join(PYTHON.tool, 'bin/openapi-python-client'), ['generate', '--fail-on-warning', ...options]);
      const use = 'from holdfast_client.models import AcquireRequest, Grant, LeaseHeld, Problem';
      await run(join(PYTHON.tool, 'bin/python'), ['-c', use], { cwd: join(folder, 'client') });
    },
  },
  'oapi-codegen': {
    install: () => run('go', ['install', GO.package], { env: { ...process.env, GOBIN: GO.tool } }),
    check: async (folder) => {
      const options = ['-generate', 'types,client', '-package', 'holdfast', '-o', join(folder, 'api.go')];
      const { stderr } = await run(join(GO.tool, 'oapi-codegen'), [...options, DOCUMENT]);
      if (stderr.trim() !== '') throw new Error(stderr);
      await run('go', ['mod', 'init', 'holdfast'], { cwd: folder });
      await run('go', ['mod', 'tidy'], { cwd: folder });
      await run('go', ['vet', './...'], { cwd: folder });
    },
  },
};

async function main(): Promise<boolean> {
  const { values } = readOptions({
    only: { type: 'string', multiple: true, default: Object.keys(TOOLS) },
    help: { type: 'boolean', short: 'h' },
  });
  if (values.help) {
    console.log(HELP);
    return true;
  }
  let passed = true;
  for (const name of values.only) {
    const tool = TOOLS[name];
    if (!tool) throw new Error(`--only must be one of ${Object.keys(TOOLS).join(', ')}, not '${name}'`);
    passed = (await tried(name, tool)) && passed;
  }
  return passed;
}

async function tried(name: string, tool: Tool): Promise<boolean> {
  const mark = join(CACHE, `${name}.installed`);
  try {
    await mkdir(CACHE, { recursive: true });
    const key = JSON.stringify([TYPESCRIPT.packages, PYTHON.packages, GO.package]);
    if ((await readFile(mark, 'utf8').catch(() => '')) !== key) {
      await tool.install();
      await writeFile(mark, key);
    }
  } catch (error) {
    console.log(`${name}: skipped, for it cannot be installed here (${firstLine(error)})`);
    return true;
  }
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-client-'));
  try {
    await tool.check(folder);
    console.log(`${name}: accepted, ${(await readdir(folder, { recursive: true })).length} files`);
    return true;
  } catch (error) {
    const { stdout = '', stderr = '', message } = error as Error & { stdout?: string; stderr?: string };
    console.error(`${name}: refused\n${stdout}${stderr || message}`);
    return false;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const firstLine = (error: unknown) => (error as Error).message.split('\n', 1)[0];

main().then(
  (passed) => process.exit(passed ? 0 : 1),
  (error: Error) => {
    console.error(`npm run verify -- clients: ${error.message}`);
    process.exit(2);
  },
);
