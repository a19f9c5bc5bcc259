import { type HoldfastError, invalidRequest } from '../errors.ts';
import type { Ended } from '../line/ended.ts';
import type { NewPermit, PoolEntry, PoolRecord } from './record.ts';

/** A request for a permit. */
export interface PermitRequest extends Omit<NewPermit, 'ticket' | 'claimTtlMs' | 'previous'> {
  key: string;
  requestId: string;
  principal: string | undefined;
}

/** A request has one permit, by the terms of the call that received it. A duplicate call that asks for another weight would be misled by it. */
export const otherWeight = ({ weight }: PermitRequest, own: PoolEntry): HoldfastError | undefined =>
  own.weight === weight
    ? undefined
    : invalidRequest([
        {
          path: 'requestId',
          message:
            'has a permit of another weight or mode: send the weight and mode of that permit, or another requestId',
        },
      ]);

/** @throws HoldfastError InvalidRequest, as `otherWeight` */
export function refuseOtherWeight(request: PermitRequest, own: PoolEntry): void {
  const error = otherWeight(request, own);
  if (error) throw error;
}

/** A grant, and the record that shows it. */
export interface Granted {
  record: PoolRecord;
  /** True if an earlier try of the request received the grant. */
  repeated: boolean;
  /** The holder before, of an exclusive grant or of a grant from the line. */
  previous?: Ended | undefined;
  /** The expired entries in whose places it comes. */
  ended?: readonly PoolEntry[];
}

/** A grant, or the record that keeps the request from one. */
export type Outcome = (Granted & { won: true }) | { won: false; record: PoolRecord };
