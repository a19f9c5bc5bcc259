import { acquireOrReadSlot, type LockOptions } from './acquire.ts';
import { attempt, type Core, call, isTransient, retry } from './attempt.ts';
import { HoldfastError, isHoldfastError, type LossReason, leaseLost } from './errors.ts';
import type { Lease } from './lease.ts';
import { RELEASE_MS, tryRelease } from './release.ts';
import { stayAlive } from './surroundings.ts';
import type { AnswerOf, RequestOf } from './transport.ts';

/** Which run of the key the call asks for: the current period, or a name. Without both, the key has a single slot. */
export type SlotOptions =
  | {
      /**
       * Runs the work once in each period, such as `15m`, `1h`, `1d` or `1w`. The period is the one in which the call arrives, by the clock of the
       * service, even if the call then waits beyond its end. A week begins on Monday.
       */
      per?: string | undefined;
      /**
       * The time zone in which days and weeks begin, as an IANA name. The default is UTC.
       * @example
       * await holdfast.once('backup', { per: '1d', zone: 'Europe/Berlin' }, backup);
       */
      zone?: string | undefined;
      slot?: undefined;
    }
  | {
      /**
       * A name of your own for the run, such as the day `2026-11-26` of a job that catches up. Slots compare as text: when a later slot is done, an
       * earlier slot is `superseded`.
       */
      slot?: string | undefined;
      per?: undefined;
      zone?: undefined;
    };

/** The options of `once`, besides the slot. */
export interface OnceOptions extends Omit<LockOptions, 'fair' | 'replace' | 'target' | 'graceSeconds'> {
  /** How long other callers receive the result, in seconds. The default is a day, or two periods of `per` if those are longer. */
  keepSeconds?: number | undefined;
  /**
   * A hash of the input of the work. You want it if one key must not be used for two inputs: if the slot is done with another hash, the call fails with
   * Conflict instead of returning the wrong result.
   */
  inputHash?: string | undefined;
}

/** What the work of a slot receives: a lease without `release`, because `once` ends the run. */
export type OnceRun = Omit<
  Lease,
  'release' | 'settle' | 'mode' | 'limit' | 'weight' | 'used' | 'limitChanged' | typeof Symbol.asyncDispose
> & {
  /** The name of the slot. Use it in the names of what you write, such as `report-${slot}.csv`. */
  readonly slot: string;
};

/** Who has done a slot, and when. `at` is ISO 8601. */
interface DoneBy {
  slot: string;
  by: string | null;
  at: string;
  fence: number | null;
}

/** What became of a slot. After `ran`, `result` is what the work returned; after `done` it is a JSON copy, or null if no result was stored. */
export type OnceAnswer<Result> =
  | {
      outcome: 'ran';
      slot: string;
      result: Result;
      fence: number;
      by: string;
      /** False if the slot is done without a result, because the result is not JSON, or more than 4 KiB of it. */
      stored: boolean;
    }
  | (DoneBy & { outcome: 'done'; result: Result | null })
  /** A later slot is done, so no caller will work for this slot. `by`, `at` and `fence` are those of the later slot. */
  | (DoneBy & { outcome: 'superseded'; doneSlot: string; result?: undefined });

/** The answer for a slot that is done, or a run, which must end with `complete` or `release`. */
export type Begun = Exclude<OnceAnswer<unknown>, { outcome: 'ran' }> | BegunRun;

export interface BegunRun {
  outcome: 'run';
  run: Lease & OnceRun;
  /**
   * Does the work.
   * @throws what the work throws; HoldfastError LeaseLost if the run was lost before the work returned, and the work has read the signal: the work may have
   * stopped half way, so its result must not be stored
   */
  work<T>(act: (run: OnceRun) => T | Promise<T>): Promise<T>;
  /**
   * Stores the result, and ends the run. The call is sent even if the run has expired by the clocks of this process, because the service accepts a result
   * until another caller takes the slot.
   * @param timeoutMs how long to retry, in milliseconds. The default is the longer of `timeoutMs` and `releaseTimeoutMs`
   * @returns whether the result was stored with the slot
   * @throws HoldfastError LeaseLost if the run was lost, so that the result is not stored; OutcomeUnknown if the slot may or may not be done
   */
  complete(result: unknown, timeoutMs?: number): Promise<boolean>;
  /** Frees the slot for the next caller, unless the run has ended. Never rejects. */
  release(timeoutMs?: number): Promise<boolean>;
}

/** The most bytes of JSON that a slot keeps. */
const MAX_BYTES = 4096;

/** How long to try to store a result, in milliseconds. */
const COMPLETE_MS = 30_000;

type Options = OnceOptions & SlotOptions & { linked?: AbortSignal | undefined };

/** Checks the time zone, and begins a slot. The command leaves the check to the service. @throws TypeError before anything is sent; HoldfastError */
export function begin(core: Core, key: string, holder: string, options: Options): Promise<Begun> {
  const { zone } = options;
  try {
    if (zone !== undefined) Intl.DateTimeFormat('en', { timeZone: zone });
  } catch {
    throw new TypeError(`zone must be an IANA name such as Europe/Berlin, not ${zone}`);
  }
  return rawBegin(core, key, holder, options);
}

