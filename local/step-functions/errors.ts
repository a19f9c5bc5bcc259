/** An error answer of the API, with its name on the wire. */
export class ApiError extends Error {}

export const apiError = (name: string, message: string): ApiError => Object.assign(new ApiError(message), { name });

/** The failure of a task or an execution. */
export class StatesError extends Error {
  /** A field that the library requires of an error. */
  readonly isRetryable: boolean;
  readonly isCatchable: boolean;

  /** @param terminal whether no Retry and no Catch may match it */
  constructor(name: string, cause = '', terminal = false) {
    super(cause);
    this.name = name;
    this.isRetryable = !terminal;
    this.isCatchable = !terminal;
  }
}
