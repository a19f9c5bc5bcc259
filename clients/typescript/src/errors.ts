import type { components } from './contract.ts';

type Schemas = components['schemas'];
type ServiceErrorCode = Schemas['Problem']['code'];

/** Why a lease was lost. The service names the reason, except for `deadline` and `maxHold`, which come from the clocks of this process. */
export type LossReason = Schemas['LeaseLost']['reason'] | 'deadline' | 'maxHold';

/** The fields of each error, by its code. Errors that the client makes itself have no `traceId`. */
export type ErrorFields = Omit<{ [Code in ServiceErrorCode]: Schemas[Code] }, 'LeaseLost' | 'Throttled'> & {
  LeaseLost: {
    code: 'LeaseLost';
    key: string;
    reason: LossReason;
    /** The current holder, if the service has named it. */
    holder?: string | null;
  };
  Throttled: { code: 'Throttled'; retryAfterMs?: number };
  /** No answer of the service arrived: the connection broke, the time ran out, or a gateway failed. The call may have taken effect, unless `sent` is false. */
  Unreachable: { code: 'Unreachable'; status?: number; sent?: false };
  /** The gateway refused the caller (401 or 403) or the call, so nothing was done. */
  Refused: { code: 'Refused'; status: number };
};

/** The code of an error. `Unreachable` and `Refused` come from the client, all others from the service. */
export type ErrorCode = keyof ErrorFields;

/** Marks the errors of every copy of the client, because a program may load both the ES module and the CommonJS module. */
const BRAND = Symbol.for('holdfast.error');

/**
 * The error of every failed call. Branch on `code`, with `isHoldfastError`. An aborted call throws the reason of its signal instead.
 * @example
 * try {
 *   await holdfast.withLease('nightly', buildReport);
 * } catch (error) {
 *   if (!isHoldfastError(error, 'LeaseHeld')) throw error;
 * }
 */
export class HoldfastError extends Error {
  /** What went wrong, for a program. The message is for people, and may change. */
  declare readonly code: ErrorCode;
  /** The HTTP status. Undefined if there was no answer. */
  declare readonly status?: number;
  /** The id of the request, by which operators find it in the logs of the service. */
  declare readonly traceId?: string;
  /** After how many milliseconds a retry may succeed. */
  declare readonly retryAfterMs?: number;
  /** Fields to add when you repeat the call yourself, so that it finds out what became of the first try. The client adds them to its own retries. */
  declare readonly retryWith?: Record<string, string>;

  /** @internal */
  get [BRAND](): true {
    return true;
  }

  /** True for an error of every copy of the client. */
  static [Symbol.hasInstance](error: unknown): error is HoldfastError {
    return BRAND in Object(error);
  }

  /** @param problem the problem details of the service, or fields of the same names */
  constructor(problem: { code: string; detail: string }, cause?: unknown) {
    super(problem.detail, cause === undefined ? {} : { cause });
    Object.assign(this, problem);
    this.name = 'HoldfastError';
  }
}

/**
 * True if the error is a HoldfastError, with the code if a code is given. Narrows the type to the fields of the code.
 * @example
 * if (isHoldfastError(error, 'LeaseHeld')) console.log(`held by ${error.holder}`);
 */
export function isHoldfastError<Code extends ErrorCode = ErrorCode>(
  error: unknown,
  code?: Code,
): error is HoldfastError & ErrorFields[Code] {
  return error instanceof HoldfastError && (code === undefined || error.code === code);
}

/** LeaseHeld, or with `rates` RateExceeded. `holder` is null if a wrapper had too little time left to acquire the key. */
export type HeldError = HoldfastError &
  (ErrorFields['LeaseHeld'] | (ErrorFields['RateExceeded'] & { holder?: undefined }));

/** True if the key was not granted because of other holders or too little time, or if its rates allow no start in time. */
export const isHeld = (error: unknown): error is HeldError =>
  isHoldfastError(error, 'LeaseHeld') || isHoldfastError(error, 'RateExceeded');

export const leaseLost = (key: string, reason: LossReason, holder?: string | null): HoldfastError =>
  new HoldfastError({
    code: 'LeaseLost',
    detail: `the lease of ${key} is no longer held: ${reason}`,
    ...{ key, reason, holder },
  });

export const invalidRequest = (path: string, message: string): HoldfastError =>
  new HoldfastError({ code: 'InvalidRequest', detail: `${path}: ${message}`, ...{ issues: [{ path, message }] } });

export const unreachable = (detail: string, cause?: unknown, status?: number): HoldfastError =>
  new HoldfastError({ code: 'Unreachable', detail, ...{ status } }, cause);

/**
 * The error for an answer that is not from the service but from a gateway in front of it. After a 4xx nothing has run.
 * @param status undefined without an answer
 */
export function refusal(status: number | undefined, detail: string, cause?: unknown): HoldfastError {
  if (status === undefined || status >= 500) return unreachable(detail, cause, status);
  return new HoldfastError({ code: status === 429 ? 'Throttled' : 'Refused', detail, ...{ status } }, cause);
}
