import { type AcquireOptions, acquire } from './acquire.ts';
import { Calls } from './calls.ts';
import { optionsIn } from './environment.ts';
import { type LeadOptions, lead } from './lead.ts';
import type { Lease } from './lease.ts';
import type { Begun, OnceAnswer, OnceOptions, OnceRun, SlotOptions } from './once.ts';
import type { RateOptions, RateStart } from './rate.ts';
import type { FromEnvOptions } from './requests.ts';
import type { LeaseEntry, Leases, LeasesOptions } from './several.ts';
import { moment, stayAlive } from './surroundings.ts';
import { traced } from './tracing.ts';
import { type OnHeldOptions, optionsAndWork, unlessHeld, type Work } from './work.ts';

/**
 * A client of one deployment. Make one for the whole process: it keeps no connection and no timer of its own, so there is nothing to close.
 *
 * The process stays alive while the work of `withLease` and `lead` runs. A lease that you acquire yourself does not keep the process alive.
 * @example
 * const holdfast = new Holdfast({ endpoint: 'http://127.0.0.1:3000', holder: 'worker-1' });
 */
export class Holdfast extends Calls {
  /**
   * Makes a client from the environment: `HOLDFAST_ENDPOINT`, `HOLDFAST_HOLDER`, `HOLDFAST_NAMESPACE`, `HOLDFAST_TOKEN`, the AWS region and the AWS
   * credentials. The command reads the same variables. The options take precedence.
   * @throws TypeError if the endpoint or the holder is missing, and as the constructor
   * @example
   * const holdfast = Holdfast.fromEnv({ holder: 'billing' });
   */
  static fromEnv(options: FromEnvOptions = {}): Holdfast {
    return new Holdfast(optionsIn(globalThis.process?.env ?? {}, options));
  }

  /**
   * Acquires a lease, and extends it by heartbeats until you release it or it is lost. With `rates`, it then waits for a start. If the lease is for one
   * piece of work, `withLease` also releases it for you.
   * @throws HoldfastError LeaseHeld if other callers hold the key until the end of the wait; RateExceeded if the start would be after the wait; the
   * errors of every call
   * @example
   * await using lease = await holdfast.acquire('nightly', { ttlSeconds: 60, waitMs: 10_000 });
   */
  acquire(key: string, options: AcquireOptions = {}): Promise<Lease> {
    return this.#acquire(key, options);
  }

