import { mostWaitSeconds } from '../../../shared/rates/charge.ts';
import { assertTimes, attempt, type Core, insist, isTransient, persist } from './attempt.ts';
import { isHoldfastError } from './errors.ts';
import { RELEASE_MS } from './give-back.ts';
import type { Lease } from './lease.ts';
import { interruptible, type Moment, moment, since, sleep } from './surroundings.ts';
import type { AnswerOf, RequestOf } from './transport.ts';

/** A rate of a key: how many units may start in each period, and how many the work takes. */
export interface Rate {
  /** Tells the rates of a call apart. The default is `requests`. */
  name?: string | undefined;
  /** How many units each period has. */
  limit: number;
  /** The period, such as `1s`, `1m` or `1d`, at most 31 days. */
  per: string;
  /** How many units the work takes; the default is 1. */
  units?: number | undefined;
  /** How many units may start at once after the key was idle. The default is `units`, so that starts are spaced evenly. */
  burst?: number | undefined;
}

/** The rates of `acquire` and `withLease`. */
export interface RatesOptions {
  /** Up to four rates of the key. After the grant, the client reserves a start at these rates, and waits until then, within `waitMs`. */
  rates?: readonly Rate[] | undefined;
  /** True to report the units that the work really took by `settle`. */
  settle?: boolean | undefined;
}

/** One rate, or several. */
export type RateTerms = Rate | { rates: readonly Rate[] };

export const ratesOf = (terms: RateTerms): readonly Rate[] => ('rates' in terms ? terms.rates : [terms]);

export type RateOptions = RateTerms & {
  /**
   * How late the start may be, in milliseconds. The default is 0. `Infinity` is as long as the service allows: a week, with `settle` the longest period.
   */
  waitMs?: number | undefined;
  /** How long to retry after transient failures, beyond `waitMs`, in milliseconds. The default is 30,000. */
  timeoutMs?: number | undefined;
  /** Ends the wait, and cancels the reservation. */
  signal?: AbortSignal | undefined;
  /** True to report the units that the work really took by `settle`. */
  settle?: boolean | undefined;
  /** The name of the caller, which other callers see. */
  holder?: string | undefined;
  /** Called with the promise of the work that continues after an abort: cancelling the reservation. The promise never rejects. */
  waitUntil?: ((rest: Promise<unknown>) => void) | undefined;
};

/** A reserved start whose moment has come. */
export interface RateStart {
  /** The earliest start, by the clock of the service. ISO 8601. */
  readonly startAt: string;
  /** How long the call took, in milliseconds. */
  readonly waitedMs: number;
  /** Both lists of rates, if the caller before named other rates. The faster rate is kept. Otherwise undefined. */
  readonly rateChanged: AnswerOf<'rateReserve'>['rateChanged'];
  /**
   * Reports the units that the work really took, by the name of the rate. Needs the option `settle`. The estimate of a rate without units stands.
   * @returns false if the service did not confirm it: the service did not answer, or the reservation was settled before, or its 15 minutes were over
   * @throws HoldfastError InvalidRequest
   */
  settle(units: Readonly<Record<string, number>>): Promise<boolean>;
}

/** Reserves a start, and resolves at that moment. @param holder if the options name none @throws as `Holdfast.rate` */
export const start = (core: Core, key: string, holder: string, options: RateOptions): Promise<RateStart> =>
  // A pending request continues after an abort, so that its reservation can be cancelled.
  interruptible(options.signal, (resolve, reject) => {
    const { signal, waitUntil } = options;
    assertTimes(options);
    const starting = reserved(core, { key, holder: options.holder ?? holder, options }).then(resolve, reject);
    return () => signal?.aborted && waitUntil?.(starting);
  });

interface Asking {
  key: string;
  holder: string;
  options: RateOptions;
}

type Settlement = { units: Readonly<Record<string, number>> } | { cancel: true };

const settled = (core: Core, key: string, reservation: string, how: Settlement) =>
  insist(core, 'rateSettle', { key, reservation, ...how } as RequestOf<'rateSettle'>, { timeoutMs: RELEASE_MS });

