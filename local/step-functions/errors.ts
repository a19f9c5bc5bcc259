/** An error that the API answers with, under its name on the wire. */
export class ApiError extends Error {}

export const apiError = (name: string, message: string): ApiError => Object.assign(new ApiError(message), { name });

/** What a task or an execution fails with. */
export class StatesError extends Error {
  /** What the library asks of an error. */
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
