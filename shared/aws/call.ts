/** What a domain call knows about its invocation. */
export interface Call {
  /** The authenticated caller (IAM ARN or JWT subject), where the adapter knows one. */
  readonly principal?: string | undefined;
  /** Where the function runs, as in ARNs: `us-east-1:123456789012`. Undefined where nobody says. */
  readonly regionAndAccount?: string | undefined;
  /** Aborts when the invocation has just enough time left to answer. Every AWS call carries it. */
  readonly signal: AbortSignal;
  /** Milliseconds until `signal` aborts. */
  timeLeftMs(): number;
}
