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
  /** The expired entries in whose places it comes. */
  ended: readonly PoolEntry[];
  /** What a grant from the line has received of the holder before. */
  previous?: Ended | undefined;
  /** When `waitedMs` ends. */
  triedAt: number;
}

/** A grant, or the record that keeps the request from one. */
export type Outcome = Granted | { won: false; standing: PoolRecord };
