import { existsSync, mkdirSync, openSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { EXIT } from './exit-codes.ts';
import { Failure, misuse, reasonOf } from './failure.ts';
import type { Settings } from './settings.ts';

/** How a script passes a lease from `acquire` to `heartbeat` and `release`: the proof is in a file that only its user can read. */
interface LeaseRecord {
  endpoint: string;
  namespace?: string | undefined;
  key: string;
  leaseId: string;
}

/** A new file, created before the lease is acquired, so that every grant has a place. */
export class LeaseFile {
  readonly path: string;
  readonly #descriptor: number;

  /** @throws Failure if it exists already, or cannot be created */
  constructor(given: string | undefined, env: NodeJS.ProcessEnv = process.env) {
    const folder = join(env.XDG_STATE_HOME || join(env.HOME || homedir(), '.local/state'), 'holdfast/leases');
    this.path = resolve(given ?? join(folder, `${crypto.randomUUID()}.json`));
    try {
      if (given === undefined) mkdirSync(folder, { recursive: true, mode: 0o700 });
      this.#descriptor = openSync(this.path, 'wx', 0o600);
    } catch (error) {
      throw new Failure(`the lease file cannot be made: ${reasonOf(error as Error)}`, EXIT.misuse);
    }
  }

  write(record: LeaseRecord): void {
    writeFileSync(this.#descriptor, `${JSON.stringify(record)}\n`, { flush: true });
  }

  remove(): void {
    unlinkSync(this.path);
  }
}

/** True if a lease file has been removed. `acquire` prints a whole path, so that no other word, such as a key, is taken for one. */
export const isGone = (path: string): boolean => isAbsolute(path) && existsSync(dirname(path)) && !existsSync(path);

/** @throws Failure if it is not a lease file, or belongs to another endpoint or namespace */
export function readLeaseFile(path: string, { endpoint, namespace }: Settings): LeaseRecord {
  const record = parsed(path);
  const { key, leaseId } = record;
  if (typeof key !== 'string' || typeof leaseId !== 'string') throw noLeaseFile(path, 'it has no key and no proof');
  const given = placeOf({ endpoint, namespace });
  const acquired = placeOf(record);
  if (acquired !== given) throw misuse(`the lease of ${path} was acquired at ${acquired}, and this is for ${given}`);
  return { endpoint, key, leaseId };
}

const placeOf = ({ endpoint, namespace }: { endpoint?: unknown; namespace?: unknown }): string =>
  namespace === undefined ? `${endpoint}` : `${endpoint}, namespace ${namespace}`;

function parsed(path: string): Partial<Record<keyof LeaseRecord, unknown>> {
  try {
    return Object(JSON.parse(readFileSync(path, 'utf8')));
  } catch (error) {
    const why = error instanceof SyntaxError ? 'it is not JSON' : reasonOf(error as Error);
    throw noLeaseFile(path, why);
  }
}

const noLeaseFile = (path: string, why: string): Failure =>
  misuse(`'${path}' is no lease file (${why}): give the path that holdfast acquire printed`);
