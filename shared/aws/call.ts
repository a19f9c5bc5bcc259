/**
 * What let a caller in: IAM, or a JWT with these scopes. `nobody` where the gateway asks for neither, which only the local
 * one does.
 */
export type Authorization =
  | { by: 'iam' }
  | { by: 'jwt'; scopes: readonly string[]; namespaces: readonly string[] }
  | { by: 'nobody' };

/** What a domain call knows about its invocation. */
export interface Call {
  /** The authenticated caller (IAM ARN or JWT subject), where the adapter knows one. */
  readonly principal?: string | undefined;
  /** Undefined where the call came through lambda:InvokeFunction, and not through the gateway. */
  readonly authorization?: Authorization | undefined;
  /** What the caller may touch: names under it alone. Undefined for the whole deployment. */
  readonly namespace?: string | undefined;
  /** Where the function runs, as in ARNs: `us-east-1:123456789012`. Undefined where nobody says. */
  readonly regionAndAccount?: string | undefined;
  /** Aborts when the invocation has just enough time left to answer. Every AWS call carries it. */
  readonly signal: AbortSignal;
  /** Milliseconds until `signal` aborts. */
  timeLeftMs(): number;
}
