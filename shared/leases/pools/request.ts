import type { NewPermit } from './grants.ts';
import type { PoolEntry, PoolRecord } from './record.ts';

/** A request for a permit. */
export interface PermitRequest extends Omit<NewPermit, 'ticket' | 'claimTtlMs'> {
  key: string;
  requestId: string;
  principal: string | undefined;
}

/** A grant. */
export interface Granted {
  won: true;
  standing: PoolRecord;
  /** Whether an earlier try of the request got it. */
  repeated: boolean;
  /** In whose place it is. */
  ended: readonly PoolEntry[];
  /** When `waitedMs` ends. */
  triedAt: number;
}

/** Or the record that keeps the request from it. */
export type Outcome = Granted | { won: false; standing: PoolRecord };
