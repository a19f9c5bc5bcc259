/** An error answer of the API, with its name on the wire. */
export class ApiError extends Error {}

export const apiError = (name: string, message: string): ApiError => Object.assign(new ApiError(message), { name });

/** The failure of a task or an execution. */
export class StatesError extends Error {
  /** The library requires this field of an error. */
  readonly isRetryable: boolean;
  readonly isCatchable: boolean;

  /** @param terminal true if no Retry and no Catch may match the error */
  constructor(name: string, cause = '', terminal = false) {
    super(cause);
    this.name = name;
    this.isRetryable = !terminal;
    this.isCatchable = !terminal;
  }
}
