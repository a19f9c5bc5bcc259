import { type AcquireOptions, acquire } from './acquire.ts';
import { type CallOptions, type Core, insist } from './attempt.ts';
import type { Upload } from './content.ts';
import type { components } from './contract.ts';
import { emitter } from './events.ts';
import { httpTransport } from './http.ts';
import { type LeadOptions, lead } from './lead.ts';
import type { Lease } from './lease.ts';
import { paged } from './pages.ts';
import type { Bare, CommitRequest, Filter, HoldfastOptions, Plain } from './requests.ts';
import { ROUTES } from './routes.ts';
import type { LeaseEntry, Leases, LeasesOptions } from './several.ts';
import { type Surroundings, stayAlive, systemSurroundings } from './surroundings.ts';
import { traced } from './tracing.ts';
import { type AnswerOf, assertNamespace, type Operation, type RequestOf } from './transport.ts';

type Schemas = components['schemas'];
type StageRequest = RequestOf<'stageUpload'>;
type ReadKey = Schemas['LeaseWithQueue'] | Schemas['Pool'];
type ReadOne = Pick<RequestOf<'readLeases'>, 'waiters' | 'limit'>;

/**
 * A client of one deployment. The client has no connection and no timer of its own. The work of `withLease` and `lead` keeps the process alive
 * until the work ends. The timers of a lease keep no process alive.
 */
export class Holdfast {
  /** @internal */
  readonly surroundings: Surroundings;
  readonly #core: Core;
  readonly #holder: string;
  readonly #fetch: typeof fetch | undefined;

  /** @throws TypeError if the endpoint is not a URL, the namespace is not valid, or credentials come without a region */
  constructor(options: HoldfastOptions) {
    const by = options.surroundings ?? systemSurroundings;
    this.surroundings = by;
    const { namespace } = options;
    assertNamespace(namespace);
    const transport = 'transport' in options ? options.transport : httpTransport(options, by.wall);
    this.#core = { transport, namespace, by, emit: emitter(options.onEvent) };
    this.#holder = options.holder;
    this.#fetch = options.fetch;
  }

  /**
   * Acquires a lease and keeps it by heartbeats, until it is released or lost.
   * @throws HoldfastError LeaseHeld if another caller holds it until the wait is over; WrongKind, at once, if other callers use the key as the
   * other kind; and the errors of every call
   * @example
   * await using lease = await holdfast.acquire('nightly', { ttlSeconds: 60, waitMs: 10_000 });
   */
  acquire(key: string, options: AcquireOptions = {}): Promise<Lease> {
    return this.#acquire(key, options);
  }

  #acquire(key: string, options: AcquireOptions, linked?: AbortSignal): Promise<Lease> {
    return traced('acquire', { 'holdfast.key': key }, async (span) => {
      const lease = await acquire(this.#core, key, this.#holder, { ...options, linked });
      span?.setAttribute('holdfast.fence', lease.fence);
      return lease;
    });
  }

