/** How much callers may take, so that the accident of one caller does not stop the others. */
export interface Quotas {
  /** Tasks and calls in line for a key. */
  waitersPerKey: number;
  /** Tasks and calls in line for all keys of a namespace, as the repair has counted them. */
  waitersPerNamespace: number;
  /** How many environments are reserved for `acquire`, if any are. Waiting calls leave some of them to calls that do not wait. */
  acquireConcurrency?: number | undefined;
}

export const DEFAULT_QUOTAS: Quotas = { waitersPerKey: 1000, waitersPerNamespace: 10_000 };
