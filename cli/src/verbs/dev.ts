import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { startStack } from '../../../local/stack.ts';
import manifest from '../../package.json' with { type: 'json' };
import { EXIT } from '../exit-codes.ts';
import { Failure } from '../failure.ts';
import { load } from '../load.ts';
import type { Output } from '../output.ts';
import type { Verb } from '../verb.ts';

/** The package with the emulators. They are not in this package, because most users only run jobs. */
const PACKAGE = 'holdfast-dev';

export const dev: Verb = {
  summary: 'start the whole service on this machine',
  notes: `You need no AWS account. The first start downloads ${PACKAGE} by npm. Settings and other ports are
environment variables: docs/configuration.md, "Settings of the local stack".`,
  usage: '',
  words: [0, 0],
  isLocal: true,
  options: {
    port: { value: 'PORT', help: 'where the API listens (3000); the other servers use the next four ports' },
    memory: { help: 'keep the data in memory only: it is gone when the command ends' },
    durable: { value: 'FILE', multiple: true, help: 'run the durable function in FILE; may be repeated' },
    function: {
      value: 'FILE',
      multiple: true,
      help: 'run the function in FILE, which state machines call; may be repeated',
    },
  },
  example: 'holdfast dev',
  async run({ arguments: args, output }) {
    const port = args.number('port', { min: 1, max: 65_531, whole: true });
    const file = installed() ?? (await download(output));
    const program: { startStack: typeof startStack } = await import(pathToFileURL(file).href);
    const files = { durable: args.all('durable'), functions: args.all('function') };
    await program.startStack({ port, memory: args.is('memory'), ...files });
    // A signal ends the stack, and with it the process.
    return new Promise(() => {});
  },
};

/** The program of the package, if it is installed beside the command. */
function installed(): string | undefined {
  try {
    return load.resolve(PACKAGE);
  } catch {
    return undefined;
  }
}

/** The program of the package in the cache of this user. The first time, npm downloads it. */
async function download(output: Output): Promise<string> {
  const { XDG_CACHE_HOME, HOME } = process.env;
  const cache = join(XDG_CACHE_HOME || join(HOME || homedir(), '.cache'), 'holdfast');
  const folder = join(cache, `dev-${manifest.version}`);
  const file = join(folder, 'node_modules', PACKAGE, 'dist/dev.mjs');
  if (existsSync(file)) return file;
  output.note(`downloading ${PACKAGE} ${manifest.version} by npm into ${folder}, for this and later starts`);
  // Another process may do the same at the same time, and must find a complete folder or none.
  const temporaryFolder = `${folder}.${process.pid}`;
  mkdirSync(temporaryFolder, { recursive: true });
  try {
    await install(temporaryFolder);
    renameSync(temporaryFolder, folder);
  } catch (error) {
    if (!existsSync(file)) throw error;
  } finally {
    rmSync(temporaryFolder, { recursive: true, force: true });
  }
  return file;
}

/** @throws Failure that says why npm failed */
function install(folder: string): Promise<void> {
  const args = ['install', '--prefix', folder, '--no-audit', '--no-fund', '--loglevel', 'error'];
  const { execFile } = load('node:child_process') as typeof import('node:child_process');
  return new Promise((resolve, reject) => {
    const options = { shell: process.platform === 'win32' };
    execFile('npm', [...args, `${PACKAGE}@${manifest.version}`], options, (error, _, stderr) => {
      if (!error) return resolve();
      const why = stderr.trim().split('\n', 3).join('\n') || error.message;
      reject(new Failure(`npm could not download ${PACKAGE}: ${why}`, EXIT.noAnswer));
    });
  });
}
