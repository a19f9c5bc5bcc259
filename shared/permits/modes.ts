import type { Mode } from '../line/calls.ts';

export const MODES = ['shared', 'exclusive'] as const satisfies readonly Mode[];

/** The most permits of a pool, and the limit of a caller that names none. Every call writes the whole record, so it must stay small. */
export const MOST_PERMITS = 200;

/** The weight of a caller that has the key alone. No limit allows another holder beside it. */
export const EXCLUSIVE_WEIGHT = 1_000_000;

/** The most bytes of a holder's `data`, which is in the record that every call writes. */
export const MOST_DATA_BYTES = 256;
