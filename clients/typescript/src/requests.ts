import type { CallOptions } from './attempt.ts';
import type { Content } from './content.ts';
import type { Emit } from './events.ts';
import type { HttpOptions } from './http.ts';
import type { Surroundings } from './surroundings.ts';
import type { AnswerOf, Operation, RequestOf, Transport } from './transport.ts';

interface CommonOptions {
  /** The name that other callers see while you hold a key, such as the name of the service and the host. Up to 256 bytes. */
  holder: string;
  /** The namespace of your team, if teams share the deployment. Without it, calls are for the whole deployment. */
  namespace?: string | undefined;
  /**
   * Called with each event in the life of a lease, for logs and metrics. If the hook throws, the lease goes on, and the error is reported as uncaught.
   */
  onEvent?: Emit | undefined;
  /** Clocks, timers and random numbers. Tests pass a `ManualClock`. */
  surroundings?: Surroundings | undefined;
}

/**
 * How to reach the service: over HTTP at an `endpoint`, or through a `transport`: that of `holdfast-client/lambda`, `holdfast-client/direct` or
 * `holdfast-client/testing`. With a transport, `fetch` sends uploads.
 */
export type HoldfastOptions = CommonOptions &
  (HttpOptions | { transport: Transport; fetch?: typeof fetch | undefined });

/** The options of `Holdfast.fromEnv`. Options that you leave out are read from the environment. */
export type FromEnvOptions = Partial<CommonOptions & HttpOptions>;

/** A commit. Content above 1 MiB is uploaded first. */
export type CommitRequest = Omit<RequestOf<'commit'>, 'body' | 'encoding'> & {
  body?: Content | undefined;
  /** The length of a stream, in bytes. Without `sizeBytes`, a stream is buffered in memory, up to 16 MiB; a longer stream is refused. */
  sizeBytes?: number | undefined;
};

/** A task or a callback that waits for a key. */
export type ParkRequest = Omit<RequestOf<'acquire'>, 'holder' | 'waitSeconds'> &
  ({ taskToken: string } | { callbackId: string; execution: string });

/** What `readLease` lists besides the holders. */
export type ReadOne = Pick<RequestOf<'readLeases'>, 'waiters' | 'limit'>;

/** The fields of a list request, without the cursor, which the iterator keeps. */
export type Filter<O extends Operation> = Omit<RequestOf<O>, 'cursor'>;

/** A method that sends one call of the contract. */
export type CallOf<O extends Operation> = (request: RequestOf<O>, options?: CallOptions) => Promise<AnswerOf<O>>;

/** A method for a call whose fields are all optional, so that the request may be left out. */
export type OptionalCallOf<O extends Operation> = (
  request?: RequestOf<O>,
  options?: CallOptions,
) => Promise<AnswerOf<O>>;