  /**
   * Runs some work under a lease, and gives the lease back however the work ends. The signal of the options ends the
   * wait, and aborts `lease.signal`. The process stays alive until the work ends.
   * @throws what the work throws; HoldfastError LeaseLost if the work succeeds after the lease was lost; the errors of `acquire`
   * @example
   * await holdfast.withLease('nightly', { waitMs: 600_000 }, (lease) => buildReport({ signal: lease.signal, fence: lease.fence }));
   */
  withLease<T>(key: string, work: (lease: Lease) => T | Promise<T>): Promise<T>;
  withLease<T>(key: string, options: AcquireOptions, work: (lease: Lease) => T | Promise<T>): Promise<T>;
  withLease<T>(key: string, ...[first, second]: unknown[]): Promise<T> {
    const work = (second ?? first) as (lease: Lease) => T | Promise<T>;
    return this.#withLease(key, second ? (first as AcquireOptions) : {}, async (lease) => {
      const result = await work(lease);
      if (lease.lost) throw lease.lost;
      return result;
    });
  }

  #withLease<T>(key: string, options: AcquireOptions, work: (lease: Lease) => Promise<T>): Promise<T> {
    return traced('withLease', { 'holdfast.key': key }, async () => {
      const lease = await this.#acquire(key, options, options.signal);
      const end = stayAlive(this.#core.by);
      try {
        return await work(lease);
      } finally {
        await lease.release();
        end();
      }
    });
  }

  /**
   * Runs some work under several leases or permits, for example at most five of a tenant and twenty in total. They are acquired in one order for all
   * callers, deeper paths first, kept by heartbeats, and released in the reverse order. `held.signal` aborts with the first loss.
   * @throws what the work throws; HoldfastError LeaseLost if the work succeeds after a loss; LeaseHeld with the `key` that was refused; InvalidRequest if
   * two entries have one key; the errors of `acquire`
   * @example
   * const entries = [{ key: `openai/${tenant}`, limit: 5 }, { key: 'openai', limit: 20 }];
   * await holdfast.withLeases(entries, { waitMs: 60_000 }, (held) => ask(prompt, { signal: held.signal }));
   */
  withLeases<T>(entries: readonly LeaseEntry[], work: (held: Leases) => T | Promise<T>): Promise<T>;
  withLeases<T>(
    entries: readonly LeaseEntry[],
    options: LeasesOptions,
    work: (held: Leases) => T | Promise<T>,
  ): Promise<T>;
  withLeases<T>(entries: readonly LeaseEntry[], ...[first, second]: unknown[]): Promise<T> {
    const work = (second ?? first) as (held: Leases) => T | Promise<T>;
    return traced('withLeases', {}, async () => {
      const { acquireAll } = await import('./several.ts'); // most callers never load it
      const acquire = (key: string, options: AcquireOptions) => this.#acquire(key, options);
      const held = await acquireAll({ by: this.surroundings, acquire }, entries, second ? (first as object) : {});
      const stop = stayAlive(this.surroundings);
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
   * Leads whenever it holds the lease, until the signal aborts: waits, calls `onElected`, and waits again after a loss.
   * @throws what `onElected` and `onLost` throw; HoldfastError if no wait can succeed
   * @example
   * await holdfast.lead('scheduler', { signal, onElected: (lease) => schedule(lease.signal) });
   */
  lead(key: string, options: LeadOptions): Promise<void> {
    return lead(this.#core.by, (own, work) => this.#withLease(key, own, work), options);
  }

  /**
   * Any call of the API, with the retries of all the others.
   * @throws HoldfastError as docs/api/errors.md lists, and Unreachable or Refused; the reason of the signal
   */
  call<O extends Operation>(operation: O, request: RequestOf<O>, options?: CallOptions): Promise<AnswerOf<O>> {
    return traced(operation, {}, () => insist(this.#core, operation, request, options));
  }

  /**
   * Parks a task of Step Functions (`taskToken`) or a callback of a durable function (`callbackId`) in the line of a key. The grant follows as the
   * output of the task, or as the result of the callback.
   * @throws the errors of every call, and QueueFull
   */
  park(
    request: Omit<RequestOf<'acquire'>, 'holder' | 'waitSeconds'> & ({ taskToken: string } | { callbackId: string }),
    options?: CallOptions,
  ) {
    // A callback names its request, so that each run of its submitter is one request.
    const own = 'callbackId' in request && { requestId: undefined };
    return this.call(
      'acquire',
      { holder: this.#holder, ...own, ...request } as RequestOf<'acquire'>,
      options,
    ) as Promise<Schemas['Parked']>;
  }

  /** Reads a lease, or a pool with its holders: `kind` tells which. The answer has the number of waiters in line, and with `waiters` a list of them. */
  readLease(key: string, request: ReadOne = {}, options?: CallOptions): Promise<ReadKey> {
    return this.call('readLeases', { key, ...request }, options) as Promise<ReadKey>;
  }

  /** Lists the keys that match the filter, leases and pools, page by page. With `sort`, each page costs a read of the whole table. */
  leases(filter: Omit<Filter<'readLeases'>, 'key' | 'waiters'> = {}, options?: CallOptions) {
    return paged(
      (cursor) => this.call('readLeases', { ...filter, ...cursor }, options) as Promise<Schemas['KeyPage']>,
      (page) => page.leases,
    );
  }

  /** Ends the lease or the permit with the fence that an operator saw. */
  declare readonly breakLease: Plain<'breakLease'>;

  /** Takes a parked task or a waiting call out of the line of its key. */
  declare readonly cancelWaiter: Plain<'cancelWaiter'>;

  /**
   * Creates or replaces an object on a precondition. Content above 1 MiB is uploaded first.
   * @throws HoldfastError InvalidRequest if a stream does not have `sizeBytes`, or needs it; and the errors of every call
   */
  async commit({ body, sizeBytes, ...request }: CommitRequest, options?: CallOptions): Promise<AnswerOf<'commit'>> {
    const { contentType } = request;
    const upload = (content: Upload) => this.upload(content, { contentType, sizeBytes } as StageRequest, options);
    const content = body === undefined ? {} : await (await import('./content.ts')).partOf(body, sizeBytes, upload);
    return this.call('commit', { ...request, ...content }, options);
  }

  /**
   * Commits under the fence of a lease: once a later holder has written the object, an earlier one no longer can.
   * @throws HoldfastError LeaseLost if the lease is lost before anything is sent; FenceRejected
   */
  async commitUnder(lease: Lease, request: Omit<CommitRequest, 'fence'>, options?: CallOptions) {
    lease.assertHeld();
    return this.commit({ ...request, fence: { key: lease.key, token: lease.fence } }, options);
  }

  /** The object at a path, without its content. */
  declare readonly readCommit: Plain<'readCommit'>;

  /** The commits that are under way, page by page. */
  commitsInFlight(filter: Filter<'readInFlight'> = {}, options?: CallOptions) {
    return paged(
      (cursor) => this.call('readInFlight', { ...filter, ...cursor }, options),
      (page) => page.commits,
    );
  }

  /** Where to put an upload. `upload` puts it there too. */
  declare readonly stageUpload: Bare<'stageUpload'>;

  /**
   * Uploads content that a commit then names as its `source`. A stream above 16 MiB needs `sizeBytes`. If the platform
   * can stream requests, a stream is sent while it is read. It is sent once; a Blob is sent again after transient failures.
   * @returns the `uploadId`
   */
  async upload(content: Upload, request: StageRequest = {}, options: CallOptions = {}): Promise<string> {
    const { uploaded } = await import('./content.ts');
    const stage = (sizeBytes?: number) => this.stageUpload({ ...request, ...(sizeBytes && { sizeBytes }) }, options);
    return uploaded(content, { ...options, ...request, stage, by: this.#core.by, fetch: this.#fetch });
  }

  /** For operators: replaces or lifts the fence of an object. */
  declare readonly resetFence: Plain<'resetFence'>;

  /** Any operation of the nameservice. */
  declare readonly publish: Plain<'publish'>;

  /** The whole record of an alias. */
  readName(alias: string, options?: CallOptions): Promise<Schemas['NameserviceRecord']> {
    return this.call('readNames', { alias }, options) as Promise<Schemas['NameserviceRecord']>;
  }

  /** All records of the nameservice that the filter lets through, page by page. */
  names(filter: Omit<Filter<'readNames'>, 'alias'> = {}, options?: CallOptions) {
    return paged(
      (cursor) => this.call('readNames', { ...filter, ...cursor }, options) as Promise<Schemas['RecordPage']>,
      (page) => page.records,
    );
  }

  /** For operators: undoes what `publish` cannot undo. */
  declare readonly repairNames: Plain<'repairNames'>;

  /** Starts a report of expired records now. If no answer comes, the report may still run: `readExpired` finds it later. */
  declare readonly report: Bare<'report'>;

  /** The summary of the last complete report, or of a given one, with its first rows. */
  declare readonly readExpired: Bare<'readExpired'>;

  /** All rows of a report that the filter lets through, page by page. */
  expired(filter: Filter<'readExpired'> = {}, options?: CallOptions) {
    return paged(
      (cursor) => this.call('readExpired', { ...filter, ...cursor }, options),
      (page) => page.rows,
    );
  }

  /** Deletes a page of reported records, or says what it would delete (`dryRun`, which is the default). */
  declare readonly clean: Bare<'clean'>;

  /** The identity by which the service knows the caller, the calls it may make, and the version; `readHealth` has the version alone. */
  declare readonly whoami: Bare<'whoami'>;
  declare readonly readHealth: Bare<'readHealth'>;

  /** The OpenAPI document of the deployment. */
  declare readonly readContract: Bare<'readContract'>;

  /** Ends this caller's own waiting acquire, or the grant that it got. */
  declare readonly withdraw: Plain<'withdraw'>;

  /** A single heartbeat and a single release. `acquire` does both by itself. */
  declare readonly heartbeat: Plain<'heartbeat'>;
  declare readonly release: Plain<'release'>;

  /** One page, or one record; `leases`, `readLease`, `names` and `readName` are easier. */
  declare readonly readLeases: Bare<'readLeases'>;
  declare readonly readNames: Bare<'readNames'>;

  /** One page of the commits that are under way; `commitsInFlight` has them all. */
  declare readonly readInFlight: Bare<'readInFlight'>;

  static {
    for (const operation of Object.keys(ROUTES) as Operation[])
      (Holdfast.prototype as Partial<Record<Operation, unknown>>)[operation] ??= function (
        this: Holdfast,
        request: RequestOf<typeof operation> = {},
        options?: CallOptions,
      ) {
        return this.call(operation, request, options);
      };
  }
}
