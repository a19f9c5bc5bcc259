import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import type { Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { credentialsIn } from '../../clients/typescript/src/environment.ts';
import type { FoundCredentials } from './aws/found-credentials.ts';
import { SEARCH_PROGRAM } from './aws/program.ts';
import { EXIT } from './exit-codes.ts';
import { Failure } from './failure.ts';

/** How long before credentials expire the search for new ones begins, in milliseconds. The old ones are used until the new ones are found. */
const EARLY_MS = 300_000;

/** How long a search may take, in milliseconds. It may be slow, because a source may be a program that calls an identity provider. */
const SEARCH_MS = 30_000;

/** The credentials in the environment, unless the configuration names a profile, which takes precedence. */
function environmentCredentials(awsProfile: string | undefined, env: NodeJS.ProcessEnv): FoundCredentials | undefined {
  const credentials = awsProfile ? undefined : credentialsIn(env);
  return credentials && { credentials, source: 'environment (AWS_ACCESS_KEY_ID)' };
}

/**
 * Finds AWS credentials for each request: in the environment, otherwise with the AWS providers. Searches for new credentials before the old ones expire.
 * @param awsProfile the only source, if it is given
 * @returns a function that rejects with a Failure if there are no credentials
 */
export function credentialsFrom(
  awsProfile: string | undefined,
  env: NodeJS.ProcessEnv,
): () => Promise<FoundCredentials> {
  const fromEnvironment = environmentCredentials(awsProfile, env);
  if (fromEnvironment) return async () => fromEnvironment;
  let known: FoundCredentials | undefined;
  let search: Search | undefined;
  const searched = (isAwaited: boolean): Promise<FoundCredentials> => {
    if (!search) {
      search = new Search(awsProfile, env);
      const end = (found = known) => {
        known = found;
        search = undefined;
      };
      search.result.then(end, () => end());
    }
    search.hold(isAwaited);
    return search.result;
  };
  return async () => {
    const leftMs = known ? (known.expiresAt ?? Number.POSITIVE_INFINITY) - Date.now() : 0;
    if (!known || leftMs <= 0) return searched(true);
    if (leftMs < EARLY_MS) searched(false); // if that fails, the next request searches again
    return known;
  };
}

/** A search in a process of its own, so that a source that does not answer can be ended, and that the memory of the search is freed. */
class Search {
  /** Rejects with a Failure that says for each source why it gave no credentials. */
  readonly result: Promise<FoundCredentials>;
  readonly #child: ChildProcess;
  readonly #pipe: Socket;

  constructor(awsProfile: string | undefined, env: NodeJS.ProcessEnv) {
    const args = [SEARCH_PROGRAM, ...(awsProfile === undefined ? [] : [awsProfile])];
    this.#child = spawn(process.execPath, args, {
      env,
      stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
      signal: AbortSignal.timeout(SEARCH_MS),
    });
    this.#child.on('error', () => {}); // Without a listener, a failed start would end this process. The failure shows as an empty answer.
    this.#pipe = this.#child.stdio[3] as Socket;
    this.result = text(this.#pipe).then((answer) => {
      const given: FoundCredentials | string = answer ? JSON.parse(answer) : whyNoAnswer();
      if (typeof given !== 'string') return given;
      const environment = awsProfile ? '' : 'environment: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set; ';
      throw new Failure(`no AWS credentials and no HOLDFAST_TOKEN: ${environment}${given}`, EXIT.forbidden);
    });
  }

  /** Says whether the search keeps this process alive. */
  hold(isAwaited: boolean): void {
    for (const one of [this.#child, this.#pipe])
      if (isAwaited) one.ref();
      else one.unref();
  }
}

/** The reason why a search gave no answer. */
const whyNoAnswer = (): string =>
  existsSync(SEARCH_PROGRAM)
    ? `the other sources gave no answer in ${SEARCH_MS / 1000} s`
    : `${SEARCH_PROGRAM}, a part of this command, is missing`;
