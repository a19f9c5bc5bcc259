/** How much callers may take, so that an accident of one of them stops there. */
export interface Quotas {
  /** Tasks and calls in line for a key. */
  waitersPerKey: number;
  /** Tasks and calls in line for all keys of a namespace, as the repair has counted them. */
  waitersPerNamespace: number;
  /** Environments that `acquire` may have, where that is reserved. Waiting leaves some of them to calls that do not wait. */
  acquireConcurrency?: number | undefined;
}

export const DEFAULT_QUOTAS: Quotas = { waitersPerKey: 1000, waitersPerNamespace: 10_000 };
