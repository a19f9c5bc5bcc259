import type { HoldfastError } from './index.ts';
import { type AcquireRequest, type Grant, isExclusive, type ProblemOf, type Waiter } from './memory-grants.ts';

/** The line and the grants of a key, and the requests that had a grant. */
interface Lock {
  line: Waiter[];
  grants: readonly Grant[];
  ended: ReadonlyMap<string | undefined, unknown>;
}

/** The requests of a key that replace others, as the service in memory knows them. */
export class MemoryReplace {
  readonly #problem: ProblemOf;
  /** The newest request that joined with `replace`, until its grant. */
  #latest: AcquireRequest | undefined;
  /** The newer holder, by the request id of each superseded request: one that waited, or one that had the key. */
  readonly #newer = new Map<string | undefined, string>();

  constructor(problem: ProblemOf) {
    this.#problem = problem;
  }

  /**
   * Makes a request the newest, unless it has or had a grant: it replaces the newest before, and asks the holder to stop if both said `running`.
   * @throws HoldfastError Superseded
   */
  join(request: AcquireRequest, { line, grants, ended }: Lock): void {
    const { requestId, holder, replace } = request;
    const newer = this.#newer.get(requestId);
    if (newer !== undefined) throw this.#superseded(newer);
    if (ended.has(requestId) || grants.some((one) => one.request.requestId === requestId)) return;
    const before = this.#latest;
    this.#latest = request;
    if (before && before.requestId !== requestId) {
      this.#newer.set(before.requestId, holder);
      const at = line.findIndex(({ request: waiting }) => waiting.requestId === before.requestId);
      // Taken out here, because the key may be released before the rejected promise takes it out.
      if (at >= 0) line.splice(at, 1)[0]?.reject(this.#superseded(holder));
    }
    for (const grant of grants)
      if (replace === 'running' && grant.request.replace === 'running' && !grant.ending) {
        Object.assign(grant, { ending: true, supersededBy: holder });
        this.#newer.set(grant.request.requestId, holder);
      }
  }

  #superseded(by: string): HoldfastError {
    return this.#problem('Superseded', 409, `a newer request, by ${by}, has replaced this one`, { by });
  }

  /** Notes that a request no longer waits. */
  leave({ requestId }: Pick<AcquireRequest, 'requestId'>): void {
    if (this.#latest?.requestId === requestId) this.#latest = undefined;
  }
}

/** Whether a request may replace others: only one that can wait in line for the key alone. */
export const canReplace = (request: AcquireRequest): boolean =>
  isExclusive(request) && request.fair !== false && !!request.waitSeconds;
