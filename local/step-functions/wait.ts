import { StatesError } from './errors.ts';
import type { Json } from './json.ts';

interface WaitOptions {
  /** How long a second of `Seconds` takes, in milliseconds. */
  secondMs: number;
  /** Aborts when the execution has ended. The wait then never resolves. */
  ended: AbortSignal;
}

/**
 * Waits like a Wait state with one of these fields.
 * @throws StatesError States.QueryEvaluationError, States.Runtime (not a timestamp)
 */
export async function wait(
  { Seconds: seconds, Timestamp: timestamp }: { Seconds?: Json; Timestamp?: Json },
  { secondMs, ended }: WaitOptions,
): Promise<void> {
  const ms = timestamp === undefined ? wholeSeconds(seconds) * secondMs : timeOf(timestamp) - Date.now();
  await new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    ended.addEventListener('abort', () => clearTimeout(timer));
  });
}

function wholeSeconds(seconds: Json | undefined): number {
  if (Number.isInteger(seconds) && Number(seconds) >= 0) return Number(seconds);
  throw new StatesError('States.QueryEvaluationError', `Seconds is ${seconds}, and must be a whole number from 0 on`);
}

const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;

/** The timestamp in epoch milliseconds, cut to whole seconds as AWS does. */
function timeOf(timestamp: Json): number {
  const text = String(timestamp);
  if (TIMESTAMP.test(text)) return Math.floor(Date.parse(text) / 1000) * 1000;
  throw new StatesError('States.Runtime', `${text} is not a timestamp`, true);
}
