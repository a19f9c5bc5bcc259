import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { PYTHON_CLIENT, python } from '../../test/support/programs/python.ts';

/** The prefix of the keys that clients of the Rust crate share. They go to the table directly. */
export const SHARED = 'chaos/shared/';

const RUST = 'bench/libraries/rust/target/release/dynamodb-lease-contestant';
const PYTHON_WORKER = 'clients/python/test/chaos_worker.py';

/** The program of the nth process. They alternate: the client for Node, and that for Python with threads or asyncio. */
export function commandOf(
  nth: number,
  isPlain: boolean,
): { name: string; command: string; words: string[]; last: string[] } {
  const node = {
    name: 'typescript',
    command: process.execPath,
    words: [join(import.meta.dirname, 'worker.ts')],
    last: [],
  };
  if (!python || isPlain || nth % 2 === 1) return node;
  const kind = nth % 4 === 2 ? 'threads' : 'asyncio';
  return { name: `python-${kind}`, command: python, words: [PYTHON_WORKER], last: [kind] };
}

export const workerEnvironment = { ...process.env, ...PYTHON_CLIENT };

/** The keys of the run. Every fourth key is shared with the Rust crate if `npm run bench` has built its program. */
export const keysOf = (count: number, isPlain: boolean): string[] =>
  Array.from({ length: count }, (_, nth) => (hasRust(isPlain) && nth % 4 === 3 ? `${SHARED}${nth}` : `chaos/${nth}`));

const hasRust = (isPlain: boolean) => !isPlain && existsSync(RUST);

/**
 * Starts callers of the Rust crate. They are not paused or killed: after a pause, the crate goes on without its lease.
 * @returns how often they held a key; undefined if there are none
 */
export function startRust(
  { keys, log, seconds, isPlain }: { keys: string[]; log: string; seconds: number; isPlain: boolean },
  { endpoint, table }: { endpoint: string; table: string },
): Promise<number | undefined> {
  if (!hasRust(isPlain)) return Promise.resolve(undefined);
  const env = { ...process.env, AWS_ENDPOINT_URL_DYNAMODB: endpoint, PEER_TABLE: table };
  const child: ChildProcess = spawn(RUST, { env, stdio: ['pipe', 'pipe', 'inherit'] });
  const shared = keys.filter((key) => key.startsWith(SHARED));
  const asked = { scenario: 'work', keys: shared, holder: 'rust', log, atOnce: 3, ttlSeconds: 10, ms: seconds * 1000 };
  child.stdin?.end(`${JSON.stringify(asked)}\n`);
  return usesOf(child);
}

async function usesOf(child: ChildProcess): Promise<number> {
  const exit = once(child, 'exit');
  for await (const line of createInterface({ input: child.stdout as NodeJS.ReadableStream })) {
    const { result, error } = JSON.parse(line) as { result?: { uses: number }; error?: string };
    if (error) throw new Error(`the Rust callers: ${error}`);
    if (result) return result.uses;
  }
  throw new Error(`the Rust callers ended with ${await exit}`);
}
