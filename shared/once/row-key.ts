import type { Call } from '../aws/call.ts';
import { HoldfastError } from '../errors.ts';
import { ONCE_ROWS } from '../leases/memory.ts';

/** The key of the record of a caller's key. */
export const rowOf = (key: string): string => ONCE_ROWS + key;

/** The caller's key of a record. */
export const keyOf = (row: string): string => (row.startsWith(ONCE_ROWS) ? row.slice(ONCE_ROWS.length) : row);

/**
 * Runs a call of leases on the record of `once`, and answers with the caller's key.
 * @throws HoldfastError what the call throws, with the caller's key
 */
export function onRow<Input extends { key: string }, Answer extends { key: string }>(
  run: (input: Input, call: Call) => Promise<Answer>,
): (input: Input, call: Call) => Promise<Answer> {
  return async (input, call) => {
    const answer = await run({ ...input, key: rowOf(input.key) }, call).catch(withKey(input.key));
    return { ...answer, key: input.key };
  };
}

/** Lets an error name the caller's key. */
export const withKey =
  (key: string) =>
  (error: unknown): never => {
    if (!(error instanceof HoldfastError) || error.context.key === undefined) throw error;
    const { code, message, context, cause } = error;
    const { actual } = context;
    throw new HoldfastError(code, message, {
      ...context,
      key,
      ...(typeof actual === 'object' && actual !== null && { actual: { ...actual, key } }),
      cause,
    });
  };
