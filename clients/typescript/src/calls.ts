import { type CallOptions, type Core, call } from './attempt.ts';
import type { Upload } from './content.ts';
import type { components } from './contract.ts';
import { emitter } from './events.ts';
import { httpTransport } from './http.ts';
import type { Lease } from './lease.ts';
import { paged } from './pages.ts';
import type {
  CallOf,
  CommitRequest,
  Filter,
  HoldfastOptions,
  OptionalCallOf,
  ParkRequest,
  ReadOne,
} from './requests.ts';
import { ROUTES } from './routes.ts';
import { systemSurroundings } from './surroundings.ts';
import { traced } from './tracing.ts';
import { type AnswerOf, assertNamespace, type Operation, type RequestOf } from './transport.ts';

type Schemas = components['schemas'];
type StageRequest = RequestOf<'stageUpload'>;

/** Every call of the API, as a method. `Holdfast` adds what needs several calls, such as leases with heartbeats, and work under a lease. */
export class Calls {
  /** The name that other callers see, unless a call names another. */
  readonly holder: string;
  /** @internal */
  readonly core: Core;
  /** @internal */
  readonly fetch: typeof fetch | undefined;

  /** @throws TypeError if the endpoint is not a URL, the namespace is not valid, or credentials come without a region */
  constructor(given: HoldfastOptions) {
    const options = given ?? {}; // a program without types may pass undefined
    const { namespace, surroundings = systemSurroundings } = options;
    assertNamespace(namespace);
    const transport = 'transport' in options ? options.transport : httpTransport(options, surroundings.wall);
    this.core = { transport, namespace, surroundings, emit: emitter(options.onEvent) };
    this.holder = options.holder;
    this.fetch = options.fetch;
  }

  /**
   * Sends any call of the API by its name, with the retries of the client. Each call is also a method of its own.
   * @throws HoldfastError as docs/api/errors.md lists, and Unreachable or Refused; the reason of the signal
   * @example
   * const { version } = await holdfast.call('whoami', {});
   */
  call<O extends Operation>(operation: O, request: RequestOf<O>, options?: CallOptions): Promise<AnswerOf<O>> {
    return traced(operation, {}, () => call(this.core, operation, request, options));
  }

  /**
   * Parks a Step Functions task (`taskToken`) or a callback of a durable function (`callbackId`) in the line of a key, so that no function runs while it
   * waits. The grant arrives as the output of the task, or as the result of the callback.
   * @throws the errors of every call; QueueFull without a retry, because the task or the callback has failed with it
   * @example
   * await holdfast.park({ key: 'nightly', taskToken: event.taskToken, execution: event.executionArn, parkSeconds: 3600 });
   */
  park(request: ParkRequest, options?: CallOptions) {
    // The callback id names the request, so that a submitter that runs again sends the same request.
    const withoutId = 'callbackId' in request && { requestId: undefined };
    const parkRequest = { holder: this.holder, ...withoutId, ...request } as RequestOf<'acquire'>;
    return this.call('acquire', parkRequest, options) as Promise<Schemas['Parked']>;
  }

  /**
   * Reads a key: who holds it, and how many callers wait. The fields outside of `holders` describe one holder: the exclusive one, or the one whose
   * permit expires next. With `waiters`, the answer lists the line.
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
   * For operators: ends a lease or a permit whose work hangs. The fence, which you read before, makes sure that no later grant is ended. With `wait`, the
   * holder is asked to stop, and keeps the grant until its release or expiry.
   * @example
   * await holdfast.breakLease({ key: 'nightly', fence: 1795215137091, wait: true });
   */
  declare readonly breakLease: CallOf<'breakLease'>;

  /**
   * For operators: takes a parked task or a waiting call out of the line of its key.
   * @example
   * await holdfast.cancelWaiter({ key: 'nightly', ticket: waiters[0].ticket });
   */
  declare readonly cancelWaiter: CallOf<'cancelWaiter'>;

