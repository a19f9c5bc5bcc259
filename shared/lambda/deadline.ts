import type { Context } from 'aws-lambda';
import type { Call } from '../aws/call.ts';

/** The part of the invocation's time that is reserved for the answer, in milliseconds. */
const ANSWER_MS = 500;

/** Aborts the AWS calls of an invocation while there is still time to answer. `end` must be called. */
export function deadline(
  context: Pick<Context, 'getRemainingTimeInMillis'>,
): Pick<Call, 'signal' | 'timeLeftMs'> & { end(): void } {
  const timeLeftMs = () => Math.max(0, context.getRemainingTimeInMillis() - ANSWER_MS);
  const controller = new AbortController();
  const left = timeLeftMs();
  // A timer of 0 ms would fire only after the first request has been sent.
  if (left === 0) controller.abort();
  const timer = setTimeout(() => controller.abort(), left);
  return { signal: controller.signal, timeLeftMs, end: () => clearTimeout(timer) };
}
