import type { Ended } from '../ended.ts';
import type { NewPermit } from './grants.ts';
import type { PoolEntry, PoolRecord } from './record.ts';

/** A request for a permit. */
export interface PermitRequest extends Omit<NewPermit, 'ticket' | 'claimTtlMs' | 'previous'> {
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
  /** The expired entries in whose places it is. */
  ended: readonly PoolEntry[];
  /** Of a grant from the line: what it was given of the holder before. */
  previous?: Ended | undefined;
  /** When `waitedMs` ends. */
  triedAt: number;
}

/** Or the record that keeps the request from it. */
export type Outcome = Granted | { won: false; standing: PoolRecord };
