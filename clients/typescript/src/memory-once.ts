import { heldText } from '../../../shared/locks/record/held-text.ts';
import { compareSlots, isAfterAllPeriods } from '../../../shared/once/slots.ts';
import { keepSecondsOf, slotOf, termsFault } from '../../../shared/once/terms.ts';
import type { components } from './contract.ts';
import { type HoldfastError, invalidRequest } from './index.ts';
import { type AcquireRequest, instant, type ProblemOf, problemsOf } from './memory-grants.ts';
import { MemoryKey } from './memory-key.ts';
import type { Surroundings } from './surroundings.ts';
import type { AnswerOf, RequestOf } from './transport.ts';

type Schemas = components['schemas'];
type BeginRequest = RequestOf<'onceBegin'>;

interface Done {
  slot: string;
  by: string;
  at: number;
  fence: number;
  leaseId: string;
  result: unknown;
  inputHash: string | undefined;
  keepUntil: number;
}

interface Run {
  request: BeginRequest;
  /** The id of the request in the lock. A new one for each run, because the lock remembers request ids longer than the service does. */
  lockRequestId: string;
  slot: string;
  fence: number;
  keepMs: number;
  isDone: boolean;
}

/** What the lease ids of runs begin with. */
export const ONCE_IDS = 'o.';

/** How often a call that waits tries again, in milliseconds. */
const POLL_MS = 100;

/** A request, with the default ttl of the service. */
const termsOf = (request: BeginRequest) => ({ ttlSeconds: 60, ...request });

/** One key of `once` in the service in memory: a lease, and the last slot that was done. */
export class MemoryOnce {
  readonly key: string;
  /** Grants the runs. */
  readonly lock: MemoryKey;
  readonly #surroundings: Surroundings;
  readonly #problem: ProblemOf;
  /** The run of each lease id. */
  readonly #runs = new Map<string, Run>();
  #last: Run | undefined;
  #done: Done | undefined;

  constructor(key: string, surroundings: Surroundings) {
    this.key = key;
    this.lock = new MemoryKey(key, surroundings, ONCE_IDS);
    this.#surroundings = surroundings;
    this.#problem = problemsOf(key, surroundings);
  }

