import type { HoldfastError } from './index.ts';
import { type AcquireRequest, type Grant, isExclusive, type ProblemOf, type Waiter } from './memory-grants.ts';

/** The line and the grants of a key, and the ids of requests whose grants have ended. */
interface Lock {
  line: Waiter[];
  grants: readonly Grant[];
  ended: ReadonlyMap<string | undefined, unknown>;
}

/** What the service in memory knows of the requests with `replace` of a key. */
export class MemoryReplace {
  readonly #problem: ProblemOf;
  /** The newest request that joined with `replace`, until its grant. */
  #latest: AcquireRequest | undefined;
  /** The holder that superseded a request, by the id of the request, which waited or had the key. */
  readonly #supersededBy = new Map<string | undefined, string>();

  constructor(problem: ProblemOf) {
    this.#problem = problem;
  }

  /**
   * Makes a request the newest, unless it has or had a grant. The request replaces the one that was the newest before, and asks the holder to stop if both
   * said `running`.
   * @throws HoldfastError Superseded
   */
  join(request: AcquireRequest, { line, grants, ended }: Lock): void {
    const { requestId, holder, replace } = request;
    const newer = this.#supersededBy.get(requestId);
    if (newer !== undefined) throw this.#superseded(newer);
    if (ended.has(requestId) || grants.some((one) => one.request.requestId === requestId)) return;
    const before = this.#latest;
    this.#latest = request;
    if (before && before.requestId !== requestId) {
      this.#supersededBy.set(before.requestId, holder);
      const at = line.findIndex(({ request: waiting }) => waiting.requestId === before.requestId);
      // Take the waiter out now: the rejection does so only later, and a release in between would serve the superseded waiter.
      if (at >= 0) line.splice(at, 1)[0]?.reject(this.#superseded(holder));
    }
    for (const grant of grants)
      if (replace === 'running' && grant.request.replace === 'running' && !grant.ending) {
        Object.assign(grant, { ending: true, supersededBy: holder });
        this.#supersededBy.set(grant.request.requestId, holder);
      }
  }

  #superseded(by: string): HoldfastError {
    return this.#problem('Superseded', 409, `a newer request, by ${by}, has replaced this one`, { by });
  }

  /** Forgets a request that does not wait any more. */
  leave({ requestId }: Pick<AcquireRequest, 'requestId'>): void {
    if (this.#latest?.requestId === requestId) this.#latest = undefined;
  }
}

/** True if a request may replace others: only a request that can wait in line for the key alone may. */
export const canReplace = (request: AcquireRequest): boolean =>
  isExclusive(request) && request.fair !== false && !!request.waitSeconds;
