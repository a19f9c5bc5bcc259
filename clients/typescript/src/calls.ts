import { type CallOptions, type Core, insist } from './attempt.ts';
import type { Upload } from './content.ts';
import type { components } from './contract.ts';
import { emitter } from './events.ts';
import { httpTransport } from './http.ts';
import type { Lease } from './lease.ts';
import { paged } from './pages.ts';
import type { Bare, CommitRequest, Filter, HoldfastOptions, ParkRequest, Plain, ReadOne } from './requests.ts';
import { ROUTES } from './routes.ts';
import { type Surroundings, systemSurroundings } from './surroundings.ts';
import { traced } from './tracing.ts';
import { type AnswerOf, assertNamespace, type Operation, type RequestOf } from './transport.ts';

type Schemas = components['schemas'];
type StageRequest = RequestOf<'stageUpload'>;

/** Every call of the API, as a method. `Holdfast` adds what takes several calls: leases with heartbeats, and work under them. */
export class Calls {
  /** @internal */
  readonly surroundings: Surroundings;
  /** The name of the caller, if a call names no other. */
  readonly holder: string;
  /** @internal */
  readonly core: Core;
  /** @internal */
  readonly fetch: typeof fetch | undefined;

  /** @throws TypeError if the endpoint is not a URL, the namespace is not valid, or credentials come without a region */
  constructor(given: HoldfastOptions) {
    const options = given ?? {}; // of a program without types
    const by = options.surroundings ?? systemSurroundings;
    this.surroundings = by;
    const { namespace } = options;
    assertNamespace(namespace);
    const transport = 'transport' in options ? options.transport : httpTransport(options, by.wall);
    this.core = { transport, namespace, by, emit: emitter(options.onEvent) };
    this.holder = options.holder;
    this.fetch = options.fetch;
  }

  /**
   * Sends a call of the API, with the retries of the client.
   * @throws HoldfastError as docs/api/errors.md lists, and Unreachable or Refused; the reason of the signal
   * @example
   * const { version } = await holdfast.call('whoami', {});
   */
  call<O extends Operation>(operation: O, request: RequestOf<O>, options?: CallOptions): Promise<AnswerOf<O>> {
    return traced(operation, {}, () => insist(this.core, operation, request, options));
  }

  /**
   * Parks a task of Step Functions (`taskToken`) or a callback of a durable function (`callbackId`) in the line of a key. The grant follows as the
   * output of the task, or as the result of the callback.
   * @throws the errors of every call; QueueFull at once, without a retry, because the task or the callback has failed
   * @example
   * await holdfast.park({ key: 'nightly', taskToken: event.taskToken, execution: event.executionArn, parkSeconds: 3600 });
   */
  park(request: ParkRequest, options?: CallOptions) {
    // A callback names its request, so that each run of its submitter is one request.
    const own = 'callbackId' in request && { requestId: undefined };
    const asked = { holder: this.holder, ...own, ...request } as RequestOf<'acquire'>;
    return this.call('acquire', asked, options) as Promise<Schemas['Parked']>;
  }

  /**
   * Reads a key with its holders. The fields beside them are those of one holder: the exclusive one, or the one that ends first. The answer has the
   * number of waiters in line, and with `waiters` their list.
   * @example
   * const { state, holders, waiting } = await holdfast.readLease('nightly', { waiters: true });
   */
  readLease(key: string, request: ReadOne = {}, options?: CallOptions): Promise<Schemas['Key']> {
    return this.call('readLeases', { key, ...request }, options) as Promise<Schemas['Key']>;
  }

  /**
   * Lists the keys that match the filter, page by page. With `sort`, each page costs a read of the whole table.
   * @example
   * for await (const { key, holder } of holdfast.leases({ prefix: 'jobs/', state: 'held' })) console.log(key, holder);
   */
  leases(filter: Omit<Filter<'readLeases'>, 'key' | 'waiters'> = {}, options?: CallOptions) {
    return paged(
      (cursor) => this.call('readLeases', { ...filter, ...cursor }, options) as Promise<Schemas['KeyPage']>,
      (page) => page.leases,
    );
  }

