import { attempt, backoff, type Core, insist, isTransient, isUnknown } from './attempt.ts';
import { isHoldfastError, unreachable } from './errors.ts';
import { giveBack, RELEASE_MS } from './give-back.ts';
import { keep, type Lease, type LeaseOptions, type LinkedOptions } from './lease.ts';
import { interruptible, type Moment, moment, since, sleep } from './surroundings.ts';
import type { AnswerOf, RequestOf } from './transport.ts';

export interface AcquireOptions extends LeaseOptions {
  /**
   * How long to wait for a lease that another caller holds, in milliseconds: 0 where it is not given, `Infinity` for as
   * long as it takes.
   */
  waitMs?: number | undefined;
  /** How long to go on, beyond `waitMs`, after failures that may pass, in milliseconds; 30,000 where it is not given. */
  timeoutMs?: number | undefined;
  /** Ends the wait. A grant that comes all the same is given back. */
  signal?: AbortSignal | undefined;
  /** Who holds the lease, shown to others. */
  holder?: string | undefined;
  /** Any JSON up to 4 KiB, shown to others. */
  data?: unknown;
  /** The ARN of the Standard execution that will hold the lease. Its end frees the lease. */
  execution?: string | undefined;
  /** The ARN of an execution that works under the lease. While it runs, the lease stays. Needs `execution`. */
  target?: string | undefined;
}

/** The longest that the service waits inside a call, in seconds. */
const MAX_WAIT_SECONDS = 20;

/** What the service may take to answer besides, in milliseconds. */
const ANSWER_MS = 10_000;

type Request = RequestOf<'acquire'>;
type Grant = Extract<AnswerOf<'acquire'>, { leaseId: string }>;

/**
 * Acquires a lease, and waits for it as long as the caller likes.
 * @throws HoldfastError LeaseHeld where the wait is over, and as every call; the reason of the signal
 */
export const acquire = (
  core: Core,
  key: string,
  defaultHolder: string,
  options: AcquireOptions & LinkedOptions,
): Promise<Lease> =>
  // The request that is under way when the signal aborts goes on, to give back what it brings.
  interruptible(options.signal, (resolve, reject) => {
    const { holder = defaultHolder, ttlSeconds, data, execution, target } = options;
    const request = { key, holder, ttlSeconds, data, execution, target } as Request;
    ask(core, request, options).then(
      (lease) => (options.signal?.aborted ? void lease.release() : resolve(lease)),
      reject,
    );
    return () => {};
  });

/** Asks until the lease is granted, the wait is over, or asking is of no use. @throws as `acquire` */
async function ask(core: Core, request: Request, options: AcquireOptions & LinkedOptions): Promise<Lease> {
  const { by, emit } = core;
  const { signal, waitMs = 0, timeoutMs = 30_000 } = options;
  const startedAt = moment(by);
  const waitLeftMs = () => waitMs - since(by, startedAt);
  /** One for all tries, so that a retry finds the grant of a try whose answer was lost. */
  let requestId = by.uuid();
  /** What the service asks to send along, such as the place in line. */
  let retryWith: Record<string, string> | undefined;
  /** When the last try was sent whose answer was lost, and for how many milliseconds the service may be at it. */
  let doubt: [Moment, number] | undefined;

  /** The service remembers the other id as released. */
  const askAnew = () => {
    requestId = by.uuid();
    retryWith = undefined;
  };

  const askOnce = async (waitSeconds: number): Promise<Lease> => {
    const sentAt = moment(by);
    const ms = waitSeconds * 1000 + ANSWER_MS;
    let grant: Grant;
    try {
      grant = (await attempt(core, 'acquire', { ...request, requestId, ...retryWith, waitSeconds }, { ms })) as Grant;
    } catch (error) {
      if (isUnknown(error)) doubt = [sentAt, ms];
      if (!isHoldfastError(error, 'LeaseLost') || error.reason === 'cancelled') throw error;
      // An earlier try had brought a grant, and an operator ended it before anybody knew.
      askAnew();
      throw unreachable('the grant was ended unseen', error);
    }
    doubt = undefined;
    const lease = keep(core, grant, sentAt, options);
    if (lease.held && !signal?.aborted) {
      const { key, fence, expiresAt } = grant;
      emit({ type: 'acquired', key, fence, expiresAt, waitedMs: since(by, startedAt) });
      return lease;
    }
    await lease.release();
    askAnew();
    signal?.throwIfAborted();
    const { lost } = lease;
    throw isHoldfastError(lost, 'LeaseLost') && lost.reason === 'maxHold'
      ? lost
      : unreachable('the grant came too late');
  };

  try {
    // Without a wait at first, to learn at once who holds it.
    for (let waitSeconds = 0, failures = 0; ; ) {
      signal?.throwIfAborted();
      const askedAt = moment(by);
      let pause: number;
      try {
        return await askOnce(waitSeconds);
      } catch (error) {
        const leftMs = waitLeftMs();
        if (isHoldfastError(error)) retryWith = { ...retryWith, ...error.retryWith };
        if (isHoldfastError(error, 'LeaseHeld')) {
          if (leftMs <= 0) throw error;
          const { key, holder, expiresAt } = error;
          emit({ type: 'waiting', key, holder, since: new Date(startedAt[0]).toISOString(), expiresAt });
          // A deployment may allow shorter waits, or none.
          failures = since(by, askedAt) < waitSeconds * 500 ? failures + 1 : 0;
          // The service waits whole seconds only, and the rest is waited here.
          pause = leftMs < 1000 ? leftMs : waitSeconds && backoff(by, failures);
        } else {
          pause = backoff(by, failures++, error);
          if (!isTransient(error) || pause >= leftMs + timeoutMs) throw error;
        }
      }
      await sleep(by, pause, signal);
      waitSeconds = Math.max(0, Math.min(MAX_WAIT_SECONDS, Math.floor(waitLeftMs() / 1000)));
    }
  } catch (error) {
    if (doubt) withdraw(core, { ...request, requestId }, options, Math.max(0, doubt[1] - since(by, doubt[0])));
    throw error;
  }
}

/**
 * Gives back what a try may have brought whose answer was lost. Asking once more finds that grant, or makes one, and
 * after its release the service refuses what is left of the first try.
 * @param leftMs how long the service may still wait for the lease on behalf of that try
 */
async function withdraw(core: Core, request: Request, options: LeaseOptions, leftMs: number): Promise<void> {
  const { releaseTimeoutMs: timeoutMs = RELEASE_MS } = options;
  try {
    const grant = await insist(core, 'acquire', { ...request, ttlSeconds: 2 }, { timeoutMs, ms: timeoutMs / 2 });
    await giveBack(core, grant as Grant, timeoutMs);
  } catch (error) {
    if (isHoldfastError(error, 'LeaseLost')) return;
    if (leftMs > 0) core.by.after(leftMs, () => withdraw(core, request, options, 0), true);
    else if (!isHoldfastError(error, 'LeaseHeld'))
      core.emit({ type: 'released', key: request.key, confirmed: false, error });
  }
}