  /**
   * For operators: lowers what all holders of a key may weigh, or its rates, whatever limits the callers name. A `limit` of 0 pauses the key, for example
   * while the system behind it is down, and null lifts the cap.
   * @example
   * await holdfast.cap({ key: 'vendor', limit: 0, reason: 'the vendor is down', forSeconds: 3600 });
   */
  cap(request: RequestOf<'capKey'>, options?: CallOptions): Promise<AnswerOf<'capKey'>> {
    return this.call('capKey', request, options);
  }

  /**
   * For operators: makes an urgent waiter the next one in the line of its key.
   * @example
   * await holdfast.runNext({ key: 'nightly', ticket: waiters[3].ticket });
   */
  declare readonly runNext: CallOf<'runNext'>;

  /**
   * Creates or replaces an object in S3 if the object is in the expected state, so that no writer overwrites the change of another. Content above 1 MiB is
   * uploaded first.
   * @throws HoldfastError PreconditionFailed if the object is not in the expected state; InvalidRequest if a stream needs `sizeBytes`, or has
   * another length; the errors of every call
   * @example
   * const { etag } = await holdfast.commit({ path: 'state.json', ifNoneMatch: '*', body: '{"n":1}' });
   */
  async commit({ body, sizeBytes, ...request }: CommitRequest, options?: CallOptions): Promise<AnswerOf<'commit'>> {
    const { contentType } = request;
    const upload = (content: Upload) => this.upload(content, { contentType, sizeBytes } as StageRequest, options);
    const content =
      body === undefined ? {} : await (await import('./content.ts')).contentFieldsOf(body, sizeBytes, upload);
    return this.call('commit', { ...request, ...content }, options);
  }

  /**
   * Commits with the fence of a lease, so that a former holder that still runs cannot overwrite what a later holder has written.
   * @throws HoldfastError LeaseLost if the lease is lost before the commit is sent; FenceRejected; the errors of `commit`
   * @example
   * await holdfast.commitUnder(lease, { path: 'report.json', ifNoneMatch: '*', body: report });
   */
  async commitUnder(lease: Lease, request: Omit<CommitRequest, 'fence'>, options?: CallOptions) {
    lease.assertHeld();
    return this.commit({ ...request, fence: { key: lease.key, token: lease.fence } }, options);
  }

  /**
   * Reads the ETag and the fence of an object, without its content. The ETag is the `ifMatch` of the next commit.
   * @example
   * const { etag } = await holdfast.readCommit({ path: 'state.json' });
   */
  declare readonly readCommit: CallOf<'readCommit'>;

  /** Lists the commits that are under way, page by page. */
  commitsInFlight(filter: Filter<'readInFlight'> = {}, options?: CallOptions) {
    return paged(
      (cursor) => this.call('readInFlight', { ...filter, ...cursor }, options),
      (page) => page.commits,
    );
  }

  /** Returns a signed URL to which you upload content yourself. `upload` gets the URL and sends the content. */
  declare readonly stageUpload: OptionalCallOf<'stageUpload'>;

  /**
   * Uploads content that a commit then names as its `source`, for content that is ready long before the commit. `commit` uploads large content by itself.
   *
   * A Blob is sent again after transient failures. A stream can be sent only once, and a stream above 16 MiB needs `sizeBytes`. Platforms that can stream
   * requests send a stream while the client reads it; on others the client reads the whole stream first.
   * @returns the `uploadId`
   * @example
   * const source = await holdfast.upload(blob);
   * await holdfast.commit({ path: 'data/part-0', ifNoneMatch: '*', source });
   */
  async upload(content: Upload, request: StageRequest = {}, options: CallOptions = {}): Promise<string> {
    const { upload: uploaded } = await import('./content.ts');
    const stage = (sizeBytes?: number) => this.stageUpload({ ...request, ...(sizeBytes && { sizeBytes }) }, options);
    return uploaded(content, {
      ...options,
      ...request,
      stage,
      surroundings: this.core.surroundings,
      fetch: this.fetch,
    });
  }

  /** For operators: replaces or removes the fence of an object, so that callers with a lower fence, or without one, may write it again. */
  declare readonly resetFence: CallOf<'resetFence'>;

