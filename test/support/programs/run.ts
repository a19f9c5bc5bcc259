import { it } from 'vitest';
import { aFew } from '../time/rounds.ts';
import { type builtCli, type Called, type Running, type RunOptions, starter } from './cli.ts';
import { PYTHON_CLIENT, python } from './python.ts';

/** A program that runs a command under a lease. All have the same options, messages and exit codes. */
export interface Runner {
  /** The name as users type it, such as in `see holdfast run --help`. */
  name: string;
  isPython: boolean;
  /** The words of the command line before the arguments. */
  words: string[];
  /** Variables that the program needs. */
  env: Record<string, string>;
  /** Starts the program in its own process. */
  start(args: string[], options?: RunOptions): Running;
  /** Runs the program to its end, in this process if that is possible. */
  call(args: string[], options?: Omit<RunOptions, 'cwd'>): Promise<Called>;
}

/**
 * The programs that behave alike: `holdfast` and `python -m holdfast` in a full run, otherwise one of them, which the seed chooses.
 * @example describe.concurrent.each(runnersOf(cli))('$name', (runner) => ...)
 */
export function runnersOf(cli: Awaited<ReturnType<typeof builtCli>>): Runner[] {
  const ofNode = { ...cli, name: 'holdfast', isPython: false, words: [process.execPath, cli.file], env: {} };
  const name = 'python -m holdfast';
  if (!python) {
    it.skip(`${name} (skipped: there is no Python 3.10 or newer)`, () => {});
    return [ofNode];
  }
  const [words, env] = [[python, '-m', 'holdfast'], PYTHON_CLIENT];
  const start = starter(cli.folder, words, env);
  const call: Runner['call'] = async (...typed) => (await start(...typed).exited) as Called;
  return aFew(1, [ofNode, { name, isPython: true, words, env, start, call }]);
}
