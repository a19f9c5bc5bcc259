import { type ChildProcess, spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { copyFile, mkdtemp, readFile, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { pathToFileURL } from 'node:url';
import { brotliDecompressSync } from 'node:zlib';
import { inject } from 'vitest';
import { bundle, bundleSearch } from '../../../cli/bundle.ts';
import { SEARCH_FILE } from '../../../cli/src/aws/file.ts';
import { sharedInRun } from '../stack/shared-in-run.ts';
import { isFull } from '../time/rounds.ts';

export interface RunOptions {
  env?: Record<string, string>;
  stdin?: string;
  cwd?: string;
}

export interface Running {
  child: ChildProcess;
  /** The output of the command so far. */
  stdout(): string;
  stderr(): string;
  exited: Promise<{ code: number | null; signal: NodeJS.Signals | null; stdout: string; stderr: string }>;
}

/** An environment without an endpoint, without AWS, and with an empty folder as home. */
const cleanEnv = (folder: string) => ({ PATH: process.env.PATH, HOME: folder, USER: 'tester' });

/** Starts a program in a process of its own. @param words the words before its arguments @param own variables that it needs */
export const starter =
  (folder: string, words: string[], own: Record<string, string> = {}) =>
  (args: string[], { env, stdin, cwd = folder }: RunOptions = {}): Running => {
    const [file = '', ...rest] = [...words, ...args];
    const child = spawn(file, rest, { cwd, env: { ...cleanEnv(folder), ...own, ...env }, stdio: 'pipe' });
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

/** The built command, in a folder of its own. The test must call `remove`. */
export async function builtCli() {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-cli-'));
  const file = join(folder, 'holdfast.mjs');
  const built = await sharedInRun('holdfast.mjs', async () => {
    const path = join(inject('sharedFolder'), 'built.mjs');
    await Promise.all([bundle(path, { isSmall: isFull }), bundleSearch(inject('sharedFolder'))]);
    return path;
  });
  await copyFile(built, file);
  await copyFile(join(dirname(built), SEARCH_FILE), join(folder, SEARCH_FILE));
  const start = starter(folder, [process.execPath, file]);
  const called = await callable(file);
  /** Calls it in this process, with absolute paths: see `callable`. */
  const call = (args: string[], { env, stdin }: Omit<RunOptions, 'cwd'> = {}) =>
    called(args, { ...cleanEnv(folder), ...env }, stdin);
  return { folder, file, start, call, remove: () => rm(folder, { recursive: true, force: true }) };
}

/** Whether a process lives. A zombie does not. */
export const living = (pid: number): Promise<boolean> =>
  readFile(`/proc/${pid}/stat`, 'utf8').then(
    (stat) => !/\) [ZX]/.test(stat),
    () => false,
  );

export interface Called {
  code: number;
  stdout: string;
  stderr: string;
}

/**
 * The built command as a function, which takes a thirtieth of the time that a process takes. Each call has arguments, variables and streams
 * of its own, and the folder of this process. A test of signals, of pipes, or of `holdfast run` with a command needs a process.
 * @param file as cli/bundle.ts writes it
 */
async function callable(file: string) {
  const [, packed = ''] = /Buffer\.from\("(.*?)","base64"\)/.exec(await readFile(file, 'utf8')) ?? [];
  const [style, code = '', script] = String(brotliDecompressSync(Buffer.from(packed, 'base64'))).split('\0');
  const main = Function('require', 'self', 'page', 'process', 'setTimeout', 'setInterval', code);
  const ofFile = [createRequire(file), String(pathToFileURL(file)), { style, script }] as const;
  return async (args: string[], env: NodeJS.ProcessEnv, stdin = ''): Promise<Called> => {
    const [stdout, stderr] = [collector(), collector()];
    const own = { argv: ['node', file, ...args], env, stdin: Readable.from([stdin]), stdout, stderr };
    const { process, exited } = processOf(own);
    const timers = endingTimers();
    main(...ofFile, process, timers.setTimeout, timers.setInterval);
    const code = await exited;
    timers.end();
    return { code, stdout: stdout.written, stderr: stderr.written };
  };
}

/** This process with the arguments, variables and streams of one call. It does not receive signals. */
function processOf(own: object) {
  const ended = new EventEmitter<{ exit: [code: number] }>();
  const exit = (code: number) => ended.emit('exit', code);
  const process = Object.create(globalThis.process, {
    ...Object.fromEntries(Object.entries(own).map(([name, value]) => [name, { value }])),
    ...{ exit: { value: exit }, exitCode: { set: exit } },
    ...{ on: { value: () => process }, listeners: { value: () => [] } },
  });
  return { process, exited: once(ended, 'exit').then(([code]) => code as number) };
}

/** Timers that end with the call, as those of a process do. A lease that a call acquires then has no heartbeats. */
function endingTimers() {
  const begun: NodeJS.Timeout[] = [];
  const noted =
    <Args extends unknown[]>(begin: (...args: Args) => NodeJS.Timeout) =>
    (...args: Args) => {
      const timer = begin(...args);
      begun.push(timer);
      return timer;
    };
  return { setTimeout: noted(setTimeout), setInterval: noted(setInterval), end: () => begun.forEach(clearTimeout) };
}

function collector() {
  const stream = new Writable({
    write: (chunk, _, done) => {
      collected.written += chunk;
      done();
    },
  });
  const collected = Object.assign(stream, { written: '' });
  return collected;
}