async function reserved(core: Core, asking: Asking): Promise<RateStart> {
  const { by } = core;
  const { key, options } = asking;
  const startedAt = moment(by);
  const { reservation, startAt, waitMs, rateChanged } = await ask(core, asking, startedAt);
  const answeredAt = by.monotonic();
  const settle = (how: Settlement) => settled(core, key, reservation, how);
  try {
    // By the monotonic clock, because the wall clock may be set forward. In a loop, because timers may fire early.
    for (let leftMs = waitMs; leftMs > 0; leftMs = answeredAt + waitMs - by.monotonic())
      await sleep(by, leftMs, options.signal);
    options.signal?.throwIfAborted();
  } catch (reason) {
    await settle({ cancel: true }).catch(() => {});
    throw reason;
  }
  return {
    startAt,
    waitedMs: Math.round(since(by, startedAt)),
    rateChanged,
    settle: (units) =>
      settle({ units }).then(
        (answer) => 'settled' in answer && answer.settled,
        (error) => {
          if (isTransient(error)) return false;
          throw error;
        },
      ),
  };
}

async function ask(core: Core, { key, holder, options }: Asking, startedAt: Moment): Promise<AnswerOf<'rateReserve'>> {
  const { by } = core;
  const { waitMs = 0, timeoutMs, signal, settle, holder: _holder, waitUntil, ...terms } = options;
  const rates = ratesOf(terms);
  // One id for all tries, so that a retry after a lost answer does not pay again.
  const request = { key, holder, requestId: by.uuid(), rates, settle } as RequestOf<'rateReserve'>;
  for (;;) {
    const leftMs = Math.max(0, waitMs - since(by, startedAt));
    const waitSeconds = Math.min(mostWaitSeconds(rates, settle), Math.floor(leftMs / 1000));
    const once = () => attempt(core, 'rateReserve', { ...request, waitSeconds });
    try {
      return await persist(by, { timeoutMs, signal }, once);
    } catch (error) {
      // The answer to the last try may be lost. The same request receives its reservation again.
      if (signal?.aborted && !isHoldfastError(error, 'RateExceeded'))
        await once()
          .then(({ reservation }) => settled(core, key, reservation, { cancel: true }))
          .catch(() => {});
      if (!isHoldfastError(error, 'RateExceeded')) throw error;
      const { retryAfterMs, cap } = error;
      // An operator may lift a pause at any time. Otherwise the service counts whole seconds, and the rest of the wait may be enough.
      const isPaused = cap?.limit === 0 && leftMs > 0;
      if (!isPaused && !(retryAfterMs <= leftMs % 1000)) throw error;
      await sleep(by, Math.min(retryAfterMs, leftMs), signal);
    }
  }
}

/** What `underRates` needs beside the lease. */
interface UnderRates extends RatesOptions {
  rates: readonly Rate[];
  waitMs?: number | undefined;
  timeoutMs?: number | undefined;
  signal?: AbortSignal | undefined;
  waitUntil?: ((rest: Promise<unknown>) => void) | undefined;
}

/**
 * Reserves a start for the holder of a lease, within what is left of `waitMs`, and waits until then. If there is no start, releases the lease.
 * @throws as `start`; HoldfastError LeaseLost if the lease is lost before the start
 */
export async function underRates(
  core: Core,
  lease: Lease,
  { rates, settle, waitMs = 0, timeoutMs, signal, waitUntil }: UnderRates,
  startedAt: Moment,
): Promise<Lease> {
  const ending = signal ? AbortSignal.any([signal, lease.signal]) : lease.signal;
  const leftMs = Math.max(0, waitMs - since(core.by, startedAt));
  const options = { rates, settle, waitMs: leftMs, timeoutMs, signal: ending, waitUntil };
  try {
    const started = await start(core, lease.key, lease.holder, options);
    lease.assertHeld();
    return Object.assign(lease, { settle: started.settle });
  } catch (error) {
    const released = lease.release();
    if (signal?.aborted) waitUntil?.(released);
    else await released;
    throw error;
  }
}