  /**
   * Runs an operation of the nameservice.
   * @example
   * await holdfast.publish({ op: 'publishCommit', alias: 'books', address: 's3://books/commit/2', t: 2 });
   */
  declare readonly publish: CallOf<'publish'>;

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

  /** For operators: repairs a record of the nameservice in ways that `publish` refuses. */
  declare readonly repairNames: CallOf<'repairNames'>;

  /**
   * Starts a report of expired records now, instead of at the next scheduled time. If the response is lost, the report may still run: read it by
   * `readExpired`.
   */
  declare readonly report: OptionalCallOf<'report'>;

  /** Reads the summary and the first rows of a report. The default is the last complete report. */
  declare readonly readExpired: OptionalCallOf<'readExpired'>;

  /** Lists the rows of a report that match the filter, page by page. */
  expired(filter: Filter<'readExpired'> = {}, options?: CallOptions) {
    return paged(
      (cursor) => this.call('readExpired', { ...filter, ...cursor }, options),
      (page) => page.rows,
    );
  }

  /** Deletes a page of reported records. With `dryRun`, which is the default, the call only lists the records that it would delete. */
  declare readonly clean: OptionalCallOf<'clean'>;

  /**
   * Reads who the service thinks you are, and which calls you may send, for example to check a deployment.
   * @example
   * const { version } = await holdfast.whoami();
   */
  declare readonly whoami: OptionalCallOf<'whoami'>;

  /** Reads only the version of the service. */
  declare readonly readHealth: OptionalCallOf<'readHealth'>;

  /** Reads the OpenAPI document of the deployment. */
  declare readonly readContract: OptionalCallOf<'readContract'>;

  /** Takes your own request out of the line, or ends its grant. `acquire` withdraws a request by itself when its wait ends. */
  declare readonly withdraw: CallOf<'withdraw'>;

  /** Sends a single heartbeat. A lease of `acquire` sends its heartbeats by itself. */
  declare readonly heartbeat: CallOf<'heartbeat'>;

  /** Sends a single release, for example of the grant of a parked task. */
  declare readonly release: CallOf<'release'>;

  /** Reads one page of keys, or one key. `leases` follows the pages, and `readLease` has the type of one key. */
  declare readonly readLeases: OptionalCallOf<'readLeases'>;

  /** Reads one page of the nameservice, or one record. `names` follows the pages, and `readName` has the type of one record. */
  declare readonly readNames: OptionalCallOf<'readNames'>;

  /** Reads one page of the commits that are under way. `commitsInFlight` lists all of them. */
  declare readonly readInFlight: OptionalCallOf<'readInFlight'>;

  /** Reserves a start without waiting for its moment. `rate` also waits. */
  declare readonly rateReserve: CallOf<'rateReserve'>;

  /** Settles or cancels one reservation. The start that `rate` returns has a method `settle`. */
  declare readonly rateSettle: CallOf<'rateSettle'>;

  /** Reads the rates of a key and until when they are used up, or a page of such keys. */
  declare readonly readRates: OptionalCallOf<'readRates'>;

  /** For operators: forgets all reservations at the rates of a key, so that the next caller may start at once. */
  declare readonly rateForget: CallOf<'rateForget'>;

  /**
   * For operators: forgets which slot is done, so that the next caller does the work again. The fence is the one that `readOnce` returned.
   * @example
   * await holdfast.forget({ key: 'backup', fence: 1795215137091 });
   */
  forget(request: RequestOf<'onceForget'>, options?: CallOptions): Promise<AnswerOf<'onceForget'>> {
    return this.call('onceForget', request, options);
  }

  /** Reads which slot of a key is done, with its result, or a page of such keys. */
  declare readonly readOnce: OptionalCallOf<'readOnce'>;

  /** Begins the run of a slot. `once` begins and completes a run by itself. */
  declare readonly onceBegin: CallOf<'onceBegin'>;

  /** Stores the result of a slot, and ends its run. */
  declare readonly onceComplete: CallOf<'onceComplete'>;

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
