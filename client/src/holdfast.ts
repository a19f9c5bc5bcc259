import { type AcquireOptions, acquire } from './acquire.ts';
import { type CallOptions, type Core, insist } from './attempt.ts';
import type { Content } from './content.ts';
import type { components } from './contract.ts';
import { refusal } from './errors.ts';
import { type Emit, emitter } from './events.ts';
import { type HttpOptions, httpTransport } from './http.ts';
import { type LeadOptions, lead } from './lead.ts';
import type { Lease } from './lease.ts';
import { paged } from './pages.ts';
import { type Surroundings, systemSurroundings } from './surroundings.ts';
import { traced } from './tracing.ts';
import type { AnswerOf, Operation, RequestOf, Transport } from './transport.ts';

type Schemas = components['schemas'];

interface CommonOptions {
  /** Who the caller is, shown to others who want the same lease. Up to 256 bytes. */
  holder: string;
  /** Is told of what happens to leases. What it throws surfaces as an uncaught error. */
  onEvent?: Emit | undefined;
  /** Time and chance, for tests. */
  surroundings?: Surroundings | undefined;
}

/** Where the service is: over HTTP, or through a transport of `holdfast-client/lambda` or `holdfast-client/direct`. */
export type HoldfastOptions = CommonOptions &
  (HttpOptions | { transport: Transport; fetch?: typeof fetch | undefined });

/** A commit, whose content may be anything: what is larger than 1 MiB is uploaded first. */
export type CommitRequest = Omit<RequestOf<'commit'>, 'body' | 'encoding'> & { body?: Content | undefined };

/** What is under way on the queries of a list, without the cursor, which the iterator keeps. */
type Filter<O extends Operation> = Omit<RequestOf<O>, 'cursor'>;

/**
 * A client of one deployment. It keeps no connection and no timer of its own: only leases that are held have timers, and
 * those keep no process alive.
 */
export class Holdfast {
  readonly #core: Core;
  readonly #holder: string;
  readonly #fetch: typeof fetch | undefined;

  /** @throws TypeError where the endpoint is no URL, or credentials come without a region */
  constructor(options: HoldfastOptions) {
    const by = options.surroundings ?? systemSurroundings;
    const transport = 'transport' in options ? options.transport : httpTransport(options, by.wall);
    this.#core = { transport, by, emit: emitter(options.onEvent) };
    this.#holder = options.holder;
    this.#fetch = options.fetch;
  }

