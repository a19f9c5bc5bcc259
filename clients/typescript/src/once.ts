import { type LockOptions, obtain } from './acquire.ts';
import { attempt, type Core, insist, isTransient, persist } from './attempt.ts';
import { HoldfastError, isHoldfastError, type LossReason, leaseLost } from './errors.ts';
import { giveBack, RELEASE_MS } from './give-back.ts';
import type { Lease } from './lease.ts';
import { stayAlive } from './surroundings.ts';
import type { AnswerOf, RequestOf } from './transport.ts';

/** The slot of a call: a period, a name, or without both the only slot of the key. */
export type SlotOptions =
  | {
      /**
       * The length of the slots, such as `15m`, `1h`, `1d` or `1w`. The slot is the present period by the service's clock, even if the call waits over its end.
       * A week begins on Monday.
       */
      per?: string | undefined;
      /**
       * The time zone in which days and weeks begin, an IANA name. The default is UTC.
       * @example
       * await holdfast.once('backup', { per: '1d', zone: 'Europe/Berlin' }, backup);
       */
      zone?: string | undefined;
      slot?: undefined;
    }
  | {
      /** The name of the slot, such as `2026-11-26`. Slots compare as text: after a later slot is done, an earlier slot is `superseded`. */
      slot?: string | undefined;
      per?: undefined;
      zone?: undefined;
    };

/** The options of every slot. */
export interface OnceOptions extends Omit<LockOptions, 'fair' | 'replace' | 'target' | 'graceSeconds'> {
  /** How long the result is kept, in seconds; the default is a day, or two periods of `per` if they are longer. */
  keepSeconds?: number | undefined;
  /** A text that differs if the input of the work differs. If the slot is done with another input, the call fails with Conflict. */
  inputHash?: string | undefined;
}

/** What the work of a slot receives: the lease without `release`, and the slot. */
export type OnceRun = Omit<
  Lease,
  'release' | 'settle' | 'mode' | 'limit' | 'weight' | 'used' | 'limitChanged' | typeof Symbol.asyncDispose
> & {
  /** The slot, to name what you write. */
  readonly slot: string;
};

/** Who did a slot, and when. `at` is ISO 8601. */
interface DoneBy {
  slot: string;
  by: string | null;
  at: string;
  fence: number | null;
}

/** What became of a slot. `result` is what the work returned. After `done`, `result` is a copy by JSON, or null if no result was stored. */
export type OnceAnswer<Result> =
  | {
      outcome: 'ran';
      slot: string;
      result: Result;
      fence: number;
      by: string;
      /** False if the slot is done without a result, because the result is no JSON, or more than 4 KiB of JSON. */
      stored: boolean;
    }
  | (DoneBy & { outcome: 'done'; result: Result | null })
  /** A later slot is done, so no caller works for this slot any more. `by`, `at` and `fence` are those of the later slot. */
  | (DoneBy & { outcome: 'superseded'; doneSlot: string; result?: undefined });

/** The answer for a slot, or a run, which must end by `complete` or `release`. */
export type Begun = Exclude<OnceAnswer<unknown>, { outcome: 'ran' }> | BegunRun;

export interface BegunRun {
  outcome: 'run';
  run: Lease & OnceRun;
  /**
   * Does the work. @throws what the work throws; HoldfastError LeaseLost if the run was lost before the work has returned, and the work has read the signal: it
   * may have stopped half way, so its result must not be stored
   */
  work<T>(act: (run: OnceRun) => T | Promise<T>): Promise<T>;
  /**
   * Stores the result, and ends the run. It asks the service even if the run has expired by the clocks of this process, because the service stores a result
   * until another caller takes the slot.
   * @param timeoutMs how long to retry, in milliseconds; the default is the longer of `timeoutMs` and `releaseTimeoutMs`
   * @returns whether the result was stored with the slot
   * @throws HoldfastError LeaseLost if the run was lost, so that the result is not stored; OutcomeUnknown if the slot may or may not be done
   */
  complete(result: unknown, timeoutMs?: number): Promise<boolean>;
  /** Frees the slot for the next caller, unless the run has ended. Never rejects. */
  release(timeoutMs?: number): Promise<boolean>;
}

