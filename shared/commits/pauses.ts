import type { Call } from '../aws/call.ts';
import { commitInProgress } from './answers.ts';
import type { CommitDependencies } from './dependencies.ts';
import type { Obstacle } from './intents.ts';
import type { CommitRequest } from './request.ts';

/** The time at the end of an invocation for a last write, and for the read that may follow it. */
const LAST_COMMIT_MS = 1000;

/** The first and the longest pause between two reads of the object. Each pause is twice as long as the one before. */
const MIN_READ_PAUSE_MS = 50;
const MAX_READ_PAUSE_MS = 500;

/** The pauses of one call, which waits no longer than the caller allows (`waitSeconds`). */
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

  get tooLate(): boolean {
    return this.#call.timeLeftMs() < LAST_COMMIT_MS;
  }

  /**
   * Sleeps until the next read of the object.
   * @throws HoldfastError CommitInProgress if the caller does not want to wait longer
   */
  async wait({ generation, until }: Obstacle): Promise<void> {
    const { clock, ids } = this.#dependencies;
    const now = clock.now();
    const leftMs = Math.min(this.#patienceEndsAt - now, this.#call.timeLeftMs() - LAST_COMMIT_MS);
    if (leftMs <= 0) throw commitInProgress(this.#request, generation, Math.max(1, until - now));
    const pause = Math.ceil(this.#pauseMs * (0.5 + ids.random() / 2));
    this.#pauseMs = Math.min(this.#pauseMs * 2, MAX_READ_PAUSE_MS);
    await clock.sleep(Math.min(pause, until - now, leftMs));
  }

  /** Sleeps about as long as a write to S3 takes. The time is random, so that two writers do not meet again. */
  rest(): Promise<void> {
    const { clock, ids } = this.#dependencies;
    return clock.sleep(Math.ceil(MIN_READ_PAUSE_MS * (0.5 + ids.random() / 2)));
  }
}
