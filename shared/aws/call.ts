/**
 * How the gateway authorized a caller: by IAM, or by a JWT with these scopes. Only the local gateway authorizes by
 * `nobody`.
 */
export type Authorization =
  | { by: 'iam' }
  | { by: 'jwt'; scopes: readonly string[]; namespaces: readonly string[] }
  | { by: 'nobody' };

/** The measures of calls besides their outcomes, with their units. */
export const MEASURES = {
  /**
   * The time from the end of a lease until the next holder, who was in line by then, is notified. Not measured if the
   * lease expired.
   */
  HandOffMs: 'Milliseconds',
  /** How long a task was parked before its grant. */
  ParkedMs: 'Milliseconds',
  /** The time from the answer to a reservation until its start. */
  RateWaitMs: 'Milliseconds',
  Parked: 'Count',
  /** How many keys have a line, as the scheduled repair finds them. */
  KeysInLine: 'Count',
  /** The age of the oldest ticket of all keys, as the scheduled repair finds it. */
  OldestTicketAgeSeconds: 'Seconds',
  /** Runs of the scheduled repair that ended before they had seen every key with a line. */
  RepairsCutShort: 'Count',
} as const;

export type Measure = keyof typeof MEASURES;

export interface Call {
  /** The authenticated caller (IAM ARN or JWT subject), if the adapter knows one. */
  readonly principal?: string | undefined;
  /** Undefined if the caller invoked the function without the gateway (lambda:InvokeFunction). */
  readonly authorization?: Authorization | undefined;
  /** The only namespace that the caller may use. Undefined if the call is for the whole deployment. */
  readonly namespace?: string | undefined;
  /**
   * Partition, region and account of the function, such as `aws:us-east-1:123456789012`. Undefined if they are not
   * known.
   */
  readonly home?: string | undefined;
  /** Adds a value to the metrics in the log line of the invocation. Absent if there are no metrics. */
  readonly measure?: ((measure: Measure, value: number) => void) | undefined;
  /**
   * Writes a further log line of the invocation. Absent in a process without a log of its own, such as one that uses
   * directTransport.
   */
  readonly log?: ((line: { message: string } & Record<string, unknown>) => void) | undefined;
  /** Aborts when the invocation has just enough time left to answer. Pass it to every request to AWS. */
  readonly signal: AbortSignal;
  /** Milliseconds until `signal` aborts. */
  timeLeftMs(): number;
}
