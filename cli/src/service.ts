import { type AcquireOptions, acquire } from '../../clients/typescript/src/acquire.ts';
import { type CallOptions, type Core, call } from '../../clients/typescript/src/attempt.ts';
import { bodyOf, MAX_BODY_BYTES, put } from '../../clients/typescript/src/blobs.ts';
import type { components } from '../../clients/typescript/src/contract.ts';
import { type Emit, emitter } from '../../clients/typescript/src/events.ts';
import type { Lease } from '../../clients/typescript/src/lease.ts';
import { type Begun, type OnceOptions, rawBegin, type SlotOptions } from '../../clients/typescript/src/once.ts';
import { paged } from '../../clients/typescript/src/pages.ts';
import { type RateOptions, type RateStart, start, underRates } from '../../clients/typescript/src/rate.ts';
import { acquireAll, type LeaseEntry, type Leases, type LeasesOptions } from '../../clients/typescript/src/several.ts';
import { type Moment, systemSurroundings } from '../../clients/typescript/src/surroundings.ts';
import type { AnswerOf, Operation, RequestOf, Transport } from '../../clients/typescript/src/transport.ts';

interface ServiceOptions {
  transport: Transport;
  namespace: string | undefined;
  /** The holder, if a call does not name one. */
  holder: string;
  onEvent?: Emit | undefined;
  /** How long to retry if a call does not say, in milliseconds. */
  timeoutMs?: number | undefined;
}

type Pages<O extends Operation> = Extract<AnswerOf<O>, { nextCursor: string | null }>;

export type Key = components['schemas']['Key'];
type ReadOnce = components['schemas']['OnceKey'];

/**
 * The calls of the service that the verbs need, with the retries of the client. It does not use the class of the client, because a bundler cannot remove the
 * methods of a class that no verb calls.
 */
export class Service {
  readonly #core: Core;
  readonly #holder: string;
  readonly #limits: CallOptions;

  constructor({ transport, namespace, holder, onEvent, timeoutMs }: ServiceOptions) {
    this.#core = { transport, namespace, surroundings: systemSurroundings, emit: emitter(onEvent) };
    this.#holder = holder;
    this.#limits = { timeoutMs };
  }

  /** Acquires a lease or a permit. @throws HoldfastError LeaseHeld, and as every call; the reason of the signal */
  acquire(key: string, options: AcquireOptions): Promise<Lease> {
    return acquire(this.#core, key, this.#holder, { ...this.#limits, ...options });
  }

  /** Acquires several leases or permits, in the same order for all callers. @throws HoldfastError as `acquire`, with the key that was refused */
  acquireAll(entries: LeaseEntry[], options: LeasesOptions): Promise<Leases> {
    const acquire = (key: string, leaseOptions: AcquireOptions) => this.acquire(key, leaseOptions);
    return acquireAll(this.#core.surroundings, acquire, entries, options);
  }

  /** Begins the work of a slot, or gets its result. @throws HoldfastError LeaseHeld, and as every call; the reason of the signal */
  async begin(key: string, options: OnceOptions & SlotOptions): Promise<Begun> {
    const begun = await rawBegin(this.#core, key, this.#holder, { ...this.#limits, ...options });
    if (begun.outcome !== 'run') return begun;
    return { ...begun, complete: (result) => begun.complete(result, this.#limits.timeoutMs) };
  }

  /** Waits for a start. @throws HoldfastError RateExceeded, and as every call; the reason of the signal */
  rate(key: string, options: RateOptions): Promise<RateStart> {
    return start(this.#core, key, this.#holder, { ...this.#limits, ...options });
  }

  /** Waits for a start under a lease. If there is no start, releases the lease. @throws as `rate`; HoldfastError LeaseLost */
  underRates(lease: Lease, options: Parameters<typeof underRates>[2], startedAt: Moment): Promise<Lease> {
    return underRates(this.#core, lease, { ...this.#limits, ...options }, startedAt);
  }

  /** Sends a call of the API. @throws HoldfastError */
  call<O extends Operation>(operation: O, request: RequestOf<O>, options?: CallOptions): Promise<AnswerOf<O>> {
    return call(this.#core, operation, request, { ...this.#limits, ...options });
  }

  /** Reads who holds a key, and counts the waiters. */
  readKey(key: string, request: Pick<RequestOf<'readLeases'>, 'waiters' | 'limit'> = {}, options?: CallOptions) {
    return this.call('readLeases', { key, ...request }, options) as Promise<Key>;
  }

  /** Reads a key of `once`: who works, and which slot is done. */
  readOnce(key: string, options?: CallOptions) {
    return this.call('readOnce', { key }, options) as Promise<ReadOnce>;
  }

  /** Yields the rows of a list, by pages of a thousand rows, or of the limit of the filter. */
  rows<O extends 'readLeases' | 'readNames' | 'readExpired' | 'readOnce' | 'readRates', Row>(
    operation: O,
    filter: Omit<RequestOf<O>, 'cursor'>,
    rowsOf: (page: Pages<O>) => Row[],
  ): AsyncGenerator<Row, void, undefined> {
    return paged(
      (cursor) => this.call(operation, { limit: 1000, ...filter, ...cursor } as RequestOf<O>) as Promise<Pages<O>>,
      rowsOf,
    );
  }

  /** Commits content of any size. @param send sends an upload */
  async commit(content: Blob, request: RequestOf<'commit'>, send: typeof fetch): Promise<AnswerOf<'commit'>> {
    const { contentType } = request;
    if (content.size <= MAX_BODY_BYTES) return this.call('commit', { ...request, ...(await bodyOf(content)) });
    const staged = await this.call('stageUpload', {
      ...(contentType !== undefined && { contentType }),
      sizeBytes: content.size,
    });
    const { surroundings } = this.#core;
    const source = await put({ ...this.#limits, surroundings, staged, body: () => content.slice(), fetch: send });
    return this.call('commit', { ...request, source });
  }
}
