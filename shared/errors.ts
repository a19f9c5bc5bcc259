/** Every error that a caller can receive: its code, HTTP status and title. docs/api/errors.md says when each occurs. */
export const ERRORS = {
  InvalidRequest: { status: 400, title: 'The request is not valid' },
  Forbidden: { status: 403, title: 'The caller may not do this' },
  NotFound: { status: 404, title: 'There is no such record' },
  LeaseHeld: { status: 409, title: 'The key is not available' },
  Superseded: { status: 409, title: 'A newer request has replaced this one' },
  CommitInProgress: { status: 409, title: 'Another writer is committing to the path' },
  Conflict: { status: 409, title: 'The record is not in the expected state' },
  AlreadyExists: { status: 409, title: 'The alias exists already' },
  LeaseLost: { status: 412, title: 'The lease is no longer yours' },
  PreconditionFailed: { status: 412, title: 'The object is not in the expected state' },
  FenceRejected: { status: 412, title: 'The object belongs to a newer holder of the fence' },
  PayloadTooLarge: { status: 413, title: 'The body is too large' },
  RateExceeded: { status: 429, title: 'The rate is used up for longer than the call may wait' },
  QueueFull: { status: 429, title: 'Too many tasks and callers wait' },
  Throttled: { status: 429, title: 'The store is throttling requests' },
  Unavailable: { status: 503, title: 'A dependency is unavailable' },
  OutcomeUnknown: { status: 504, title: 'The outcome of the write is unknown' },
} as const;

export type ErrorCode = keyof typeof ERRORS;

/** RFC 9457 problem details: the body of an HTTP failure, and the `errorMessage` of a failed task. */
export interface Problem {
  type: string;
  title: string;
  status: number;
  code: ErrorCode;
  detail: string;
  /** Lambda's id of the request. The log lines of the call contain it. */
  traceId: string;
  [context: string]: unknown;
}

/**
 * A documented error with the context fields that docs/api/errors.md lists for its code. The fields never hold a
 * secret.
 */
export class HoldfastError extends Error {
  readonly code: ErrorCode;
  readonly context: Readonly<Record<string, unknown>>;

  /** @param context the context fields, and the `cause`, which only the log shows */
  constructor(code: ErrorCode, detail: string, { cause, ...context }: Record<string, unknown> = {}) {
    super(detail, cause === undefined ? undefined : { cause });
    this.name = code;
    this.code = code;
    this.context = context;
  }

  get status(): number {
    return ERRORS[this.code].status;
  }

  /** Milliseconds after which a retry may succeed; undefined if a retry does not help. */
  get retryAfterMs(): number | undefined {
    const { retryAfterMs } = this.context;
    return typeof retryAfterMs === 'number' ? retryAfterMs : undefined;
  }

  problem(traceId: string): Problem {
    return {
      type: `urn:holdfast:error:${this.code}`,
      title: ERRORS[this.code].title,
      status: this.status,
      code: this.code,
      detail: this.message,
      traceId,
      ...this.context,
    };
  }
}

export interface Issue {
  /** A dotted path into the payload, or a part of the HTTP request. */
  path: string;
  message: string;
}

export function invalidRequest(issues: Issue[]): HoldfastError {
  const detail = issues.map(({ path, message }) => `${path}: ${message}`).join('; ');
  return new HoldfastError('InvalidRequest', detail, { issues });
}

/** The error for a cursor that this listing never returned, or that it returned to a caller of another namespace. */
export const unknownCursor = (): HoldfastError =>
  invalidRequest([{ path: 'cursor', message: 'is not a cursor of this listing: list again without a cursor' }]);
