/** The exit codes of `holdfast`, besides 0 and the exit codes of the user's command. docs/cli.md lists them. */
export const EXIT = {
  /** The service refused the call: there is no such record, or its state is not as expected. */
  refused: 1,
  /** The command line or the configuration is wrong, or the service found the request invalid. */
  misuse: 64,
  /** No answer came, or only an answer that does not say what happened. */
  noAnswer: 69,
  /** Another caller holds the key, a newer run has replaced this one, the rate is used up, or the time of `watch` is over. */
  held: 75,
  /** The lease was lost. */
  lost: 76,
  /** The caller may not do this, or has no credentials. */
  forbidden: 77,
  /** The command was found, and cannot be executed. */
  notExecutable: 126,
  /** There is no such command. */
  notFound: 127,
} as const;
