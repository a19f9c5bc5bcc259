import { bothCaps } from '../../../shared/locks/record/cap-rules.ts';
import { HoldfastError, invalidRequest, type Transport } from './index.ts';
import type { AcquireRequest } from './memory-grants.ts';
import { MemoryKey, YEAR_SECONDS } from './memory-key.ts';
import { MemoryOnce, ONCE_IDS } from './memory-once.ts';
import { MemoryRates } from './memory-rates.ts';
import { canReplace } from './memory-replace.ts';
import { type Surroundings, systemSurroundings } from './surroundings.ts';
import type { AnswerOf, Operation, RequestOf } from './transport.ts';

export { ManualClock } from './manual-clock.ts';

/** The grant that `hold` gives to another holder. */
export interface HoldOptions extends Pick<AcquireRequest, 'limit' | 'weight' | 'mode' | 'data'> {
  /** The name of the holder. The default is `another`. */
  holder?: string | undefined;
  /** The time until the grant expires, in seconds. The default is a year. */
  ttlSeconds?: number | undefined;
}

const refused = (call: string): HoldfastError =>
  new HoldfastError({ code: 'Refused', detail: `${call} is not a call of the service in memory` });

type Calls = { [O in Operation]?: (request: RequestOf<O>, signal: AbortSignal) => Promise<AnswerOf<O>> | AnswerOf<O> };

/**
 * Holdfast in memory, for unit tests of code that uses the client. The client itself is the real one, and sends its calls over the `transport` of this service.
 *
 * The service answers `acquire` (leases and permits, with waiting in line), `heartbeat`, `release`, `withdraw`, `breakLease`, `capKey`, `runNext`,
 * `readLeases`, and the calls of `once` and of rates (`readOnce` and `readRates` for one key). Every other call is `Refused`.
 *
 * The service does not imitate executions, tasks, `fair: false`, quotas, permissions, namespaces (all keys are in one space), most checks of the input, the order
 * of a sorted list, lost responses and clocks that differ. To test these, run the service of `npm start`.
 * @example
 * const service = new MemoryService();
 * const holdfast = new Holdfast({ transport: service.transport, holder: 'test' });
 * service.hold('nightly', { holder: 'other' });
 * await expect(runNightly(holdfast)).rejects.toMatchObject({ code: 'LeaseHeld', holder: 'other' });
 */
export class MemoryService {
  readonly #surroundings: Surroundings;
  readonly #keys = new Map<string, MemoryKey>();
  readonly #slots = new Map<string, MemoryOnce>();
  readonly #rates = new Map<string, MemoryRates>();

  /** @param surroundings the clock, the same object as for the client. The default is the clock of the system */
  constructor({ surroundings = systemSurroundings }: { surroundings?: Surroundings } = {}) {
    this.#surroundings = surroundings;
  }

  /** The transport for `new Holdfast({ transport })`. */
  readonly transport: Transport = async (operation, payload, signal) => {
    const call = this.#calls[operation] as ((request: unknown, signal: AbortSignal) => unknown) | undefined;
    if (!call || 'taskToken' in payload || 'callbackId' in payload) throw refused(operation);
    // Both sides get copies, as over a network, so that they cannot change each other's objects.
    const answer = await call(JSON.parse(JSON.stringify(payload)), signal);
    return JSON.parse(JSON.stringify(answer));
  };

  /**
   * Grants a key to another holder, so that your test can show what your code does when the key is held.
   * @returns a function that releases the grant
   * @throws HoldfastError LeaseHeld if the key cannot be granted now
   * @example
   * const release = service.hold('nightly', { holder: 'other' });
   */
  hold(key: string, { holder = 'another', ttlSeconds = YEAR_SECONDS, ...terms }: HoldOptions = {}): () => void {
    const one = this.#key(key);
    const { leaseId } = one.acquire({ ...terms, key, holder, ttlSeconds, requestId: this.#surroundings.uuid() });
    return () => one.release(leaseId);
  }

  /**
   * Ends every grant of a key, so that your test can show what your code does when it loses a lease. The next heartbeat of each holder fails.
   * @param reason the reason of the LeaseLost that the holders receive. `taken` also grants the key to another holder
   * @example
   * service.lose('nightly');
   * await clock.advance(20_000);
   * expect(lease.held).toBe(false);
   */
  lose(key: string, reason: 'taken' | 'broken' | 'unknown' = 'taken'): void {
    this.#key(key).lose(reason);
  }

  #key(key: string): MemoryKey {
    const one = this.#keys.get(key) ?? new MemoryKey(key, this.#surroundings);
    this.#keys.set(key, one);
    return one;
  }

  #once(key: string): MemoryOnce {
    const one = this.#slots.get(key) ?? new MemoryOnce(key, this.#surroundings);
    this.#slots.set(key, one);
    return one;
  }

