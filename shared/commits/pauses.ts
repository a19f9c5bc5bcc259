import type { Call } from '../aws/call.ts';
import { commitInProgress } from './answers.ts';
import type { CommitDependencies } from './dependencies.ts';
import type { Obstacle } from './intents.ts';
import type { CommitRequest } from './request.ts';

/** The time that a write needs at the end of an invocation, with the look at the object that may follow it. */
const LAST_COMMIT_MS = 1000;

/** How often a waiting call looks at the object: after about the first time, and then less and less often. */
const MIN_READ_PAUSE_MS = 50;
const MAX_READ_PAUSE_MS = 500;

/** The pauses of one call, and how long its patience lasts. */
export class Pauses {
  readonly #dependencies: CommitDependencies;
  readonly #request: CommitRequest;
  readonly #call: Call;
  readonly #patienceEndsAt: number;
  #pauseMs = MIN_READ_PAUSE_MS;

  constructor(dependencies: CommitDependencies, request: CommitRequest, call: Call) {
    this.#dependencies = dependencies;
    this.#request = request;
    this.#call = call;
    this.#patienceEndsAt = dependencies.clock.now() + request.waitMs;
  }

  /** Whether the invocation has no time left for another write. */
  get tooLate(): boolean {
    return this.#call.timeLeftMs() < LAST_COMMIT_MS;
  }

  /** Sleeps a little, on to the next look at the object. @throws HoldfastError CommitInProgress when patience ends */
  async wait({ generation, until }: Obstacle): Promise<void> {
    const { clock, ids } = this.#dependencies;
    const now = clock.now();
    const patience = Math.min(this.#patienceEndsAt - now, this.#call.timeLeftMs() - LAST_COMMIT_MS);
    if (patience <= 0) throw commitInProgress(this.#request, generation, Math.max(1, until - now));
    const pause = Math.ceil(this.#pauseMs * (0.5 + ids.random() / 2));
    this.#pauseMs = Math.min(this.#pauseMs * 2, MAX_READ_PAUSE_MS);
    await clock.sleep(Math.min(pause, until - now, patience));
  }

  /** Sleeps about the time of a write to S3, and never the same time as another writer. */
  rest(): Promise<void> {
    const { clock, ids } = this.#dependencies;
    return clock.sleep(Math.ceil(MIN_READ_PAUSE_MS * (0.5 + ids.random() / 2)));
  }
}