/** Begins the work of a slot, or gets its result. @throws HoldfastError as `Holdfast.once` */
export async function rawBegin(core: Core, key: string, holder: string, options: Options): Promise<Begun> {
  let end = (grant: Grant, timeoutMs: number) => tryRelease(core, grant, timeoutMs);
  const got = await acquireOrReadSlot(core, key, holder, {
    ...options,
    once: { end: (...how) => end(...how), withdraw: (request) => withdrawRun(core, request, options.releaseTimeoutMs) },
  });
  if (!('release' in got)) {
    const { doneBy: by, doneAt: at, fence, slot } = got;
    const done = { slot, by, at, fence };
    if (got.outcome === 'done') return { outcome: 'done', result: got.result, ...done };
    return { outcome: 'superseded', doneSlot: got.doneSlot, ...done };
  }
  const lease = got as Lease & OnceRun;
  const { timeoutMs: callMs = COMPLETE_MS, releaseTimeoutMs = RELEASE_MS } = options;
  const complete = async (result: unknown, timeoutMs = Math.max(callMs, releaseTimeoutMs)): Promise<boolean> => {
    let answer: Stored | undefined;
    end = async (grant, ms) => {
      let error: unknown;
      try {
        answer = await store(core, { ...grant, ...storable(result) }, ms);
        if (answer.reason === 'unknown') error = undecided(lease);
      } catch (reason) {
        error = isTransient(reason) ? undecided(lease, reason) : reason;
      }
      const confirmed = answer?.completed === true;
      core.emit({ type: 'released', key, confirmed, error });
      if (error) throw error;
      return confirmed;
    };
    await lease.release(timeoutMs);
    if (answer?.completed) return answer.hasResult;
    throw (!answer && lease.lost) || leaseLost(key, answer?.reason ?? 'released');
  };
  // After `complete` the lease is already ending, and `complete` itself has thrown its error.
  const release = (timeoutMs?: number) => lease.release(timeoutMs).catch(() => false);
  return { outcome: 'run', run: lease, work: (act) => workUnder(lease, act), complete, release };
}

/** The properties by which the work can find out that the run is lost. */
const LOSS_PROPERTIES = /^(signal|held|lost|assertHeld)$/;

/** Runs the work, and throws its loss if the work could see the loss. @throws as `BegunRun.work` */
async function workUnder<T>(lease: Lease & OnceRun, act: (run: OnceRun) => T | Promise<T>): Promise<T> {
  const { signal } = lease;
  /** Why the signal has aborted. While the event loop is blocked it cannot abort, so a loss in that time has not stopped the work. */
  let stopped: unknown = signal.aborted ? signal.reason : undefined;
  let isWatching = false;
  signal.addEventListener('abort', () => {
    stopped = lease.lost ?? signal.reason;
  });
  const run = new Proxy(lease, {
    get(target, name) {
      isWatching ||= LOSS_PROPERTIES.test(String(name));
      return Reflect.get(target, name);
    },
  });
  const result = await act(run);
  if (stopped !== undefined && isWatching) throw stopped;
  return result;
}

/** Runs some work once for a slot. @throws HoldfastError as `Holdfast.once`; what the work throws */
export async function runOnce<T>(
  core: Core,
  begun: Begun,
  work: (run: OnceRun) => T | Promise<T>,
): Promise<OnceAnswer<T>> {
  if (begun.outcome !== 'run') return begun as OnceAnswer<T>;
  const { run } = begun;
  const stop = stayAlive(core.surroundings);
  try {
    const result = await begun.work(work).catch(async (error: unknown) => {
      await begun.release();
      throw error;
    });
    const stored = await begun.complete(result);
    return { outcome: 'ran', slot: run.slot, result, stored, fence: run.fence, by: run.holder };
  } finally {
    stop();
  }
}

interface Grant {
  key: string;
  leaseId: string;
}

/** The result as a field of the call, or no field if the result cannot be stored: the slot is then done without one. */
function storable(result: unknown): { result?: unknown } {
  try {
    const text = JSON.stringify(result) as string | undefined;
    if (text !== undefined && new TextEncoder().encode(text).length <= MAX_BYTES) return { result };
  } catch {
    // The result contains a cycle or a BigInt. The work is done all the same.
  }
  return {};
}

type Stored = AnswerOf<'onceComplete'> & { hasResult: boolean; reason?: LossReason };

const undecided = ({ key, slot }: OnceRun, cause?: unknown): HoldfastError =>
  new HoldfastError(
    {
      code: 'OutcomeUnknown',
      detail: `the work has run, and slot ${slot} of ${key} may or may not be done${cause instanceof Error ? `: ${cause.message}` : ''}`,
      ...{ key },
    },
    cause,
  );

/** Completes the slot, without the result if the service refuses the result. */
async function store(core: Core, sent: Grant & { result?: unknown }, timeoutMs: number): Promise<Stored> {
  const hasResult = 'result' in sent;
  let tries = 0;
  try {
    const answer = await retry(core.surroundings, { timeoutMs }, () => {
      tries += 1;
      return attempt(core, 'onceComplete', sent, { ms: timeoutMs / 2 });
    });
    // An earlier try may have stored the result before another caller began the next slot.
    const isInDoubt = tries > 1 && !answer.completed && answer.reason === 'taken';
    return { ...answer, hasResult, ...(isInDoubt && { reason: 'unknown' }) };
  } catch (error) {
    if (!hasResult || !isHoldfastError(error, 'InvalidRequest')) throw error;
    const { result, ...bare } = sent;
    return store(core, bare, timeoutMs);
  }
}

/** Ends a run whose grant was lost on the way. A retry of the request receives the same grant, which is then released. */
async function withdrawRun(core: Core, request: RequestOf<'onceBegin'>, timeoutMs = RELEASE_MS): Promise<void> {
  const { key } = request;
  try {
    const answer = await call(core, 'onceBegin', request, { timeoutMs, ms: timeoutMs / 2 });
    if ('leaseId' in answer) await tryRelease(core, { key, leaseId: answer.leaseId }, timeoutMs);
  } catch (error) {
    // Another caller works, or the grant has ended already.
    if (isHoldfastError(error, 'LeaseHeld') || isHoldfastError(error, 'LeaseLost')) return;
    core.emit({ type: 'released', key, confirmed: false, error });
  }
}
