import { attempt, backoff, type Core, insist, isTransient, isUnknown } from './attempt.ts';
import { isHoldfastError } from './errors.ts';
import { giveBack, RELEASE_MS } from './give-back.ts';
import { Lease, type LeaseOptions, type LinkedOptions } from './lease.ts';
import { interruptible, type Moment, moment, type Surroundings, since, sleep } from './surroundings.ts';
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

type Grant = Extract<AnswerOf<'acquire'>, { leaseId: string }>;

/**
 * Acquires a lease, and waits for it as long as the caller likes.
 * @throws HoldfastError LeaseHeld where the wait is over, and as every call; the reason of the signal
 */
export async function acquire(
  core: Core,
  key: string,
  holder: string,
  options: AcquireOptions & LinkedOptions,
): Promise<Lease> {
  const { signal, ttlSeconds, data, execution, target } = options;
  signal?.throwIfAborted();
  const request = {
    key,
    holder: options.holder ?? holder,
    data,
    ...(ttlSeconds !== undefined && { ttlSeconds }),
    ...(execution && { execution }),
    ...(target && { target }),
  };
  const acquisition = new Acquisition(core, request, options);
  // The request that is under way when the signal aborts goes on, to give back what it brings.
  return interruptible(signal, (resolve, reject) => {
    acquisition.run().then((lease) => (signal?.aborted ? void lease.release() : resolve(lease)), reject);
    return () => {};
  });
}

class Acquisition {
  readonly #core: Core;
  readonly #by: Surroundings;
  readonly #options: AcquireOptions & LinkedOptions;
  readonly #request: RequestOf<'acquire'>;
  readonly #startedAt: Moment;
  /** One for all tries, so that a retry finds the grant of a try whose answer was lost. */
  #requestId: string;
  /** The last try whose answer was lost, and for how many milliseconds the service may still be at it. */
  #doubt: { from: Moment; ms: number } | undefined;

  constructor(core: Core, request: RequestOf<'acquire'>, options: AcquireOptions & LinkedOptions) {
    this.#core = core;
    this.#by = core.by;
    this.#options = options;
    this.#request = request;
    this.#startedAt = moment(core.by);
    this.#requestId = core.by.uuid();
  }

  async run(): Promise<Lease> {
    try {
      return await this.#ask();
    } catch (error) {
      const { from, ms } = this.#doubt ?? {};
      if (from && ms) this.#withdraw(Math.max(0, ms - since(this.#by, from)));
      throw error;
    }
  }

  async #ask(): Promise<Lease> {
    const { signal, timeoutMs = 30_000 } = this.#options;
    // Without a wait at first, to learn at once who holds it.
    let waitSeconds = 0;
    for (let failures = 0; ; ) {
      signal?.throwIfAborted();
      let pause = 0;
      const askedAt = moment(this.#by);
      try {
        const lease = await this.#askOnce(waitSeconds);
        if (lease) return lease;
      } catch (error) {
        const left = this.#waitLeftMs();
        if (isHoldfastError(error, 'LeaseHeld')) {
          if (left <= 0) throw error;
          this.#tellOf(error);
          // A deployment may allow shorter waits, or none.
          failures = since(this.#by, askedAt) < waitSeconds * 500 ? failures + 1 : 0;
          // The service waits whole seconds only, and the rest is waited here.
          pause = left < 1000 ? left : waitSeconds && backoff(this.#by, failures);
        } else {
          pause = backoff(this.#by, failures++, error);
          if (!isTransient(error) || pause >= left + timeoutMs) throw error;
        }
      }
      await sleep(this.#by, pause, signal);
      waitSeconds = Math.max(0, Math.min(MAX_WAIT_SECONDS, Math.floor(this.#waitLeftMs() / 1000)));
    }
  }

  /** Undefined where the grant came too late to be used. */
  async #askOnce(waitSeconds: number): Promise<Lease | undefined> {
    const sentAt = moment(this.#by);
    const request = { ...this.#request, requestId: this.#requestId, waitSeconds };
    let grant: Grant;
    try {
      grant = (await attempt(this.#core, 'acquire', request, { ms: waitSeconds * 1000 + ANSWER_MS })) as Grant;
    } catch (error) {
      if (isUnknown(error)) this.#doubt = { from: sentAt, ms: waitSeconds * 1000 + ANSWER_MS };
      throw error;
    }
    this.#doubt = undefined;
    const lease = new Lease(this.#core, grant, sentAt, this.#options);
    if (lease.held && !this.#options.signal?.aborted) {
      const { key, fence, expiresAt } = grant;
      this.#core.emit({ type: 'acquired', key, fence, expiresAt, waitedMs: since(this.#by, this.#startedAt) });
      return lease;
    }
    await lease.release();
    this.#requestId = this.#by.uuid(); // the service remembers the other one as released
    return undefined;
  }

  #waitLeftMs(): number {
    return (this.#options.waitMs ?? 0) - since(this.#by, this.#startedAt);
  }

  #tellOf({ key, holder, expiresAt }: { key: string; holder: string | null; expiresAt: string | null }): void {
    const from = new Date(this.#startedAt.wall).toISOString();
    this.#core.emit({ type: 'waiting', key, holder, since: from, expiresAt });
  }

  /**
   * Gives back what a try may have brought whose answer was lost. Asking once more finds that grant, or makes one, and
   * after its release the service refuses what is left of the first try.
   * @param leftMs how long the service may still wait for the lease on behalf of that try
   */
  async #withdraw(leftMs: number): Promise<void> {
    const { releaseTimeoutMs: timeoutMs = RELEASE_MS } = this.#options;
    const { key } = this.#request;
    try {
      const request = { ...this.#request, requestId: this.#requestId, ttlSeconds: 2 };
      const grant = (await insist(this.#core, 'acquire', request, { timeoutMs, tryMs: timeoutMs / 2 })) as Grant;
      await giveBack(this.#core, grant, timeoutMs);
    } catch (error) {
      if (isHoldfastError(error, 'LeaseLost')) return;
      if (leftMs > 0) this.#by.after(leftMs, () => this.#withdraw(0), true);
      else if (!isHoldfastError(error, 'LeaseHeld'))
        this.#core.emit({ type: 'released', key, confirmed: false, error });
    }
  }
}
