import { integer, type Json, text } from '../aws/attributes.ts';
import type { Item } from '../aws/dynamodb.ts';
import { type GrantRequest, grantItem, newGrant } from '../leases/grant.ts';
import { ONCE_IDS } from '../leases/memory.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import type { OnceRecord } from './record.ts';

/** What a caller of `begin` asks for. `key` is that of the record. */
export interface OnceRequest extends Pick<GrantRequest, 'key' | 'ttlSeconds' | 'holder' | 'principal' | 'requestId'> {
  slot: string;
  /** Whether the slot is a period. */
  isPeriod: boolean;
  keepSeconds: number;
  inputHash?: string | undefined;
  data?: Json | undefined;
  execution?: string | undefined;
}

/** What is written when a run begins. Instants are epoch milliseconds. */
export interface OnceGrant extends OnceRequest {
  version: string;
  leaseId: string;
  fence: number;
  acquiredAt: number;
  /** How long the result is kept: as the caller asked, or longer, so that the present `keep_until` is not shortened. */
  keepMs: number;
}

/** @param before what is known of the record @throws HoldfastError Unavailable if another client left a fence that none can rise above */
export function newOnceGrant(dependencies: LeaseDependencies, request: OnceRequest, before: OnceRecord): OnceGrant {
  const { version, leaseId, fence, acquiredAt } = newGrant(dependencies, request, before);
  const remembered = (before.done?.keepUntil ?? 0) - acquiredAt;
  const keepMs = Math.max(request.keepSeconds * 1000, remembered);
  return { ...request, version, leaseId: ONCE_IDS + leaseId, fence, acquiredAt, keepMs };
}

/** The attributes of the grant as they are stored, and the key. */
export function onceItem({ fenceRetentionSeconds }: LeaseDependencies, grant: OnceGrant): Item {
  const staysSeconds = Math.ceil(grant.keepMs / 1000) + fenceRetentionSeconds;
  return {
    ...grantItem(grant),
    lease_expiry: integer(Math.ceil(grant.acquiredAt / 1000) + staysSeconds),
    ttl_seconds: integer(staysSeconds),
    slot: text(grant.slot),
    keep_ms: integer(grant.keepMs),
    ...(grant.inputHash !== undefined && { input_hash: text(grant.inputHash) }),
  };
}