  /**
   * For operators: ends the lease or the permit with the fence that the operator saw.
   * @example
   * await holdfast.breakLease({ key: 'nightly', fence: 1795215137091, wait: true });
   */
  declare readonly breakLease: Plain<'breakLease'>;

  /** For operators: takes a parked task or a waiting call out of the line of its key. */
  declare readonly cancelWaiter: Plain<'cancelWaiter'>;

  /** For operators: caps what all holders of a key may weigh, or its rates. `limit` 0 pauses the key, and null lifts the cap. */
  cap(request: RequestOf<'capKey'>, options?: CallOptions): Promise<AnswerOf<'capKey'>> {
    return this.call('capKey', request, options);
  }

  /** For operators: moves a waiter to the front of the line of its key. */
  declare readonly runNext: Plain<'runNext'>;

  /**
   * Creates or replaces an object on a precondition. Content above 1 MiB is uploaded first.
   * @throws HoldfastError PreconditionFailed if the object is not in the expected state; InvalidRequest if a stream needs `sizeBytes`, or has
   * another length; the errors of every call
   * @example
   * const { etag } = await holdfast.commit({ path: 'state.json', ifNoneMatch: '*', body: '{"n":1}' });
   */
  async commit({ body, sizeBytes, ...request }: CommitRequest, options?: CallOptions): Promise<AnswerOf<'commit'>> {
    const { contentType } = request;
    const upload = (content: Upload) => this.upload(content, { contentType, sizeBytes } as StageRequest, options);
    const content = body === undefined ? {} : await (await import('./content.ts')).partOf(body, sizeBytes, upload);
    return this.call('commit', { ...request, ...content }, options);
  }

  /**
   * Commits under the fence of a lease: after a later holder has written the object, earlier holders are refused.
   * @throws HoldfastError LeaseLost if the lease is lost before the commit is sent; FenceRejected; the errors of `commit`
   * @example
   * await holdfast.commitUnder(lease, { path: 'report.json', ifNoneMatch: '*', body: report });
   */
  async commitUnder(lease: Lease, request: Omit<CommitRequest, 'fence'>, options?: CallOptions) {
    lease.assertHeld();
    return this.commit({ ...request, fence: { key: lease.key, token: lease.fence } }, options);
  }

  /** Reads the ETag and the fence of the object at a path, without its content. */
  declare readonly readCommit: Plain<'readCommit'>;

  /** Lists the commits that are under way, page by page. */
  commitsInFlight(filter: Filter<'readInFlight'> = {}, options?: CallOptions) {
    return paged(
      (cursor) => this.call('readInFlight', { ...filter, ...cursor }, options),
      (page) => page.commits,
    );
  }

  /** Returns a signed URL for a staged upload. `upload` also sends the content. */
  declare readonly stageUpload: Bare<'stageUpload'>;

  /**
   * Uploads content that a commit then names as its `source`. A stream above 16 MiB needs `sizeBytes`. If the platform
   * can stream requests, a stream is sent while the client reads the stream, and only once. A Blob is sent again after transient failures.
   * @returns the `uploadId`
   * @example
   * const source = await holdfast.upload(blob);
   * await holdfast.commit({ path: 'data/part-0', ifNoneMatch: '*', source });
   */
  async upload(content: Upload, request: StageRequest = {}, options: CallOptions = {}): Promise<string> {
    const { uploaded } = await import('./content.ts');
    const stage = (sizeBytes?: number) => this.stageUpload({ ...request, ...(sizeBytes && { sizeBytes }) }, options);
    return uploaded(content, { ...options, ...request, stage, by: this.core.by, fetch: this.fetch });
  }

  /** For operators: replaces or lifts the fence of an object. */
  declare readonly resetFence: Plain<'resetFence'>;

