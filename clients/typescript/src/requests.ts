import type { CallOptions } from './attempt.ts';
import type { Content } from './content.ts';
import type { Emit } from './events.ts';
import type { HttpOptions } from './http.ts';
import type { Surroundings } from './surroundings.ts';
import type { AnswerOf, Operation, RequestOf, Transport } from './transport.ts';

interface CommonOptions {
  /** The name of the caller, which other callers of the same key see. Up to 256 bytes. */
  holder: string;
  /** The namespace that calls are confined to. Without it, calls are for the whole deployment. */
  namespace?: string | undefined;
  /** Called with each event in the life of a lease. An error of the hook surfaces as an uncaught error. */
  onEvent?: Emit | undefined;
  /** Clocks, timers and random numbers, for tests. */
  surroundings?: Surroundings | undefined;
}

/** How to reach the service: over HTTP, or through a transport of `holdfast-client/lambda` or `holdfast-client/direct`. */
export type HoldfastOptions = CommonOptions &
  (HttpOptions | { transport: Transport; fetch?: typeof fetch | undefined });

/** The options of `Holdfast.fromEnv`. What is missing is read from the environment. */
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

/** What a read of one key lists besides its holders. */
export type ReadOne = Pick<RequestOf<'readLeases'>, 'waiters' | 'limit'>;

/** The fields of a list request. The iterator itself keeps the cursor. */
export type Filter<O extends Operation> = Omit<RequestOf<O>, 'cursor'>;

/** A call with the request of the contract. */
export type Plain<O extends Operation> = (request: RequestOf<O>, options?: CallOptions) => Promise<AnswerOf<O>>;

/** The same for a request whose fields are all optional. */
export type Bare<O extends Operation> = (request?: RequestOf<O>, options?: CallOptions) => Promise<AnswerOf<O>>;
