/** Begins the keys of the records of `once` (docs/protocols/once.md#record). No caller can acquire such a key. */
export const ONCE_ROWS = 'holdfast:once:';

/** Begins the lease ids of `once`, which tells heartbeat and release on which record they are. */
export const ONCE_IDS = 'o.';

/**
 * True for a record that remembers a slot after its grant has ended. No write brings the TTL attribute of such a record forward: `u` of its entry is the time
 * from a write until DynamoDB may delete the record, and not the ttl.
 */
export const hasMemory = (key: string): boolean => key.startsWith(ONCE_ROWS);
