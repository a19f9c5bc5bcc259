import { apiError, StatesError } from './errors.ts';
import type { Json } from './json.ts';

/** A task that waits for its token to be sent back. */
export interface WaitingTask {
  succeed(output: Json): void;
  fail(error: string | undefined, cause: string | undefined): void;
  beat(): void;
}

/** Task tokens: each is open from the start of its task until one answer, a timeout or the end of its execution. */
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

  /** Closes it. @throws ApiError as `look` */
  take(token: string): WaitingTask {
    const task = this.look(token);
    this.close(token);
    return task;
  }

  /** @throws ApiError InvalidToken, TaskDoesNotExist, or TaskTimedOut if it was answered or has ended */
  look(token: string): WaitingTask {
    const task = this.#open.get(token);
    if (task) return task;
    if (this.#closed.has(token))
      throw apiError('TaskTimedOut', "Task Timed Out: 'Provided task does not exist anymore'");
    if (isToken(token)) throw apiError('TaskDoesNotExist', 'Task does not exist');
    throw apiError('InvalidToken', 'Invalid Token');
  }
}

/** Opaque, and as long as those of AWS. */
export const newToken = (id: string) => `AAAA${Buffer.from(`${id}${id}`).toString('base64url')}`;

const isToken = (text: string) => /^AAAA[\w-]{96}$/.test(text);
