export interface Failure {
  test: string;
  /** Of each error and of its causes. */
  messages: string[];
}

/** What the tests did next to the busy processes. */
export interface Report {
  passed: number;
  failures: Failure[];
}

/** Whether a test, a hook, or a poll for a state ran out of time. The state of a poll may have come later. */
export const isTimeout = ({ messages }: Failure): boolean =>
  messages.some((message) =>
    /\b(Test|Hook) timed out in \d+ ?ms|^(Matcher did not succeed in time\.|Timed out in waitUntil!)$/i.test(message),
  );
