import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import type { Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { credentialsIn } from '../../clients/typescript/src/environment.ts';
import type { Keys } from './aws/keys.ts';
import { SEARCH_PROGRAM } from './aws/program.ts';
import { EXIT } from './exit-codes.ts';
import { Failure } from './failure.ts';

/** How long before they expire new keys are searched, in milliseconds. The old ones serve until the new ones are there. */
const EARLY_MS = 300_000;

/** How long a search may take, in milliseconds: a source may be a program that calls an identity provider. */
const SEARCH_MS = 30_000;

/** A profile that the configuration names takes precedence over keys in the environment. */
function ownKeys(awsProfile: string | undefined, env: NodeJS.ProcessEnv): Keys | undefined {
  const credentials = awsProfile ? undefined : credentialsIn(env);
  return credentials && { credentials, source: 'environment (AWS_ACCESS_KEY_ID)' };
}

/**
 * Returns the caller's AWS keys for each request: those of the environment, otherwise what the providers of AWS find. Keys that expire are
 * searched again before.
 * @param awsProfile the only source, if it is given
 * @returns a function that rejects with a Failure if there are no keys
 */
export function keysFrom(awsProfile: string | undefined, env: NodeJS.ProcessEnv): () => Promise<Keys> {
  const own = ownKeys(awsProfile, env);
  if (own) return async () => own;
  let known: Keys | undefined;
  let search: Search | undefined;
  const found = (isAwaited: boolean): Promise<Keys> => {
    if (!search) {
      search = new Search(awsProfile, env);
      const end = (keys = known) => {
        known = keys;
        search = undefined;
      };
      search.keys.then(end, () => end());
    }
    search.hold(isAwaited);
    return search.keys;
  };
  return async () => {
    const leftMs = known ? (known.expiresAt ?? Number.POSITIVE_INFINITY) - Date.now() : 0;
    if (!known || leftMs <= 0) return found(true);
    if (leftMs < EARLY_MS) found(false); // if it finds none, the next request searches again
    return known;
  };
}

/** A search in a process of its own: a source that does not answer can be ended, and what a search loads is gone after it. */
class Search {
  /** Rejects with a Failure that says of each source why it gave nothing. */
  readonly keys: Promise<Keys>;
  readonly #child: ChildProcess;
  readonly #pipe: Socket;

  constructor(awsProfile: string | undefined, env: NodeJS.ProcessEnv) {
    const args = [SEARCH_PROGRAM, ...(awsProfile === undefined ? [] : [awsProfile])];
    this.#child = spawn(process.execPath, args, {
      env,
      stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
      signal: AbortSignal.timeout(SEARCH_MS),
    });
    this.#child.on('error', () => {}); // no answer says so too
    this.#pipe = this.#child.stdio[3] as Socket;
    this.keys = text(this.#pipe).then((answer) => {
      const given: Keys | string = answer ? JSON.parse(answer) : silence();
      if (typeof given !== 'string') return given;
      const environment = awsProfile ? '' : 'environment: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set; ';
      throw new Failure(`no AWS credentials and no HOLDFAST_TOKEN: ${environment}${given}`, EXIT.forbidden);
    });
  }

  /** Keeps this process alive until the search has ended, or does not. */
  hold(isAwaited: boolean): void {
    for (const one of [this.#child, this.#pipe])
      if (isAwaited) one.ref();
      else one.unref();
  }
}

/** Why a search has said nothing. */
const silence = (): string =>
  existsSync(SEARCH_PROGRAM)
    ? `the other sources gave no answer, for which they have ${SEARCH_MS / 1000} s`
    : `${SEARCH_PROGRAM} is missing, which is a part of this command`;