  #acquire(key: string, { rates, settle, ...options }: AcquireOptions, linked?: AbortSignal): Promise<Lease> {
    return traced('acquire', { 'holdfast.key': key }, async (span) => {
      const later = rates && (await import('./rate.ts')).underRates; // most callers never load it
      const startedAt = moment(this.core.surroundings);
      const lease = await acquire(this.core, key, this.holder, { ...options, linked });
      span?.setAttribute('holdfast.fence', lease.fence);
      return later ? later(this.core, lease, { ...options, rates, settle }, startedAt) : lease;
    });
  }

  /**
   * Runs some work under a lease, and releases the lease after the work, even if the work fails. The signal of the options ends the wait, and later aborts
   * `lease.signal`. The process stays alive until the work ends.
   * @returns what the work returns; with `onHeld: 'skip'`, undefined if the key was not granted
   * @throws what the work throws; HoldfastError LeaseLost if the work succeeds after the lease was lost; the errors of `acquire`; TypeError if there is no work
   * @example
   * await holdfast.withLease('nightly', { waitMs: 600_000 }, (lease) => buildReport({ signal: lease.signal, fence: lease.fence }));
   */
  withLease<T>(key: string, work: Work<Lease, T>): Promise<T>;
  withLease<T>(key: string, options: AcquireOptions & OnHeldOptions<'throw'>, work: Work<Lease, T>): Promise<T>;
  withLease<T>(
    key: string,
    options: AcquireOptions & OnHeldOptions<'throw' | 'skip'>,
    work: Work<Lease, T>,
  ): Promise<T | undefined>;
  async withLease<T>(key: string, ...rest: unknown[]): Promise<T | undefined> {
    const [options, work] = optionsAndWork<AcquireOptions, Lease, T>(rest);
    return this.#withLease(key, options, async (lease) => {
      const result = await work(lease);
      if (lease.lost) throw lease.lost;
      return result;
    });
  }

  #withLease<T>(
    key: string,
    { onHeld, ...options }: AcquireOptions & OnHeldOptions<'throw' | 'skip'>,
    work: (lease: Lease) => Promise<T>,
  ) {
    return traced('withLease', { 'holdfast.key': key }, async (): Promise<T | undefined> => {
      const lease = await unlessHeld(onHeld, this.#acquire(key, options, options.signal));
      if (!lease) return undefined;
      const end = stayAlive(this.core.surroundings);
      try {
        return await work(lease);
      } finally {
        await lease.release();
        end();
      }
    });
  }

  /**
   * Runs some work under several leases or permits, for example at most five calls of a tenant and twenty in total. All callers acquire their keys in the same
   * order (deeper paths first), so that they cannot block each other for good. `held.signal` aborts when any of the leases is lost.
   * @returns what the work returns; with `onHeld: 'skip'`, undefined if a key was not granted
   * @throws what the work throws; HoldfastError LeaseLost if the work succeeds after a loss; LeaseHeld with the `key` that was refused; InvalidRequest if
   * two entries have the same key; the errors of `acquire`; TypeError if there is no work
   * @example
   * const entries = [{ key: `openai/${tenant}`, limit: 5 }, { key: 'openai', limit: 20 }];
   * await holdfast.withLeases(entries, { waitMs: 60_000 }, (held) => ask(prompt, { signal: held.signal }));
   */
  withLeases<T>(entries: readonly LeaseEntry[], work: Work<Leases, T>): Promise<T>;
  withLeases<T>(
    entries: readonly LeaseEntry[],
    options: LeasesOptions & OnHeldOptions<'throw'>,
    work: Work<Leases, T>,
  ): Promise<T>;
  withLeases<T>(
    entries: readonly LeaseEntry[],
    options: LeasesOptions & OnHeldOptions<'throw' | 'skip'>,
    work: Work<Leases, T>,
  ): Promise<T | undefined>;
  withLeases<T>(entries: readonly LeaseEntry[], ...rest: unknown[]): Promise<T | undefined> {
    return traced('withLeases', {}, async () => {
      const [{ onHeld, ...common }, work] = optionsAndWork<LeasesOptions, Leases, T>(rest);
      const { acquireAll } = await import('./several.ts'); // most callers never load it
      const acquire = (key: string, options: AcquireOptions) => this.#acquire(key, options);
      const held = await unlessHeld(onHeld, acquireAll(this.core.surroundings, acquire, entries, common));
      if (!held) return undefined;
      const stop = stayAlive(this.core.surroundings);
      try {
        const result = await work(held);
        if (held.lost) throw held.lost;
        return result;
      } finally {
        await held.release();
        stop();
      }
    });
  }

  /**
   * Waits until the work may start, so that all callers together start no more units in a period than the rate allows. An abort before the start cancels the
   * reservation.
   * @throws HoldfastError RateExceeded at once if the start would be later than `waitMs`; the errors of every call; the reason of the signal
   * @example
   * await holdfast.rate('vendor', { limit: 50, per: '1m', waitMs: 600_000 });
   */
  rate(key: string, options: RateOptions): Promise<RateStart> {
    return traced('rate', { 'holdfast.key': key }, async () =>
      (await import('./rate.ts')).start(this.core, key, this.holder, options),
    );
  }

  /**
   * Runs some work once for a slot, such as a backup for each day. One caller at a time works, and when the work has returned, all other callers receive its
   * result until `keepSeconds` are over. If the work throws or the process ends, the next caller works.
   *
   * If the run is lost while it works, and the work has read `run.signal`, the work may have stopped half way, so its result is not stored. The result of
   * work that has not read the signal is stored, unless another caller has taken the slot.
   * @returns `ran` with what the work returned, `done` with what an earlier run has stored, or `superseded` if a later slot is done; with `onHeld: 'skip'`,
   * undefined if another caller still works
   * @throws HoldfastError LeaseHeld if another caller still works when the wait is over; Conflict if the slot is done with another `inputHash`, or if a slot
   * that sorts after every period of `per` is done; LeaseLost if the run was lost before the result was stored; OutcomeUnknown if the work has run, and no
   * answer says whether the slot is done; what the work throws; TypeError if `work` is not a function or `zone` is not a time zone; the errors of every call
   * @example
   * const { outcome, by } = await holdfast.once('backup', { per: '1d', ttlSeconds: 600 }, (run) => backup(run.signal, run.fence));
   */
  once<T>(key: string, work: Work<OnceRun, T>): Promise<OnceAnswer<T>>;
  once<T>(
    key: string,
    options: OnceOptions & SlotOptions & OnHeldOptions<'throw'>,
    work: Work<OnceRun, T>,
  ): Promise<OnceAnswer<T>>;
  once<T>(
    key: string,
    options: OnceOptions & SlotOptions & OnHeldOptions<'throw' | 'skip'>,
    work: Work<OnceRun, T>,
  ): Promise<OnceAnswer<T> | undefined>;
  once<T>(key: string, ...rest: unknown[]): Promise<OnceAnswer<T> | undefined> {
    return traced('once', { 'holdfast.key': key }, async () => {
      const [{ onHeld, ...runOptions }, work] = optionsAndWork<OnceOptions & SlotOptions, OnceRun, T>(rest);
      const begun = await unlessHeld(onHeld, this.beginRun(key, { ...runOptions, linked: runOptions.signal }));
      return begun && (await import('./once.ts')).runOnce(this.core, begun, work);
    });
  }

  /** @internal Begins a run for the wrappers of handlers, which end the run themselves. */
  async beginRun(
    key: string,
    options: OnceOptions & SlotOptions & { linked?: AbortSignal | undefined },
  ): Promise<Begun> {
    const { begin } = await import('./once.ts'); // most callers never load it
    return begin(this.core, key, this.holder, options);
  }

  /**
   * Makes one of several processes the leader at any time, for example to run a scheduler. Waits for the lease, calls `onElected`, and waits again after a
   * loss, until the signal aborts.
   * @throws what `onElected` and `onLost` throw; HoldfastError if the lease cannot be acquired, however long the wait
   * @example
   * await holdfast.lead('scheduler', { signal, onElected: (lease) => schedule(lease.signal) });
   */
  lead(key: string, options: LeadOptions): Promise<void> {
    return lead(this.core.surroundings, (leaseOptions, work) => this.#withLease(key, leaseOptions, work), options);
  }
}
