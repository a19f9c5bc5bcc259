import type { CallOptions } from './attempt.ts';
import type { Content } from './content.ts';
import type { Emit } from './events.ts';
import type { HttpOptions } from './http.ts';
import type { Surroundings } from './surroundings.ts';
import type { AnswerOf, Operation, RequestOf, Transport } from './transport.ts';

interface CommonOptions {
  /** Who the caller is, shown to others who want the same lease. Up to 256 bytes. */
  holder: string;
  /** The namespace that every call touches, and nothing else. Without it the calls are for the whole deployment. */
  namespace?: string | undefined;
  /** Is told of what happens to leases. What it throws surfaces as an uncaught error. */
  onEvent?: Emit | undefined;
  /** Time and chance, for tests. */
  surroundings?: Surroundings | undefined;
}

/** Where the service is: over HTTP, or through a transport of `holdfast-client/lambda` or `holdfast-client/direct`. */
export type HoldfastOptions = CommonOptions &
  (HttpOptions | { transport: Transport; fetch?: typeof fetch | undefined });

/** A commit, whose content may be anything: what is larger than 1 MiB is uploaded first. */
export type CommitRequest = Omit<RequestOf<'commit'>, 'body' | 'encoding'> & {
  body?: Content | undefined;
  /** The length of a stream. Without it up to 16 MiB are held in memory, and a longer stream is refused. */
  sizeBytes?: number | undefined;
};

/** What is under way on the queries of a list, without the cursor, which the iterator keeps. */
export type Filter<O extends Operation> = Omit<RequestOf<O>, 'cursor'>;

/** A call that takes what the contract says, and nothing else. */
export type Plain<O extends Operation> = (request: RequestOf<O>, options?: CallOptions) => Promise<AnswerOf<O>>;

/** As that, for a request whose fields are all optional. */
export type Bare<O extends Operation> = (request?: RequestOf<O>, options?: CallOptions) => Promise<AnswerOf<O>>;
