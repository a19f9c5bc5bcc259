/** Begins the keys of the records of `once` (docs/protocols/once.md#record). No caller can acquire such a key. */
export const ONCE_ROWS = 'holdfast:once:';

/** Begins the lease ids of `once`, which tells heartbeat and release on which record they are. */
export const ONCE_IDS = 'o.';

/**
 * True for a record that remembers a slot after its grant has ended. Its `ttl_seconds` is the time from a write until DynamoDB may delete
 * the record, and no write brings its `lease_expiry` forward.
 */
export const hasMemory = (key: string): boolean => key.startsWith(ONCE_ROWS);