/** The most bytes of JSON that a slot keeps. */
const MOST_BYTES = 4096;

/** How long to try to store a result, in milliseconds. */
const COMPLETE_MS = 30_000;

type Options = OnceOptions & SlotOptions & { linked?: AbortSignal | undefined };

/** `beginAny`, unless the time zone is wrong. The command leaves that to the service. @throws TypeError before anything is sent; HoldfastError */
export function begin(core: Core, key: string, holder: string, options: Options): Promise<Begun> {
  const { zone } = options;
  try {
    if (zone !== undefined) Intl.DateTimeFormat('en', { timeZone: zone });
  } catch {
    throw new TypeError(`zone must be an IANA name such as Europe/Berlin, not ${zone}`);
  }
  return beginAny(core, key, holder, options);
}

/** Begins the work of a slot, or gets its result. @throws HoldfastError as `Holdfast.once` */
export async function beginAny(core: Core, key: string, holder: string, options: Options): Promise<Begun> {
  let end = (grant: Grant, timeoutMs: number) => giveBack(core, grant, timeoutMs);
  const got = await obtain(core, key, holder, {
    ...options,
    once: { end: (...how) => end(...how), takeBack: (request) => takeBack(core, request, options.releaseTimeoutMs) },
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
  // After `complete`, this is the release of `complete`, which has thrown already.
  const release = (timeoutMs?: number) => lease.release(timeoutMs).catch(() => false);
  return { outcome: 'run', run: lease, work: (act) => workUnder(lease, act), complete, release };
}

/** The properties by which the work can learn that the run is lost. */
const TELLING = /^(signal|held|lost|assertHeld)$/;

async function workUnder<T>(lease: Lease & OnceRun, act: (run: OnceRun) => T | Promise<T>): Promise<T> {
  const { signal } = lease;
  /** Why the signal has fired: a loss, or the caller's own signal. A loss that the work could not see, because the event loop was blocked, has not stopped it. */
  let stopped: unknown = signal.aborted ? signal.reason : undefined;
  let isWatching = false;
  signal.addEventListener('abort', () => {
    stopped = lease.lost ?? signal.reason;
  });
  const run = new Proxy(lease, {
    get(target, name) {
      isWatching ||= TELLING.test(String(name));
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
  const stop = stayAlive(core.by);
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

/** The result as a field of the call. Without the field, the slot is done without a result. */
function storable(result: unknown): { result?: unknown } {
  try {
    const text = JSON.stringify(result) as string | undefined;
    if (text !== undefined && new TextEncoder().encode(text).length <= MOST_BYTES) return { result };
  } catch {
    // A cycle, or a BigInt. The work is done, so complete without a result.
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

/** Completes the slot. If the service refuses the result, completes without a result. */
async function store(core: Core, sent: Grant & { result?: unknown }, timeoutMs: number): Promise<Stored> {
  const hasResult = 'result' in sent;
  let tries = 0;
  try {
    const answer = await persist(core.by, { timeoutMs }, () => {
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

/** Ends a grant whose response was lost. A retry of the request receives the grant. */
async function takeBack(core: Core, request: RequestOf<'onceBegin'>, timeoutMs = RELEASE_MS): Promise<void> {
  const { key } = request;
  try {
    const answer = await insist(core, 'onceBegin', request, { timeoutMs, ms: timeoutMs / 2 });
    if ('leaseId' in answer) await giveBack(core, { key, leaseId: answer.leaseId }, timeoutMs);
  } catch (error) {
    // Another caller works, or the grant has ended: there is no grant to end.
    if (isHoldfastError(error, 'LeaseHeld') || isHoldfastError(error, 'LeaseLost')) return;
    core.emit({ type: 'released', key, confirmed: false, error });
  }
}