  #rate(key: string): MemoryRates {
    const one = this.#rates.get(key) ?? new MemoryRates(key, this.#surroundings);
    this.#rates.set(key, one);
    return one;
  }

  /** The lock of a grant, which depends on the prefix of its lease id. */
  #lockOf(key: string, leaseId: string): MemoryKey {
    return leaseId.startsWith(ONCE_IDS) ? this.#once(key).lock : this.#key(key);
  }

  readonly #calls: Calls = {
    acquire: (request, signal) => {
      if (!request.key) throw invalidRequest('key', 'must not be empty');
      if (request.sleepMs && (!request.waitSeconds || request.fair === false))
        throw invalidRequest('sleepMs', 'needs waitSeconds above 0 and fair true');
      if (request.replace && !canReplace(request))
        throw invalidRequest('replace', 'needs a wait in line, for the key alone');
      const one = this.#key(request.key);
      return request.waitSeconds ? one.wait(request, signal) : one.acquire(request);
    },
    heartbeat: ({ key, leaseId, ttlSeconds }) => this.#lockOf(key, leaseId).heartbeat(leaseId, ttlSeconds),
    release: ({ key, leaseId }) => this.#lockOf(key, leaseId).release(leaseId),
    withdraw: (request) => this.#key(request.key).withdraw(request),
    capKey: (request) => this.#cap(request),
    runNext: (request) => this.#key(request.key).runNext(request),
    breakLease: (request) => (request.kind ? this.#once(request.key).lock : this.#key(request.key)).break(request),
    readLeases: (request) =>
      request.key === undefined ? this.#page(request) : this.#key(request.key).view(request.waiters),
    onceBegin: (request, signal) => {
      if (!request.key) throw invalidRequest('key', 'must not be empty');
      return this.#once(request.key).begin(request, signal);
    },
    onceComplete: (request) => this.#once(request.key).complete(request),
    onceForget: (request) => this.#once(request.key).forget(request),
    readOnce: ({ key }) => {
      if (key === undefined) throw refused('readOnce without a key');
      return this.#once(key).view();
    },
    rateReserve: (request) => this.#rate(request.key).reserve(request),
    rateSettle: (request) => this.#rate(request.key).settle(request),
    rateForget: (request) => this.#rate(request.key).forget(request),
    readRates: ({ key }) => {
      if (key === undefined) throw refused('readRates without a key');
      return this.#rate(key).view();
    },
  };

  #cap(request: RequestOf<'capKey'>): AnswerOf<'capKey'> {
    const { key, kind, limit = null, rates = null, reason } = request;
    if ((limit !== null || rates !== null) && reason === undefined)
      throw invalidRequest('reason', 'is required, because others will read it');
    if (kind) return this.#once(key).lock.capBy(request);
    const ofRate = this.#rate(key).capBy(request);
    const ofLock = this.#key(key).capBy(request);
    const [cap, before] = [bothCaps(ofLock.cap, ofRate.cap), bothCaps(ofLock.before, ofRate.before)];
    return { ...ofLock, cap, before };
  }

  #page({ prefix = '', holder, state, limit = 100, cursor = '' }: RequestOf<'readLeases'>): AnswerOf<'readLeases'> {
    const rows = [...this.#keys.values()]
      .filter(({ key }) => key.startsWith(prefix) && key > cursor)
      .sort((left, right) => (left.key < right.key ? -1 : 1))
      .filter((one) => one.hasRecord)
      .map((one) => one.row(holder))
      .filter((row) => (holder ?? row.holder) === row.holder)
      .filter((row) =>
        state === 'active'
          ? row.waiting > 0 || row.cap || /held|expired/.test(row.state)
          : (state ?? row.state) === row.state,
      );
    const leases = rows.slice(0, limit);
    return { leases, nextCursor: rows.length > limit ? (leases.at(-1)?.key ?? null) : null };
  }
}
