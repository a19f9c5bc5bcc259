import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { npmStart } from '../start/npm-start.ts';
import { PATH, run } from './support/run.ts';

const SOURCE = 'clients/python';
const { version } = manifest;

/** The most time from an empty virtual environment to the end of the first lease. */
const MAX_MS = 20_000;

const NEW_ENOUGH = 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))';
/** The mypy that `.ci/run` installs, if there is a registry. */
const MYPY = resolve('.venv/bin/mypy');
const hasMypy = existsSync(MYPY);

const folder = await mkdtemp(join(tmpdir(), 'holdfast-python-'));
const inFolder = (name: string) => join(folder, name);
// The variables of pip and uv stay, because they name the registry.
const env = { ...process.env, PATH, PYTHONPATH: '' };
const python = (venv: string) => inFolder(`${venv}/bin/python`);

/** @throws Error with what the program said, if it fails */
async function done(command: string, args: string[], more: Record<string, string> = {}): Promise<string> {
  const { exitCode, stdout, output } = await run(command, args, { cwd: folder, env: { ...env, ...more } });
  if (exitCode !== 0) throw new Error(`${command} ${args.join(' ')}: ${output}`);
  return stdout;
}

/** The uv that the workflow of a release names. @returns false without Python, or without its registry */
async function hasUv(): Promise<boolean> {
  const [, uv = ''] = /pipx run (uv==\S+) build/.exec(await readFile('.github/workflows/release.yml', 'utf8')) ?? [];
  const isThere = await run('python3', ['-c', NEW_ENOUGH]).catch(() => undefined);
  if (isThere?.exitCode !== 0) return false;
  await done('python3', ['-m', 'venv', inFolder('tools')]);
  return (await run(python('tools'), ['-m', 'pip', 'install', '-q', uv])).exitCode === 0;
}

const canBuild = await hasUv();
if (!canBuild) console.log('skipped: no Python 3.10, or no registry for it: the Python package is not built');

/** A copy of the files that git has, without what a build or a test has left. */
async function cleanCopy(): Promise<string> {
  const { stdout } = await run('git', ['ls-files', '--cached', '--others', '--exclude-standard', SOURCE]);
  for (const file of stdout.trim().split('\n')) {
    const target = inFolder(file);
    await mkdir(dirname(target), { recursive: true });
    await cp(file, target);
  }
  return inFolder(SOURCE);
}

afterAll(() => rm(folder, { recursive: true, force: true }));

describe.runIf(canBuild)('package', () => {
  const wheel = inFolder(`dist/holdfast_client-${version}-py3-none-any.whl`);
  const sdist = inFolder(`dist/holdfast_client-${version}.tar.gz`);

  beforeAll(async () => {
    const source = await cleanCopy();
    await done(inFolder('tools/bin/uv'), ['build', source, '--out-dir', 'dist', '--no-create-gitignore']);
  });

  it('the package for Python is a wheel and a source archive of this version', async () => {
    expect((await readdir(inFolder('dist'))).sort()).toEqual([wheel, sdist].map((file) => file.split('/').at(-1)));
  });

  it('the wheel for Python has the package, its types, its licence and nothing else', async () => {
    const names = (await done('python3', ['-m', 'zipfile', '--list', wheel]))
      .split('\n')
      .slice(1, -1)
      .map((line) => line.split(' ')[0] ?? '');
    const info = `holdfast_client-${version}.dist-info/`;
    expect(names).toEqual(expect.arrayContaining(['holdfast/py.typed', 'holdfast/contract.py', `${info}METADATA`]));
    expect(names).toContain(`${info}licenses/LICENSE`);
    const others = names.filter((name) => !name.startsWith('holdfast/') && !name.startsWith(info));
    expect(others).toEqual(['holdfast_pytest.py']);
    const own = names.filter((name) => name.startsWith('holdfast/') && !/\.(py|typed)$/.test(name));
    expect(own).toEqual(['holdfast/run/help.txt']);
  });

  it('the source archive for Python has what builds the wheel, and nothing else', async () => {
    const names = (await done('tar', ['--list', '--file', sdist])).trim().split('\n');
    const top = new Set(names.map((name) => name.split('/')[1]));
    expect([...top].sort()).toEqual(['LICENSE', 'PKG-INFO', 'README.md', 'pyproject.toml', 'src']);
  });

  it("the package for Python has the repository's licence and a self-contained README", async () => {
    expect(await readFile(join(SOURCE, 'LICENSE'), 'utf8')).toBe(await readFile('LICENSE', 'utf8'));
    const links = [...(await readFile(join(SOURCE, 'README.md'), 'utf8')).matchAll(/\]\(([^)]*)\)/g)];
    expect(links.filter(([, target]) => !target?.startsWith('https://'))).toEqual([]);
  });

  describe('installed wheel', () => {
    let stack: Awaited<ReturnType<typeof npmStart>>;
    beforeAll(async () => {
      stack = await npmStart();
      await done('python3', ['-m', 'venv', inFolder('empty')]);
    });
    afterAll(() => stack.stop());

    it(`the wheel installs offline, and takes a lease within ${MAX_MS / 1000} seconds`, async () => {
      const program = 'import holdfast\nwith holdfast.lease("first") as lease: print(lease.held, lease.fence > 0)';
      const startedAt = performance.now();
      await done(python('empty'), ['-m', 'pip', 'install', '-q', '--no-index', wheel]);
      const said = await done(python('empty'), ['-c', program], { HOLDFAST_ENDPOINT: stack.url });
      const tookMs = Math.round(performance.now() - startedAt);
      expect(said).toBe('True True\n');
      console.log(`Python took a first lease within ${tookMs} ms of an empty environment`);
      expect(tookMs).toBeLessThan(MAX_MS);
      const answer = await fetch(`${stack.url}/v1/leases?key=first`);
      expect(await answer.json()).toMatchObject({ state: 'released', holders: [] });
    });

    it('the wheel names its version, and modules that are there for what others load', async () => {
      const program = `
import importlib.util, json
from importlib.metadata import distribution
own = distribution("holdfast-client")
missing = [e.value for e in own.entry_points if importlib.util.find_spec(e.module) is None]
print(json.dumps([own.version, own.metadata["Requires-Python"], own.requires, missing]))`;
      const said = JSON.parse(await done(python('empty'), ['-c', program]));
      expect(said).toEqual([version, '>=3.10', [expect.stringMatching(/^botocore>=.* extra == .aws.$/)], []]);
    });

    it.runIf(hasMypy)('the wheel gives a program its types', async () => {
      await writeFile(
        inFolder('typed.py'),
        `import holdfast
from holdfast import aio

client = holdfast.Holdfast("http://127.0.0.1:3000", holder="a")
waiting: int = client.read_leases(key="nightly")["waiting"]
keys: list[str] = [row["key"] for row in client.leases(prefix="jobs/")]
wrong: str = client.read_leases(key="nightly")["waiting"]
`,
      );
      const args = ['--strict', '--python-executable', python('empty'), 'typed.py'];
      const { output } = await run(MYPY, args, { cwd: folder, env });
      expect(output.trim().split('\n')).toEqual([
        expect.stringMatching(/^typed\.py:7: error: Incompatible types in assignment/),
        'Found 1 error in 1 file (checked 1 source file)',
      ]);
    });
  });
});
