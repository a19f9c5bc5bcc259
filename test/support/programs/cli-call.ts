import { EventEmitter, once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { Readable, Writable } from 'node:stream';
import { pathToFileURL } from 'node:url';
import { brotliDecompressSync } from 'node:zlib';

interface Called {
  code: number;
  stdout: string;
  stderr: string;
}

/**
 * The built command as a function, which takes a thirtieth of the time that a process takes. Each call has arguments, variables and streams
 * of its own, and the folder of this process. A test of signals, of pipes, or of `holdfast run` with a command needs a process.
 * @param file as cli/bundle.ts writes it
 */
export async function callable(file: string) {
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

/** This process with what is another call's own. Nobody sends it a signal. */
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

/** What a process waits for ends with it: a lease that a script acquires has no heartbeat afterwards. */
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
