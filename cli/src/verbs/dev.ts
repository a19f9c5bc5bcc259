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

/** A package of its own, because running jobs needs no emulators. */
const PACKAGE = 'holdfast-dev';

export const dev: Verb = {
  summary: 'start the whole service on this machine',
  notes: `It needs no AWS account. The first start loads ${PACKAGE} by npm. Settings and other ports are
environment variables: docs/configuration.md, "Settings of the local stack".`,
  usage: '',
  words: [0, 0],
  isLocal: true,
  options: {
    port: { value: 'PORT', help: 'where the API listens (3000); the other servers use the next four ports' },
    memory: { help: 'keep nothing between runs' },
    durable: { value: 'FILE', multiple: true, help: 'run the durable function in FILE; may be given again' },
    function: { value: 'FILE', multiple: true, help: 'the same, for state machines' },
  },
  example: 'holdfast dev',
  async run({ arguments: args, output }) {
    const port = args.number('port', { least: 1, most: 65_531, whole: true });
    const file = installed() ?? (await fetched(output));
    const program: { startStack: typeof startStack } = await import(pathToFileURL(file).href);
    const files = { durable: args.all('durable'), functions: args.all('function') };
    await program.startStack({ port, memory: args.is('memory'), ...files });
    // A signal ends the stack, and the process with it.
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

/** The program of the package, from the cache of this user, into which npm puts it the first time. */
async function fetched(output: Output): Promise<string> {
  const { XDG_CACHE_HOME, HOME } = process.env;
  const cache = join(XDG_CACHE_HOME || join(HOME || homedir(), '.cache'), 'holdfast');
  const folder = join(cache, `dev-${manifest.version}`);
  const file = join(folder, 'node_modules', PACKAGE, 'dist/dev.mjs');
  if (existsSync(file)) return file;
  output.note(`loading ${PACKAGE} ${manifest.version} by npm into ${folder}, once`);
  // Another process may do the same, and must find a whole folder or none.
  const own = `${folder}.${process.pid}`;
  mkdirSync(own, { recursive: true });
  try {
    await install(own);
    renameSync(own, folder);
  } catch (error) {
    if (!existsSync(file)) throw error;
  } finally {
    rmSync(own, { recursive: true, force: true });
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
      reject(new Failure(`npm could not load ${PACKAGE}: ${why}`, EXIT.noAnswer));
    });
  });
}