  /**
   * Acquires a lease and keeps it by heartbeats, until it is released or lost.
   * @throws HoldfastError LeaseHeld where another caller holds it until the wait is over, and as every call
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
   * wait, and aborts `lease.signal`.
   * @throws what the work throws; HoldfastError LeaseLost where the work succeeds after the lease was lost; as `acquire`
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
      try {
        return await work(lease);
      } finally {
        await lease.release();
      }
    });
  }

  /**
   * Leads whenever it holds the lease, until the signal aborts: waits, calls `onElected`, and waits again after a loss.
   * @throws what `onElected` and `onLost` throw; HoldfastError where no wait can succeed
   */
  lead(key: string, options: LeadOptions): Promise<void> {
    return lead(this.#core.by, (own, work) => this.#withLease(key, own, work), options);
  }

  /**
   * Any call of the API, with the retries of all the others.
   * @throws HoldfastError as docs/api.md lists, and Unreachable or Refused; the reason of the signal
   */
  call<O extends Operation>(operation: O, request: RequestOf<O>, options?: CallOptions): Promise<AnswerOf<O>> {
    // A retry after a lost answer finds by them what the first try has done.
    const id =
      operation === 'commit' ? 'commitId' : operation === 'acquire' || operation === 'publish' ? 'requestId' : '';
    const told = id && !(id in request) ? { ...request, [id]: this.#core.by.uuid() } : request;
    return traced(operation, {}, () => insist(this.#core, operation, told, options));
  }

  /** Parks a task of Step Functions (`.waitForTaskToken`) in the queue of a lease; the task gets the grant as its output. */
  park(request: Omit<RequestOf<'acquire'>, 'holder' | 'waitSeconds'> & { taskToken: string }, options?: CallOptions) {
    return this.call('acquire', { holder: this.#holder, ...request }, options) as Promise<Schemas['Parked']>;
  }

  /** Who holds a lease, and how many tasks are parked for it; with `waiters`, which ones. */
  readLease(key: string, request: Pick<RequestOf<'readLeases'>, 'waiters' | 'limit'> = {}, options?: CallOptions) {
    return this.call('readLeases', { key, ...request }, options) as Promise<Schemas['LeaseWithQueue']>;
  }

  /** All leases that the filter lets through, page by page. */
  leases(filter: Omit<Filter<'readLeases'>, 'key' | 'waiters'> = {}, options?: CallOptions) {
    return paged(
      (cursor) => this.call('readLeases', { ...filter, ...cursor }, options) as Promise<Schemas['LeasePage']>,
      (page) => page.leases,
    );
  }

  /** Ends the lease that an operator saw. */
  breakLease(request: RequestOf<'breakLease'>, options?: CallOptions): Promise<AnswerOf<'breakLease'>> {
    return this.call('breakLease', request, options);
  }

  /** Takes a parked task out of the queue. */
  cancelWaiter(request: RequestOf<'cancelWaiter'>, options?: CallOptions): Promise<AnswerOf<'cancelWaiter'>> {
    return this.call('cancelWaiter', request, options);
  }

  /** Creates or replaces an object on a precondition. Content above 1 MiB is uploaded first. */
  async commit({ body, ...request }: CommitRequest, options?: CallOptions): Promise<AnswerOf<'commit'>> {
    if (body === undefined) return this.call('commit', request, options);
    const { bodyOrBlob } = await import('./content.ts');
    const content = await bodyOrBlob(body);
    if (!(content instanceof Blob)) return this.call('commit', { ...request, ...content }, options);
    const { contentType } = request;
    const source = await this.upload(content, { ...(contentType && { contentType }) }, options);
    return this.call('commit', { ...request, source }, options);
  }

  /**
   * Commits under the fence of a lease: once a later holder has written the object, an earlier one no longer can.
   * @throws HoldfastError LeaseLost where the lease is lost before anything is sent; FenceRejected
   */
  async commitUnder(lease: Lease, request: Omit<CommitRequest, 'fence'>, options?: CallOptions) {
    lease.assertHeld();
    return this.commit({ ...request, fence: { key: lease.key, token: lease.fence } }, options);
  }

  /** What is committed at a path, without the content. */
  readCommit(path: string, options?: CallOptions): Promise<AnswerOf<'readCommit'>> {
    return this.call('readCommit', { path }, options);
  }

  /** The commits that are under way, page by page. */
  commitsInFlight(filter: Filter<'readInFlight'> = {}, options?: CallOptions) {
    return paged(
      (cursor) => this.call('readInFlight', { ...filter, ...cursor }, options),
      (page) => page.commits,
    );
  }

  /** Where to put an upload. `upload` puts it there too. */
  stageUpload(request: RequestOf<'stageUpload'> = {}, options?: CallOptions): Promise<AnswerOf<'stageUpload'>> {
    return this.call('stageUpload', request, options);
  }

  /** Uploads what a commit then takes as its `source`. @returns the `uploadId` */
  async upload(content: Blob, request: RequestOf<'stageUpload'> = {}, options: CallOptions = {}): Promise<string> {
    const staged = await this.stageUpload({ sizeBytes: content.size, ...request }, options);
    const { put } = await import('./content.ts');
    const { signal } = options;
    const status = await put(staged, content, { fetch: this.#fetch, signal }).catch((error) => {
      signal?.throwIfAborted();
      throw refusal(undefined, 'the upload failed', error);
    });
    if (status >= 300) throw refusal(status, `S3 answered the upload with ${status}`);
    return staged.uploadId;
  }

  /** Replaces or lifts the fence of an object, for an operator. */
  resetFence(request: RequestOf<'resetFence'>, options?: CallOptions): Promise<AnswerOf<'resetFence'>> {
    return this.call('resetFence', request, options);
  }

  /** Any operation of the nameservice. */
  publish(request: RequestOf<'publish'>, options?: CallOptions): Promise<AnswerOf<'publish'>> {
    return this.call('publish', request, options);
  }

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

  /** Takes back what publishing cannot, for an operator. */
  repairNames(request: RequestOf<'repairNames'>, options?: CallOptions): Promise<AnswerOf<'repairNames'>> {
    return this.call('repairNames', request, options);
  }

  /** Reports now what has expired. Where no answer comes, the report may be under way: `readReport` finds it later. */
  report(options?: CallOptions): Promise<AnswerOf<'report'>> {
    return this.call('report', {}, options);
  }

  /** The summary of the last complete report, or of a given one, with its first rows. */
  readReport(request: RequestOf<'readExpired'> = {}, options?: CallOptions): Promise<AnswerOf<'readExpired'>> {
    return this.call('readExpired', request, options);
  }

  /** All rows of a report that the filter lets through, page by page. */
  expired(filter: Filter<'readExpired'> = {}, options?: CallOptions) {
    return paged(
      (cursor) => this.call('readExpired', { ...filter, ...cursor }, options),
      (page) => page.rows,
    );
  }

  /** Deletes a page of reported records, or says what it would delete (`dryRun`, which is the default). */
  clean(request: RequestOf<'clean'> = {}, options?: CallOptions): Promise<AnswerOf<'clean'>> {
    return this.call('clean', request, options);
  }

  /** As whom the service knows the caller, what it may call, and the version of the deployment. */
  whoami(options?: CallOptions): Promise<AnswerOf<'whoami'>> {
    return this.call('whoami', {}, options);
  }

  /** The OpenAPI document of the deployment. */
  readContract(options?: CallOptions): Promise<AnswerOf<'readContract'>> {
    return this.call('readContract', {}, options);
  }
}
