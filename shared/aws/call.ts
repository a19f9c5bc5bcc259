/**
 * What let a caller in: IAM, or a JWT with these scopes. `nobody` where the gateway asks for neither, which only the local
 * one does.
 */
export type Authorization =
  | { by: 'iam' }
  | { by: 'jwt'; scopes: readonly string[]; namespaces: readonly string[] }
  | { by: 'nobody' };

/** What a call can measure beside its outcome, with the unit of each. */
export const MEASURES = {
  /** From the end of a lease until its next holder, who was in line by then, hears of its grant. Not of one that expired. */
  HandOffMs: 'Milliseconds',
  /** How long a task that is granted its lease was parked. */
  ParkedMs: 'Milliseconds',
  /** Tasks that were parked. */
  Parked: 'Count',
  /** Keys with somebody in line, and the oldest ticket of all, as the scheduled repair sees them. */
  KeysInLine: 'Count',
  OldestTicketAgeSeconds: 'Seconds',
} as const;

export type Measure = keyof typeof MEASURES;

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
  /** Adds a value to the metrics of the invocation's log line. Absent where nobody counts. */
  readonly measure?: ((measure: Measure, value: number) => void) | undefined;
  /** Aborts when the invocation has just enough time left to answer. Every AWS call carries it. */
  readonly signal: AbortSignal;
  /** Milliseconds until `signal` aborts. */
  timeLeftMs(): number;
}
