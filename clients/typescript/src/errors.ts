import type { components } from './contract.ts';

type Schemas = components['schemas'];
type ServiceErrorCode = Schemas['Problem']['code'];

/** Why a lease is no longer held, according to the service or to the clocks of this process. */
export type LossReason = Schemas['LeaseLost']['reason'] | 'deadline' | 'maxHold';

/** The fields of each error, in addition to those of every Error. Errors of the client have no `traceId`. */
export type ErrorFields = Omit<{ [Code in ServiceErrorCode]: Schemas[Code] }, 'LeaseLost' | 'Throttled'> & {
  LeaseLost: {
    code: 'LeaseLost';
    key: string;
    reason: LossReason;
    /** The present holder, if the service said so. */
    holder?: string | null;
  };
  Throttled: { code: 'Throttled'; retryAfterMs?: number };
  /**
   * No response of the service: the connection broke, the time ran out, or a gateway failed. A write may have landed, unless `sent` is false.
   */
  Unreachable: { code: 'Unreachable'; status?: number; sent?: false };
  /** The gateway refused the caller (401 or 403), or the call. */
  Refused: { code: 'Refused'; status: number };
};

/** The codes of the service, and two of the client: `Unreachable` and `Refused`. */
export type ErrorCode = keyof ErrorFields;

/** Marks the errors of each copy of the client: a program may load both the ES module and the CommonJS module. */
const BRAND = Symbol.for('holdfast.error');

/** Thrown by every failed call. An aborted call throws the reason of its signal instead. */
export class HoldfastError extends Error {
  /** The field to branch on. */
  declare readonly code: ErrorCode;
  /** The HTTP status; undefined if there was no answer. */
  declare readonly status?: number;
  /** The id of the request, to look up in the logs of the service. */
  declare readonly traceId?: string;
  /** After how many milliseconds a retry may succeed. */
  declare readonly retryAfterMs?: number;
  /** Fields with which the same call learns its outcome. The client adds them to its own retries. */
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

/** LeaseHeld from the service, or from a wrapper with too little time to acquire: then `holder` is null. RateExceeded only with `rates`. */
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

/** The error for an answer from in front of the service: a 4xx says that nothing ran. @param status undefined for no answer */
export function refusal(status: number | undefined, detail: string, cause?: unknown): HoldfastError {
  if (status === undefined || status >= 500) return unreachable(detail, cause, status);
  return new HoldfastError({ code: status === 429 ? 'Throttled' : 'Refused', detail, ...{ status } }, cause);
}
