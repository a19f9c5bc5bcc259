/** The exit codes of `holdfast`, besides 0 and those of a command of `holdfast run`. docs/cli.md lists them. */
export const EXIT = {
  /** The service refused the call: nothing has that name, the state was not as expected, or there was a conflict. */
  refused: 1,
  /** The command line or the configuration is wrong, or the service found the request invalid. */
  misuse: 64,
  /** No answer came, or none that says what happened. */
  noAnswer: 69,
  /** Another caller holds the lease, a newer run has replaced this one, the rate is used up, or the time of a watch is over. */
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
