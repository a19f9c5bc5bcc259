import { apiError, StatesError } from './errors.ts';
import type { Json } from './json.ts';

/** A task that waits for its token to be sent back. */
export interface WaitingTask {
  succeed(output: Json): void;
  fail(error: string | undefined, cause: string | undefined): void;
  beat(): void;
}

/** The task tokens. A token is open from the start of its task until the first answer, a timeout, or the end of its execution. */
export class Tokens {
  readonly #open = new Map<string, WaitingTask>();
  readonly #closed = new Set<string>();

  /** Resolves when the token is sent back. */
  wait(token: string, beat: () => void): Promise<Json> {
    return new Promise((resolve, reject) => {
      const fail = (error = '', cause = '') => reject(new StatesError(error, cause));
      this.#open.set(token, { succeed: resolve, fail, beat });
    });
  }

  close(token: string): void {
    if (this.#open.delete(token)) this.#closed.add(token);
  }

  /** Closes a token. @throws ApiError as `find` */
  take(token: string): WaitingTask {
    const task = this.find(token);
    this.close(token);
    return task;
  }

  /** The task of an open token. @throws ApiError InvalidToken, TaskDoesNotExist, or TaskTimedOut if the task was answered or has ended */
  find(token: string): WaitingTask {
    const task = this.#open.get(token);
    if (task) return task;
    if (this.#closed.has(token))
      throw apiError('TaskTimedOut', "Task Timed Out: 'Provided task does not exist anymore'");
    if (isToken(token)) throw apiError('TaskDoesNotExist', 'Task does not exist');
    throw apiError('InvalidToken', 'Invalid Token');
  }
}

/** Makes an opaque token that is as long as the ones that AWS makes. */
export const newToken = (id: string) => `AAAA${Buffer.from(`${id}${id}`).toString('base64url')}`;

const isToken = (text: string) => /^AAAA[\w-]{96}$/.test(text);
