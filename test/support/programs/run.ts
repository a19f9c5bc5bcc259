import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { describe } from 'vitest';
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

const NO_PYTHON = ' (skipped: there is no Python 3.10 or newer)';

/**
 * Says the same of `holdfast` and of `python -m holdfast`.
 * @param tests receives the program
 */
export function describeRunners(cli: Awaited<ReturnType<typeof builtCli>>, tests: (runner: Runner) => void): void {
  const [words, env] = [[python ?? '', '-m', 'holdfast'], { PYTHONPATH: PYTHON_SOURCE }];
  const start = starter(cli.folder, words, env);
  const call: Runner['call'] = async (...typed) => (await start(...typed).exited) as Called;
  const runners: Runner[] = [
    { ...{ name: 'holdfast', isPython: false }, words: [process.execPath, cli.file], env: {}, ...cli },
    { ...{ name: 'python -m holdfast', isPython: true }, words, env, start, call },
  ];
  for (const runner of runners) {
    const isThere = !runner.isPython || python !== undefined;
    const title = isThere ? runner.name : runner.name + NO_PYTHON;
    (isThere ? describe.concurrent : describe.skip)(title, () => tests(runner));
  }
}
