import type { AcquireOptions, LockOptions, PermitOptions } from './acquire.ts';
import type { HoldfastError } from './errors.ts';
import type { Lease } from './lease.ts';
import { type Surroundings, sleep } from './surroundings.ts';

interface TermOptions {
  /** The work of the leader, until `lease.signal` aborts. The client waits for the lease again only after this promise has settled. */
  onElected(lease: Lease): unknown;
  /** Called after the work has stopped because its lease was lost, for example to log it. The client then waits for the lease again. */
  onLost?: ((error: HoldfastError) => unknown) | undefined;
}

export type LeadOptions = Omit<LockOptions, 'waitMs' | 'replace'> & PermitOptions & TermOptions;

type UnderLease = (options: AcquireOptions, work: (lease: Lease) => Promise<void>) => Promise<void>;

/** How often the leader checks its lease after `onElected` has returned, in milliseconds. */
const CHECK_MS = 1000;

/**
 * Waits to be the leader, leads, and waits again after each loss, until the signal aborts.
 * @throws what `onElected` and `onLost` throw, except the abort of `lease.signal`; HoldfastError if the lease cannot be acquired
 */
export async function lead(
  surroundings: Surroundings,
  underLease: UnderLease,
  { onElected, onLost, ...options }: LeadOptions,
): Promise<void> {
  const { signal } = options;
  while (!signal?.aborted) {
    let lost: HoldfastError | undefined;
    let elected = false;
    try {
      await underLease({ ...options, waitMs: Number.POSITIVE_INFINITY }, async (lease) => {
        elected = true;
        try {
          await onElected(lease);
        } catch (error) {
          if (!isAbort(error, lease.signal)) throw error;
        }
        while (!lease.signal.aborted) await sleep(surroundings, CHECK_MS, lease.signal).catch(() => {});
        lost = lease.lost;
      });
    } catch (error) {
      if (elected || !signal?.aborted) throw error;
    }
    if (lost) await onLost?.(lost);
  }
}

/** True if the error comes from the signal: `fetch` throws the reason of its signal, and Node's timers throw an error with the reason as its cause. */
const isAbort = (error: unknown, { aborted, reason }: AbortSignal): boolean =>
  aborted && (error === reason || (error as Error | undefined)?.cause === reason);
