import type { Call } from '../aws/call.ts';
import { HoldfastError } from '../errors.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { readPool } from './read.ts';
import { unusable } from './record.ts';

interface Refused {
  key: string;
  /** What DynamoDB said. */
  cause: Error;
  /** The attribute of the entry that the write is about. */
  entry: string | undefined;
}

const IS_ABOUT_SIZE = /\bsize\b/i;

/**
 * Explains why DynamoDB refused a write. The record that it met was changed by another client, and a second look finds what is wrong with it.
 * The answer of DynamoDB does not say.
 * @throws HoldfastError Unavailable, which names the key and the attribute; Throttled
 */
export async function refusedFor(
  dependencies: LeaseDependencies,
  { key, cause, entry }: Refused,
  call: Call,
): Promise<never> {
  if (IS_ABOUT_SIZE.test(cause.message)) {
    const detail =
      'the record of the pool is near the DynamoDB limit of 400 KB: wait until other holders release their permits';
    throw new HoldfastError('Unavailable', detail, { key, retryAfterMs: 1000, cause });
  }
  throw unusable(await readPool(dependencies, key, call), entry, cause);
}