  /** @throws HoldfastError LeaseHeld, LeaseLost, Conflict, InvalidRequest */
  async begin(request: BeginRequest, signal: AbortSignal): Promise<AnswerOf<'onceBegin'>> {
    const fault = termsFault(termsOf(request));
    if (fault) throw invalidRequest(...fault);
    const until = this.#surroundings.wall() + (request.waitSeconds ?? 0) * 1000;
    const begunAt = this.#surroundings.wall();
    const requestOfSlot = { requestId: this.#surroundings.uuid(), ...request, slot: slotOf(termsOf(request), begunAt) };
    for (;;) {
      try {
        return this.#begin(requestOfSlot, this.#surroundings.wall() - begunAt);
      } catch (error) {
        if ((error as HoldfastError).code !== 'LeaseHeld') throw error;
        const { slot } = requestOfSlot;
        if (this.#surroundings.wall() >= until || signal.aborted)
          throw Object.assign(error as HoldfastError, request.per && { retryWith: { slot } });
      }
      await new Promise<void>((resolve) => this.#surroundings.after(POLL_MS, resolve, true));
    }
  }

  #begin(request: BeginRequest & { slot: string }, waitedMs: number): AnswerOf<'onceBegin'> {
    const { slot, inputHash, per, zone, keepSeconds, waitSeconds, ...grantRequest } = request;
    const { key } = this;
    const last = this.#last;
    const isOwn = last?.request.requestId === request.requestId && last?.request.holder === request.holder;
    const { state, ending } = this.lock.row();
    const isRepeatable = isOwn && state === 'held' && !ending;
    const done = this.#remembered;
    if (done && !isRepeatable && compareSlots(done.slot, slot) >= 0) {
      const { by: doneBy, fence } = done;
      const by = { doneBy, doneAt: instant(done.at), fence };
      if (done.slot !== slot && per && isAfterAllPeriods(done.slot, this.#surroundings.wall(), { per, zone }))
        throw this.#conflict('is done for a slot after the current period', { field: 'per' });
      if (done.slot !== slot) return { outcome: 'superseded', key, slot, doneSlot: done.slot, ...by };
      if (inputHash !== undefined && inputHash !== done.inputHash)
        throw this.#conflict('is done with another input', { field: 'inputHash' });
      return { outcome: 'done', key, slot, result: done.result, ...by };
    }
    const lockRequestId = isOwn && last ? last.lockRequestId : this.#surroundings.uuid();
    const { limitChanged, ...grant } = this.lock.acquire({
      ...grantRequest,
      requestId: lockRequestId,
    } as AcquireRequest);
    const keepMs = Math.max(
      1000 * keepSecondsOf(termsOf(request)),
      (this.#done?.keepUntil ?? 0) - this.#surroundings.wall(),
    );
    const { fence } = grant;
    const run = this.#runs.get(grant.leaseId) ?? { request, lockRequestId, slot, fence, keepMs, isDone: false };
    this.#runs.set(grant.leaseId, run);
    this.#last = run;
    const previous = grant.repeated || last?.isDone ? null : grant.previous;
    return { outcome: 'run', ...grant, previous, slot: run.slot, waitedMs };
  }

  complete({ leaseId, result = null }: RequestOf<'onceComplete'>): AnswerOf<'onceComplete'> {
    const { key } = this;
    if (this.#done?.leaseId === leaseId) return this.#completed(this.#done, true);
    const run = this.#runs.get(leaseId);
    if (!run || !this.lock.finish(leaseId)) {
      const answer = this.lock.release(leaseId);
      const reason = answer.released ? 'released' : answer.reason;
      return { key, completed: false, reason: reason === 'superseded' ? 'unknown' : reason }; // `once` has no `replace`
    }
    const { request, slot, fence, keepMs } = run;
    const at = this.#surroundings.wall();
    const { holder: by, inputHash } = request;
    run.isDone = true;
    this.#done = { slot, by, at, fence, leaseId, result, inputHash, keepUntil: at + keepMs };
    return this.#completed(this.#done, false);
  }

  /** @throws HoldfastError NotFound, Conflict, LeaseHeld */
  forget({ fence }: RequestOf<'onceForget'>): AnswerOf<'onceForget'> {
    const { key } = this;
    if (!this.#last) throw this.#problem('NotFound', 404, `no caller has begun a slot of ${key}`);
    if (this.#last.fence !== fence) throw this.#conflict('has another fence');
    const { state } = this.lock.row();
    if (state === 'held' || state === 'expired') throw this.#working();
    const slot = this.#done?.slot ?? null;
    this.#done = undefined;
    return { key, forgotten: true, fence, slot };
  }

  #working(): HoldfastError {
    const fields = this.lock.refusal();
    const why = { askedLimit: null, isBound: false, cap: undefined, refusedDespiteRoom: undefined };
    return this.#problem('LeaseHeld', 409, heldText({ key: this.key, ...fields, ...why }), fields);
  }

  view(): Schemas['OnceKey'] {
    const { holders, used, limit, cap, waiting, inGrace, bound, brokenAt, brokenBy, ...lease } = this.lock.row();
    const done = this.#remembered;
    return {
      ...lease,
      kind: 'once',
      slot: this.#last?.slot ?? null,
      done: done
        ? { slot: done.slot, by: done.by, at: instant(done.at), fence: done.fence, keptUntil: instant(done.keepUntil) }
        : null,
      result: done?.result ?? null,
      ...(cap && { cap }),
    };
  }

  get #remembered(): Done | undefined {
    return this.#done && this.#done.keepUntil >= this.#surroundings.wall() ? this.#done : undefined;
  }

  #completed({ slot, at, fence }: Done, repeated: boolean): AnswerOf<'onceComplete'> {
    return { key: this.key, completed: true, repeated, slot, doneAt: instant(at), fence };
  }

  #conflict(why: string, fields: object = {}): HoldfastError {
    const { holders, used, limit, cap, waiting, ...actual } = this.lock.row();
    return this.#problem('Conflict', 409, `${this.key} ${why}`, { ...fields, actual });
  }
}
