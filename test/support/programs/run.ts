import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { it } from 'vitest';
import { type builtCli, type Called, type Running, type RunOptions, starter } from './cli.ts';

/** A program that runs a command under a lease. All have the same options, messages and exit codes. */
export interface Runner {
  /** As people type it, such as in `see holdfast run --help`. */
  name: string;
  isPython: boolean;
  /** The words before its arguments. */
  words: string[];
  /** Variables that it needs. */
  env: Record<string, string>;
  /** Starts it in a process of its own. */
  start(args: string[], options?: RunOptions): Running;
  /** Runs it to its end, in this process if that is possible. */
  call(args: string[], options?: Omit<RunOptions, 'cwd'>): Promise<Called>;
}

/** The path of the Python of the variable PYTHON, of CI, or of the path, if it is new enough for the package. */
export const python = [process.env.PYTHON, '.venv/bin/python', 'python3']
  .map(pathOf)
  .find((path) => path !== undefined);

/** Where Python finds the package. */
export const PYTHON_SOURCE = resolve('clients/python/src');

function pathOf(name: string | undefined): string | undefined {
  if (!name || (name.includes('/') && !existsSync(name))) return undefined;
  try {
    // A link of a version manager is a script, which would take longer than Python itself.
    const code = 'import sys; assert sys.version_info >= (3, 10); print(sys.executable)';
    return execFileSync(name.includes('/') ? resolve(name) : name, ['-c', code], { encoding: 'utf8' }).trim();
  } catch {
    return undefined;
  }
}

/**
 * The programs that a test says the same of: `holdfast` and `python -m holdfast`.
 * @param withPython false where a test of `holdfast` is enough
 * @example describe.concurrent.each(runnersOf(cli))('$name', (runner) => ...)
 */
export function runnersOf(cli: Awaited<ReturnType<typeof builtCli>>, withPython = true): Runner[] {
  const ofNode = { ...cli, name: 'holdfast', isPython: false, words: [process.execPath, cli.file], env: {} };
  if (!withPython) return [ofNode];
  const name = 'python -m holdfast';
  if (!python) {
    it.skip(`${name} (skipped: there is no Python 3.10 or newer)`, () => {});
    return [ofNode];
  }
  const [words, env] = [[python, '-m', 'holdfast'], { PYTHONPATH: PYTHON_SOURCE }];
  const start = starter(cli.folder, words, env);
  const call: Runner['call'] = async (...typed) => (await start(...typed).exited) as Called;
  return [ofNode, { name, isPython: true, words, env, start, call }];
}
