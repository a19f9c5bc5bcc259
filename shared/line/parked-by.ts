import type { AcquireInput } from './calls.ts';
import type { ParkedBy } from './waiters.ts';

/** What a request parks. @returns undefined if the call itself waits. The schema (locks/inputs.ts) allows one of the two fields */
export function parkedBy({
  taskToken,
  callbackId,
}: Pick<AcquireInput, 'taskToken' | 'callbackId'>): ParkedBy | undefined {
  if (callbackId !== undefined) return { callbackId };
  return taskToken === undefined ? undefined : { taskToken };
}
