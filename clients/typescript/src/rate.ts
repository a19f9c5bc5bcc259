import { maxWaitSeconds } from '../../../shared/rates/charge.ts';
import { assertTimes, attempt, type Core, call, isTransient, retry } from './attempt.ts';
import { isHoldfastError } from './errors.ts';
import type { Lease } from './lease.ts';
import { RELEASE_MS } from './release.ts';
import { interruptible, type Moment, moment, since, sleep } from './surroundings.ts';
import type { AnswerOf, RequestOf } from './transport.ts';

/**
 * How many units may start in each period, and how many of them this work takes.
 * @example
 * await holdfast.rate('vendor', { rates: [{ limit: 50, per: '1m' }, { name: 'tokens', limit: 100_000, per: '1m', units: 1200 }] });
 */
export interface Rate {
  /** The name of the unit, such as `tokens`. The rates of a key have different names. The default is `requests`. */
  name?: string | undefined;
  /** How many units may start in each period. */
  limit: number;
  /** The period, such as `1s`, `1m` or `1d`, at most 31 days. */
  per: string;
  /** How many units the work takes, or an estimate that `settle` corrects. The default is 1. */
  units?: number | undefined;
  /** How many units may start together when the key has been idle. The default is `units`, so that starts are spaced evenly. */
  burst?: number | undefined;
}

/** The options with which `acquire` and `withLease` also respect rates. */
export interface RatesOptions {
  /** Up to four rates of the key. After the grant, the client reserves a start at these rates, and waits for that moment, within `waitMs`. */
  rates?: readonly Rate[] | undefined;
  /** True if the `units` are an estimate, which you correct with `lease.settle` after the work. */
  settle?: boolean | undefined;
}

/** One rate, or several. */
export type RateTerms = Rate | { rates: readonly Rate[] };

export const ratesOf = (terms: RateTerms): readonly Rate[] => ('rates' in terms ? terms.rates : [terms]);

export type RateOptions = RateTerms & {
  /**
   * How late the start may be, in milliseconds. The default is 0: the call fails with RateExceeded unless the work may start at once. `Infinity` waits as long as
   * the service allows: a week, or with `settle` the longest period.
   */
  waitMs?: number | undefined;
  /** How long to retry after transient failures, in milliseconds on top of `waitMs`. The default is 30,000. */
  timeoutMs?: number | undefined;
  /** Ends the wait when it aborts, and cancels the reservation, so that others may start earlier. */
  signal?: AbortSignal | undefined;
  /** True if the `units` are an estimate, which you correct by the `settle` of the answer after the work. */
  settle?: boolean | undefined;
  /** The name that operators see at the rates of the key. The default is the holder of the client. */
  holder?: string | undefined;
  /**
   * For a platform that freezes the process between two calls, such as Lambda. After an abort, it is called with the promise of cancelling the
   * reservation, which never rejects, so that the platform can wait for it.
   */
  waitUntil?: ((rest: Promise<unknown>) => void) | undefined;
};

/** A reserved start whose moment has come. */
export interface RateStart {
  /** The earliest start, by the clock of the service. ISO 8601. */
  readonly startAt: string;
  /** How long the call took, in milliseconds. */
  readonly waitedMs: number;
  /**
   * Set if the previous caller named other rates: both lists. The faster rate counts. Either you are changing the rates, or your callers disagree.
   */
  readonly rateChanged: AnswerOf<'rateReserve'>['rateChanged'];
  /**
   * Corrects the estimates: reports the units that the work really took, by the name of the rate. Needs the option `settle`. The estimate of a rate that
   * you do not name stands.
   * @returns false if the estimates stand: the service did not answer, or the reservation was settled before, or is older than 15 minutes
   * @throws HoldfastError InvalidRequest
   */
  settle(units: Readonly<Record<string, number>>): Promise<boolean>;
}

/** Reserves a start, and resolves at that moment. @param holder if the options name none @throws as `Holdfast.rate` */
export const start = (core: Core, key: string, holder: string, options: RateOptions): Promise<RateStart> =>
  // The pending request continues after an abort, so that its reservation can be cancelled.
  interruptible(options.signal, (resolve, reject) => {
    const { signal, waitUntil } = options;
    assertTimes(options);
    const starting = reserveStart(core, { key, holder: options.holder ?? holder, options }).then(resolve, reject);
    return () => signal?.aborted && waitUntil?.(starting);
  });

interface Reserving {
  key: string;
  holder: string;
  options: RateOptions;
}

type Settlement = { units: Readonly<Record<string, number>> } | { cancel: true };

const settleReservation = (core: Core, key: string, reservation: string, how: Settlement) =>
  call(core, 'rateSettle', { key, reservation, ...how } as RequestOf<'rateSettle'>, {
    timeoutMs: RELEASE_MS,
  });

async function reserveStart(core: Core, reserving: Reserving): Promise<RateStart> {
  const { surroundings } = core;
  const { key, options } = reserving;
  const startedAt = moment(surroundings);
  const { reservation, startAt, waitMs, rateChanged } = await reserveInTime(core, reserving, startedAt);
  const answeredAt = surroundings.monotonic();
  const settle = (how: Settlement) => settleReservation(core, key, reservation, how);
  try {
    // The monotonic clock counts, because the wall clock may be set forward. The loop is there because timers may fire early.
    for (let leftMs = waitMs; leftMs > 0; leftMs = answeredAt + waitMs - surroundings.monotonic())
      await sleep(surroundings, leftMs, options.signal);
    options.signal?.throwIfAborted();
  } catch (reason) {
    await settle({ cancel: true }).catch(() => {});
    throw reason;
  }
  return {
    startAt,
    waitedMs: Math.round(since(surroundings, startedAt)),
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

async function reserveInTime(
  core: Core,
  { key, holder, options }: Reserving,
  startedAt: Moment,
): Promise<AnswerOf<'rateReserve'>> {
  const { surroundings } = core;
  const { waitMs = 0, timeoutMs, signal, settle, holder: _holder, waitUntil, ...terms } = options;
  const rates = ratesOf(terms);
  // All tries have the same id, so that a retry after a lost answer does not pay again.
  const request = { key, holder, requestId: surroundings.uuid(), rates, settle } as RequestOf<'rateReserve'>;
  for (;;) {
    const leftMs = Math.max(0, waitMs - since(surroundings, startedAt));
    const waitSeconds = Math.min(maxWaitSeconds(rates, settle), Math.floor(leftMs / 1000));
    const send = () => attempt(core, 'rateReserve', { ...request, waitSeconds });
    try {
      return await retry(surroundings, { timeoutMs, signal }, send);
    } catch (error) {
      // The last try may have made a reservation whose answer was lost. The same request receives it again, so that it can be cancelled.
      if (signal?.aborted && !isHoldfastError(error, 'RateExceeded'))
        await send()
          .then(({ reservation }) => settleReservation(core, key, reservation, { cancel: true }))
          .catch(() => {});
      if (!isHoldfastError(error, 'RateExceeded')) throw error;
      const { retryAfterMs, cap } = error;
      // An operator may lift a pause at any time, so a paused caller asks again. Otherwise the service was asked for whole seconds only, and a start within the
      // rest of the wait is still possible.
      const isPaused = cap?.limit === 0 && leftMs > 0;
      if (!isPaused && !(retryAfterMs <= leftMs % 1000)) throw error;
      await sleep(surroundings, Math.min(retryAfterMs, leftMs), signal);
    }
  }
}

/** The options of `acquire` that `underRates` uses. */
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
  const leftMs = Math.max(0, waitMs - since(core.surroundings, startedAt));
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
