import type { Call } from '../aws/call.ts';
import { HoldfastError } from '../errors.ts';
import { ONCE_KEY_PREFIX, ONCE_LEASE_ID_PREFIX } from '../locks/record/identity.ts';
import { withCallersKey } from '../namespace.ts';

export const onceRowOf = (key: string): string => ONCE_KEY_PREFIX + key;

export const onceKeyOf = (row: string): string =>
  row.startsWith(ONCE_KEY_PREFIX) ? row.slice(ONCE_KEY_PREFIX.length) : row;

/** Gives an answer the lease id of a run in place of the id of an exclusive grant. */
export const withRunId = <Answer extends object>(answer: Answer): Answer =>
  'leaseId' in answer ? { ...answer, leaseId: String(answer.leaseId).replace(/^e\./, ONCE_LEASE_ID_PREFIX) } : answer;

/**
 * Runs a call that is made for keys on the record of `once`, and answers with the caller's key.
 * @throws HoldfastError what the call throws, with the caller's key
 */
export function onRow<Input extends { key: string }, Answer extends { key: string }>(
  run: (input: Input, call: Call) => Promise<Answer>,
): (input: Input, call: Call) => Promise<Answer> {
  return async (input, call) => {
    const answer = await run({ ...input, key: onceRowOf(input.key) }, call).catch(withKey(input.key));
    return withRunId({ ...answer, key: input.key });
  };
}

export const withKey =
  (key: string) =>
  (error: unknown): never => {
    if (!(error instanceof HoldfastError) || error.context.key === undefined) throw error;
    const { code, message, context, cause } = error;
    const { actual } = context;
    throw new HoldfastError(code, withCallersKey(message, context.key, key), {
      ...context,
      key,
      ...(typeof actual === 'object' && actual !== null && { actual: { ...actual, key } }),
      cause,
    });
  };
