import { existsSync, mkdirSync, openSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { EXIT } from './exit-codes.ts';
import { Failure, fileFault, misuse } from './failure.ts';
import type { Settings } from './settings.ts';

/** With this record, a script passes a lease from `acquire` to `heartbeat` and `release`. It contains the proof, so only its user can read the file. */
interface LeaseRecord {
  endpoint: string;
  namespace?: string | undefined;
  key: string;
  leaseId: string;
}

/** The file of a lease, which is created before the lease is acquired, so that a grant cannot be lost because the disk is full or read-only. */
export class LeaseFile {
  readonly path: string;
  readonly #descriptor: number;

  /** @throws Failure if the file exists already, or cannot be created */
  constructor(given: string | undefined, env: NodeJS.ProcessEnv = process.env) {
    const folder = join(env.XDG_STATE_HOME || join(env.HOME || homedir(), '.local/state'), 'holdfast/leases');
    this.path = resolve(given ?? join(folder, `${crypto.randomUUID()}.json`));
    try {
      if (given === undefined) mkdirSync(folder, { recursive: true, mode: 0o700 });
      this.#descriptor = openSync(this.path, 'wx', 0o600);
    } catch (error) {
      throw new Failure(`the lease file cannot be made: ${fileFault(error as Error)}`, EXIT.misuse);
    }
  }

  write(record: LeaseRecord): void {
    writeFileSync(this.#descriptor, `${JSON.stringify(record)}\n`, { flush: true });
  }

  remove(): void {
    unlinkSync(this.path);
  }
}

/** True if a lease file has been removed. Only an absolute path counts, as `acquire` prints it, so that a key is not taken for a removed file. */
export const isGone = (path: string): boolean => isAbsolute(path) && existsSync(dirname(path)) && !existsSync(path);

/** @throws Failure if it is not a lease file, or belongs to another endpoint or namespace */
export function readLeaseFile(path: string, { endpoint, namespace }: Settings): LeaseRecord {
  const record = parsed(path);
  const { key, leaseId } = record;
  if (typeof key !== 'string' || typeof leaseId !== 'string') throw noLeaseFile(path, 'it lacks the key or the proof');
  const given = addressOf({ endpoint, namespace });
  const acquired = addressOf(record);
  if (acquired !== given) throw misuse(`the lease of ${path} was acquired at ${acquired}, and not at ${given}`);
  return { endpoint, key, leaseId };
}

const addressOf = ({ endpoint, namespace }: { endpoint?: unknown; namespace?: unknown }): string =>
  namespace === undefined ? `${endpoint}` : `${endpoint}, namespace ${namespace}`;

function parsed(path: string): Partial<Record<keyof LeaseRecord, unknown>> {
  try {
    return Object(JSON.parse(readFileSync(path, 'utf8')));
  } catch (error) {
    const why = error instanceof SyntaxError ? 'it is not JSON' : fileFault(error as Error);
    throw noLeaseFile(path, why);
  }
}

const noLeaseFile = (path: string, why: string): Failure =>
  misuse(`'${path}' is not a lease file (${why}): give the path that holdfast acquire printed`);
