import { type ChildProcess, spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { PYTHON_CLIENT, python } from '../../test/support/programs/python.ts';
import type { Answer } from '../../test/support/stack/adapters.ts';

const WORKER = 'clients/python/test/histories_worker.py';

/** One try of a call that the Python client wants to send. */
export interface Try {
  operation: string;
  request: Readonly<Record<string, unknown>>;
  seconds: number;
}

/** The sessions that a command has made, and in how many seconds each begins. */
interface Coming {
  later: [session: number, seconds: number][];
}

/** What a protocol does next, or how it ended. */
export type Next = Coming &
  (
    | { send: Try }
    | { sleep: number }
    | { held: { leaseId: string; fence: number } }
    | { done: unknown }
    | { raised: string }
  );

/** A turn of the code that keeps a lease, and what the work sees of the lease. `wait` is null if the lease is over. */
export interface Turn extends Coming {
  wait: number | null;
  isHeld: boolean;
  reason: string | null;
  send?: Try;
}

/** What a client must do. */
export type What =
  | { begin: { key: string; holder: string; options: object; seed: number } }
  | { answer: Answer | null }
  | { beaten: Answer }
  | { do: 'sleepIsOver' | 'interrupt' | 'turn' | 'release' | 'forget' };

/** A command to a client, with the time of the client's clocks in seconds. */
type Command = What & { session: number; now: readonly [wall: number, monotonic: number] };

/** The clients of all histories, in one process. Undefined without Python. */
let child: ChildProcess | undefined;
const waiting: ((line: string) => void)[] = [];
let sessions = 0;

export const hasPython = python !== undefined;
export const newSession = (): number => ++sessions;

/** Sends a command to the client, which answers before anything else goes on. */
export async function ask<Reply extends Next | Turn>(command: Command): Promise<Reply> {
  child ??= start(python ?? '');
  const answer = new Promise<string>((resolve) => waiting.push(resolve));
  child.stdin?.write(`${JSON.stringify(command)}\n`);
  const line = await answer;
  if (line === '') throw new Error('the Python client has ended');
  return JSON.parse(line) as Reply;
}

function start(command: string): ChildProcess {
  const env = { ...process.env, ...PYTHON_CLIENT };
  const started = spawn(command, [WORKER], { env, stdio: ['pipe', 'pipe', 'inherit'] });
  createInterface({ input: started.stdout }).on('line', (line) => waiting.shift()?.(line));
  started.on('exit', () => {
    for (const resolve of waiting.splice(0)) resolve('');
  });
  // The child ends when its standard input ends, and does not keep this process alive.
  started.unref();
  for (const stream of [started.stdin, started.stdout]) (stream as unknown as Socket).unref();
  return started;
}
