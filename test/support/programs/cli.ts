import { type ChildProcess, spawn } from 'node:child_process';
import { copyFile, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { inject } from 'vitest';
import { bundle, bundleSearch } from '../../../cli/bundle.ts';
import { SEARCH_FILE } from '../../../cli/src/aws/file.ts';
import { onceInRun } from '../faults/once.ts';
import { isFull } from '../time/rounds.ts';
import { callable } from './cli-call.ts';

interface RunOptions {
  env?: Record<string, string>;
  stdin?: string;
  cwd?: string;
}

export interface Running {
  child: ChildProcess;
  /** What it has printed so far. */
  stdout(): string;
  stderr(): string;
  exited: Promise<{ code: number | null; signal: NodeJS.Signals | null; stdout: string; stderr: string }>;
}

/** The built command, in a folder of its own. The test must call `remove`. */
export async function builtCli() {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-cli-'));
  const file = join(folder, 'holdfast.mjs');
  const built = await onceInRun('holdfast.mjs', async () => {
    const path = join(inject('onceFolder'), 'built.mjs');
    await Promise.all([bundle(path, { isSmall: isFull }), bundleSearch(inject('onceFolder'))]);
    return path;
  });
  await copyFile(built, file);
  await copyFile(join(dirname(built), SEARCH_FILE), join(folder, SEARCH_FILE));
  /** It names no endpoint and no AWS, and an empty folder as home. */
  const clean = { PATH: process.env.PATH, HOME: folder, USER: 'tester' };
  /** Starts it in a process of its own. */
  const start = (args: string[], { env, stdin, cwd = folder }: RunOptions = {}): Running => {
    const child = spawn(process.execPath, [file, ...args], { cwd, env: { ...clean, ...env }, stdio: 'pipe' });
    const printed = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'] as const)
      child[name].on('data', (chunk) => {
        printed[name] += chunk;
      });
    child.stdin.on('error', () => {}); // it may have ended without reading
    child.stdin.end(stdin);
    const exited = new Promise<Awaited<Running['exited']>>((resolve) => {
      child.once('close', (code, signal) => resolve({ code, signal, ...printed }));
    });
    return { child, stdout: () => printed.stdout, stderr: () => printed.stderr, exited };
  };
  const called = await callable(file);
  /** Calls it in this process, with absolute paths: see `callable`. */
  const call = (args: string[], { env, stdin }: Omit<RunOptions, 'cwd'> = {}) =>
    called(args, { ...clean, ...env }, stdin);
  return { folder, file, start, call, remove: () => rm(folder, { recursive: true, force: true }) };
}

/** Whether a process lives. A zombie does not. */
export const living = (pid: number): Promise<boolean> =>
  readFile(`/proc/${pid}/stat`, 'utf8').then(
    (stat) => !/\) [ZX]/.test(stat),
    () => false,
  );
