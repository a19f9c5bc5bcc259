/**
 * How a caller was authorized: by IAM, or by a JWT with these scopes. `nobody` if the gateway requires neither, which only
 * the local one does.
 */
export type Authorization =
  | { by: 'iam' }
  | { by: 'jwt'; scopes: readonly string[]; namespaces: readonly string[] }
  | { by: 'nobody' };

/** What a call can measure besides its outcome, with the unit of each. */
export const MEASURES = {
  /** The time from the end of a lease until the next holder, in line by then, learns of its grant. Not for a lease that expired. */
  HandOffMs: 'Milliseconds',
  /** How long a task was parked before it was granted its lease. */
  ParkedMs: 'Milliseconds',
  /** From the answer to a reservation until its start. */
  RateWaitMs: 'Milliseconds',
  /** How many tasks were parked. */
  Parked: 'Count',
  /** Keys with a line, and the oldest ticket of all, as the scheduled repair sees them. */
  KeysInLine: 'Count',
  OldestTicketAgeSeconds: 'Seconds',
  /** Runs of the scheduled repair that ended before they had seen every key with a line. */
  RepairsCutShort: 'Count',
} as const;

export type Measure = keyof typeof MEASURES;

/** The context of a domain call. */
export interface Call {
  /** The authenticated caller (IAM ARN or JWT subject), if the adapter knows one. */
  readonly principal?: string | undefined;
  /** Undefined if the call came by lambda:InvokeFunction and not through the gateway. */
  readonly authorization?: Authorization | undefined;
  /** The namespace to which the caller is confined. Undefined for the whole deployment. */
  readonly namespace?: string | undefined;
  /** Partition, region and account of the function as in ARNs, `aws:us-east-1:123456789012`. Undefined if they are not known. */
  readonly home?: string | undefined;
  /** Adds a value to the metrics of the invocation's log line. Absent if there are no metrics. */
  readonly measure?: ((measure: Measure, value: number) => void) | undefined;
  /** Writes a log line beside that of the invocation. Absent in a process that has no log of its own, such as that of directTransport. */
  readonly log?: ((line: { message: string } & Record<string, unknown>) => void) | undefined;
  /** Aborts when the invocation has just enough time left to answer. Every AWS call carries it. */
  readonly signal: AbortSignal;
  /** Milliseconds until `signal` aborts. */
  timeLeftMs(): number;
}