  /**
   * Runs an operation of the nameservice.
   * @example
   * await holdfast.publish({ op: 'publishCommit', alias: 'books', address: 's3://books/commit/2', t: 2 });
   */
  declare readonly publish: Plain<'publish'>;

  /** Reads the record of an alias. */
  readName(alias: string, options?: CallOptions): Promise<Schemas['NameserviceRecord']> {
    return this.call('readNames', { alias }, options) as Promise<Schemas['NameserviceRecord']>;
  }

  /** Lists the records of the nameservice that match the filter, page by page. */
  names(filter: Omit<Filter<'readNames'>, 'alias'> = {}, options?: CallOptions) {
    return paged(
      (cursor) => this.call('readNames', { ...filter, ...cursor }, options) as Promise<Schemas['RecordPage']>,
      (page) => page.records,
    );
  }

  /** For operators: repairs a record of the nameservice, as `publish` cannot. */
  declare readonly repairNames: Plain<'repairNames'>;

  /** Starts a report of expired records now. After a lost response the report may still run: `readExpired` finds the report later. */
  declare readonly report: Bare<'report'>;

  /** Reads the summary and the first rows of a report; the default is the last complete report. */
  declare readonly readExpired: Bare<'readExpired'>;

  /** Lists the rows of a report that match the filter, page by page. */
  expired(filter: Filter<'readExpired'> = {}, options?: CallOptions) {
    return paged(
      (cursor) => this.call('readExpired', { ...filter, ...cursor }, options),
      (page) => page.rows,
    );
  }

  /** Deletes a page of reported records, or lists the records that the call would delete (`dryRun`, which is the default). */
  declare readonly clean: Bare<'clean'>;

  /** Reads the name of the caller, the calls that the caller may send, and the version. `readHealth` reads only the version. */
  declare readonly whoami: Bare<'whoami'>;
  declare readonly readHealth: Bare<'readHealth'>;

  /** Reads the OpenAPI document of the deployment. */
  declare readonly readContract: Bare<'readContract'>;

  /** Takes the caller's own request out of the line, or ends the grant of the request. */
  declare readonly withdraw: Plain<'withdraw'>;

  /** Sends a single heartbeat, or a single release. A lease of `acquire` sends both itself. */
  declare readonly heartbeat: Plain<'heartbeat'>;
  declare readonly release: Plain<'release'>;

  /** Reads one page, or one record. `leases`, `readLease`, `names` and `readName` are easier. */
  declare readonly readLeases: Bare<'readLeases'>;
  declare readonly readNames: Bare<'readNames'>;

  /** Reads one page of the commits that are under way. `commitsInFlight` lists all of them. */
  declare readonly readInFlight: Bare<'readInFlight'>;

  /** A single reservation, without the wait, and a single settlement or cancellation. `rate` sends them itself. */
  declare readonly rateReserve: Plain<'rateReserve'>;
  declare readonly rateSettle: Plain<'rateSettle'>;

  /** Reads the rates of a key, or a page of such keys. For operators: `rateForget` lets the next caller start at once. */
  declare readonly readRates: Bare<'readRates'>;
  declare readonly rateForget: Plain<'rateForget'>;

  /** For operators: forgets which slot is done, by the fence that `readOnce` returned. The next caller then works again. */
  forget(request: RequestOf<'onceForget'>, options?: CallOptions): Promise<AnswerOf<'onceForget'>> {
    return this.call('onceForget', request, options);
  }

  /** Reads a key of `once` with the result, or a page of such keys. */
  declare readonly readOnce: Bare<'readOnce'>;

  /** A single begin and a single complete. `once` does both by itself. */
  declare readonly onceBegin: Plain<'onceBegin'>;
  declare readonly onceComplete: Plain<'onceComplete'>;

  static {
    for (const operation of Object.keys(ROUTES) as Operation[])
      (Calls.prototype as Partial<Record<Operation, unknown>>)[operation] ??= function (
        this: Calls,
        request: RequestOf<typeof operation> = {},
        options?: CallOptions,
      ) {
        return this.call(operation, request, options);
      };
  }
}
