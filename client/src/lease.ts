import { attempt, backoff, type Core } from './attempt.ts';
import { type HoldfastError, isHoldfastError, type LossReason, leaseLost } from './errors.ts';
import { atMost, giveBack, RELEASE_MS } from './give-back.ts';
import { type Moment, moment, since } from './surroundings.ts';
import type { AnswerOf } from './transport.ts';
import { watch } from './watched-signal.ts';

export interface LeaseOptions {
  /** How long the lease lasts without a heartbeat, in seconds: 2 to 86,400, and 60 where it is not given. */
  ttlSeconds?: number | undefined;
  /** After how long it counts as lost even though heartbeats come through, in milliseconds. No limit where it is not given. */
  maxHoldMs?: number | undefined;
  /** How long a release may take, its retries included, in milliseconds; 5,000 where it is not given. */
  releaseTimeoutMs?: number | undefined;
}

/** Of `withLease`: `linked` aborts `signal` too. */
export interface LinkedOptions extends LeaseOptions {
  linked?: AbortSignal | undefined;
}

type Grant = AnswerOf<'heartbeat'>;

/** A wall clock that jumps, as after sleep, moves no timer: so often the clocks are asked. */
const LOOK_MS = 1000;

/** How long a heartbeat may take at most, in milliseconds. */
const BEAT_MS = 5000;

/** No timer is exact: `signal` aborts so long before the lease ends, in milliseconds, or a tenth of the ttl if that is less. */
const MARGIN_MS = 1000;

/**
 * A lease that is held, and kept by heartbeats until it is released or lost. Once lost, it stays lost. `held`, `signal`
 * and `assertHeld` ask the clocks each time: after a blocked event loop no timer has fired.
 */
export class Lease implements AsyncDisposable {
  readonly key: string;
  readonly holder: string;
  /** The fencing token. It rises with each grant of the key: pass it to the store that you write to. */
  readonly fence: number;
  /** The proof that heartbeat and release need. A secret. */
  readonly leaseId: string;
  readonly #core: Core;
  readonly #ttlMs: number;
  readonly #maxHoldMs: number;
  readonly #releaseTimeoutMs: number;
  readonly #grantedAt: Moment;
  readonly #controller = new AbortController();
  readonly #stop = new AbortController();
  #expiresAt = '';
  #sentAt!: Moment;
  #lastsMs = 0;
  /** Why it is over: it was lost or released. */
  #over: HoldfastError | undefined;
  #lost: HoldfastError | undefined;
  #beatAtMs = 0;
  #failures = 0;
  #beating: Promise<void> | undefined;
  #cancel = () => {};
  readonly #unlink: () => void;
  #released: Promise<boolean> | undefined;

