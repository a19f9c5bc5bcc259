export const MODES = ['shared', 'exclusive'] as const;
export type Mode = (typeof MODES)[number];

/** How many permits a pool has at most, and for a caller that names no limit: every call writes the whole record. */
export const MOST_PERMITS = 200;

/** The weight of one who has the key alone: more than any limit allows beside it. */
export const EXCLUSIVE_WEIGHT = 1_000_000;

/** What a holder leaves for others is kept in the record that every call writes. */
export const MOST_DATA_BYTES = 256;
