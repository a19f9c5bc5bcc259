import type { Context } from 'aws-lambda';
import type { Call } from '../aws/call.ts';

/** The time that is reserved for the answer, in milliseconds. */
const ANSWER_MS = 500;

/**
 * A signal that aborts the requests to AWS while the invocation still has time to answer. Call `end` to stop its timer.
 */
export function deadline(
  context: Pick<Context, 'getRemainingTimeInMillis'>,
): Pick<Call, 'signal' | 'timeLeftMs'> & { end(): void } {
  const timeLeftMs = () => Math.max(0, context.getRemainingTimeInMillis() - ANSWER_MS);
  const controller = new AbortController();
  const left = timeLeftMs();
  // A timer of 0 ms would abort only after the first request was sent.
  if (left === 0) controller.abort();
  const timer = setTimeout(() => controller.abort(), left);
  return { signal: controller.signal, timeLeftMs, end: () => clearTimeout(timer) };
}