  /**
   * @internal Only `acquire` makes them.
   * @param sentAt when the acquisition was sent
   */
  constructor(core: Core, grant: Grant & { waitedMs: number }, sentAt: Moment, options: LinkedOptions) {
    this.#core = core;
    this.key = grant.key;
    this.holder = grant.holder;
    this.fence = grant.fence;
    this.leaseId = grant.leaseId;
    this.#ttlMs = (options.ttlSeconds ?? 60) * 1000;
    this.#maxHoldMs = options.maxHoldMs ?? Number.POSITIVE_INFINITY;
    this.#releaseTimeoutMs = options.releaseTimeoutMs ?? RELEASE_MS;
    this.#grantedAt = sentAt;
    this.#extend(grant, sentAt, grant.waitedMs);
    watch(this.#controller.signal, () => this.#check());
    const { linked } = options;
    const abort = () => this.#controller.abort(linked?.reason);
    linked?.addEventListener('abort', abort);
    this.#unlink = () => linked?.removeEventListener('abort', abort);
    if (linked?.aborted) abort();
    this.#arm();
  }

  /** When the service ends the lease unless a heartbeat extends it. ISO 8601. */
  get expiresAt(): string {
    return this.#expiresAt;
  }

  /**
   * How long it is held for certain where no heartbeat comes through any more, by the clocks of this process; in
   * milliseconds. Not above 0 once that is over.
   */
  get remainingMs(): number {
    return this.#lastsMs - since(this.#core.by, this.#sentAt);
  }

  /** Whether the lease is held for certain: its clocks have not reached the end, and nobody said that it is lost. */
  get held(): boolean {
    return !this.#check();
  }

  /** How the lease was lost; undefined while it is held, and where it was released in time. */
  get lost(): HoldfastError | undefined {
    this.#check();
    return this.#lost;
  }

  /** Aborts before the lease ends, also where no answer comes, with the reason that `assertHeld` throws. */
  get signal(): AbortSignal {
    this.#check();
    return this.#controller.signal;
  }

  /** @throws HoldfastError LeaseLost, with the `reason` */
  assertHeld(): void {
    const over = this.#check();
    if (over) throw over;
  }

  /**
   * Gives the lease back, after a heartbeat that is under way. It is best effort, and never throws.
   * @returns whether the service confirmed it; otherwise the lease was lost, or ends by itself
   */
  release(): Promise<boolean> {
    this.#released ??= this.#release();
    return this.#released;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release().then(() => {});
  }

  #extend({ expiresAt, remainingMs }: Grant, sentAt: Moment, waitedMs = 0): void {
    this.#expiresAt = expiresAt;
    this.#sentAt = sentAt;
    this.#lastsMs = waitedMs + remainingMs - Math.min(MARGIN_MS, this.#ttlMs / 10);
    this.#failures = 0;
    // A third of the ttl after the last extension, which lies back where this grant is a repeated one.
    const pause = (this.#ttlMs / 3) * (0.8 + 0.2 * this.#core.by.random());
    this.#beatAtMs = waitedMs + remainingMs - this.#ttlMs + pause;
  }

  #check(): HoldfastError | undefined {
    if (!this.#over) {
      if (this.remainingMs <= 0) this.#lose('deadline');
      else if (since(this.#core.by, this.#grantedAt) >= this.#maxHoldMs) this.#lose('maxHold');
    }
    return this.#over;
  }

  #lose(reason: LossReason, holder?: string | null): void {
    const error = leaseLost(this.key, reason, holder);
    this.#lost = error;
    this.#end(error);
    this.#stop.abort(error);
    this.#core.emit({ type: 'lost', key: this.key, fence: this.fence, reason, error });
  }

  #end(error: HoldfastError): void {
    this.#over = error;
    this.#cancel();
    this.#unlink();
    this.#controller.abort(error);
  }

  #arm(): void {
    const { by } = this.#core;
    const passed = since(by, this.#sentAt);
    const beat = this.#beating ? LOOK_MS : this.#beatAtMs - passed;
    const hold = this.#maxHoldMs - since(by, this.#grantedAt);
    this.#cancel();
    this.#cancel = by.after(Math.max(1, Math.min(LOOK_MS, beat, hold, this.remainingMs)), () => this.#look(), true);
  }

  #look(): void {
    if (this.#check()) return;
    if (!this.#beating && since(this.#core.by, this.#sentAt) >= this.#beatAtMs) this.#beating = this.#beat();
    this.#arm();
  }

  async #beat(): Promise<void> {
    const { by, emit } = this.#core;
    const { key, leaseId, fence } = this;
    const sentAt = moment(by);
    // Half of what is left, so that there is time for another try where this one gets no answer.
    const ms = Math.max(50, Math.min(BEAT_MS, this.remainingMs / 2));
    try {
      const grant = await attempt(this.#core, 'heartbeat', { key, leaseId }, { ms, signal: this.#stop.signal });
      if (this.#isPast()) return;
      this.#extend(grant, sentAt);
      emit({ type: 'beat', key, fence, expiresAt: grant.expiresAt });
    } catch (error) {
      if (this.#isPast()) return;
      if (isHoldfastError(error, 'LeaseLost')) return this.#lose(error.reason, error.holder);
      this.#beatAtMs = since(by, this.#sentAt) + Math.min(backoff(by, this.#failures++, error), this.remainingMs / 2);
      emit({ type: 'beat', key, fence, expiresAt: this.#expiresAt, error });
    } finally {
      this.#beating = undefined;
      if (!this.#over) this.#arm();
    }
  }

  /** An answer after the end comes too late: others were told that the lease is lost. After a release it means nothing. */
  #isPast(): boolean {
    return this.#check() !== undefined;
  }

  async #release(): Promise<boolean> {
    const lost = this.#check();
    if (!lost) this.#end(leaseLost(this.key, 'released'));
    // By the service's word there is nothing to give back; by the clocks of this process there may be.
    else if (isHoldfastError(lost, 'LeaseLost') && !['deadline', 'maxHold'].includes(lost.reason)) return false;
    const { by } = this.#core;
    const startedAt = moment(by);
    if (this.#beating) await atMost(this.#core, this.#releaseTimeoutMs, this.#beating);
    return giveBack(this.#core, this, this.#releaseTimeoutMs - since(by, startedAt));
  }
}
