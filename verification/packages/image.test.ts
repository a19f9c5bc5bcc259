import { access, constants, copyFile, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { npmStart } from '../start/npm-start.ts';
import { dockerfile } from './support/dockerfile.ts';
import { run } from './support/run.ts';

const { names, wordsOf, entryPoint, copyTo } = await dockerfile('cli/Dockerfile', 'cli');
const [program = '', ...programArgs] = entryPoint;

const canChangeRoot =
  (await run('unshare', ['--user', '--map-user=1000', '--root=/', 'true']).catch(() => undefined))?.exitCode === 0;
if (!canChangeRoot) console.log('skipped: unshare cannot make a user namespace with a root folder of its own here');

let root: string;
let stack: Awaited<ReturnType<typeof npmStart>>;

/** The program and the libraries that it loads, at the places that they have on this machine, or at `place`. */
async function addProgram(file: string, place = file): Promise<void> {
  const { stdout } = canChangeRoot ? await run('ldd', [file]) : { stdout: '' };
  const libraries = [...stdout.matchAll(/(\/\S+) \(0x/g)].map(([, library = '']) => library);
  for (const [from, to] of [[file, place], ...libraries.map((library) => [library, library])] as const) {
    await mkdir(dirname(join(root, to)), { recursive: true });
    await copyFile(from, join(root, to));
  }
}

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'holdfast-image-'));
  stack = await npmStart();
  // the programs of the base image that the command needs
  await addProgram(process.execPath, '/usr/local/bin/node');
  await addProgram('/usr/bin/env');
  await copyTo(root);
  await mkdir(join(root, 'home/node'), { recursive: true, mode: 0o777 });
});
afterAll(async () => {
  await stack.stop();
  await rm(root, { recursive: true, force: true });
});

describe('Dockerfile', () => {
  it('the Dockerfile of the command only copies files, for every platform', () => {
    expect(names).toEqual(['COPY', 'ENTRYPOINT', 'FROM', 'USER']);
    expect(wordsOf('USER')).toEqual([['node']]);
  });

  it('the Dockerfile of the command starts from the Node with which the tests run', () => {
    expect(wordsOf('FROM')).toEqual([[`node:${manifest.devDependencies.node}-alpine`]]);
  });

  it('the image has the command on its path, executable, with the licences', async () => {
    await access(join(root, 'usr/local/bin', program), constants.X_OK);
    for (const file of ['LICENSE', 'LICENSES.txt'])
      expect(await readFile(join(root, 'usr/local/share/doc/holdfast', file), 'utf8')).toContain('Apache License');
  });
});

/** The variables of a container. */
const env = (folder: string) => ({
  PATH: ['/usr/local/bin', '/usr/bin'].map((bin) => join(folder, bin)).join(':'),
  HOME: join(folder, 'home/node'),
  HOLDFAST_ENDPOINT: stack.url,
});

/** Runs a program with the folder as the root of the file system, and not as root. The folder has no shell, no `/tmp`, no `/proc` and no `/etc/passwd`. */
const inRoot = (...args: string[]) =>
  run('unshare', ['--user', '--map-user=1000', `--root=${root}`, '--wd=/', program, ...programArgs, ...args], {
    env: { ...env('/'), PATH: `/usr/local/bin:/usr/bin:${process.env.PATH}` },
  });

describe('entry point', () => {
  /** Runs a program with the files of this machine, but none of them on its path. */
  const started = (...args: string[]) =>
    run(join(root, 'usr/local/bin', program), [...programArgs, ...args], { cwd: root, env: env(root) });

  it('the image runs a job under a lease without anything of this machine', async () => {
    const ran = await started('run', 'image', '--', 'node', '-p', 'process.env.HOLDFAST_KEY');
    expect(ran).toEqual({ exitCode: 0, stdout: 'image\n', output: 'image\n' });
  });

  it.runIf(canChangeRoot)('the image prints its version and that of the deployment', async () => {
    const { version } = manifest;
    const said = await inRoot('version');
    expect(said, said.output).toMatchObject({
      ...{ exitCode: 0, stdout: `holdfast ${version}\ndeployment ${version} (${stack.url})\n` },
    });
  });

  it.runIf(canChangeRoot)('the image acquires and releases a lease with only its own files', async () => {
    const acquired = await inRoot('acquire', 'from-image', '--holder', 'container');
    expect(acquired.exitCode, acquired.output).toBe(0);
    const listed = await inRoot('status', 'from-image', '--json');
    expect(JSON.parse(listed.stdout)).toMatchObject({ key: 'from-image', holder: 'container' });
    expect(await inRoot('release', acquired.stdout.trim())).toMatchObject({ exitCode: 0 });
  });
});
