import { integer, type Json, text } from '../aws/attributes.ts';
import type { Item } from '../aws/dynamodb.ts';
import type { LeaseDependencies } from '../locks/dependencies.ts';
import { EXCLUSIVE_PATH, EXCLUSIVE_WEIGHT, HOLDFAST_LEASE_VERSION } from '../locks/record/identity.ts';
import { entryOfNew } from '../locks/record/new-entries.ts';
import type { OnceRecord } from './record.ts';
import type { Period } from './slots.ts';

export interface OnceRequest {
  /** The key of the record, with its prefix. */
  key: string;
  name: string;
  requestId: string;
  holder: string;
  ttlSeconds: number;
  slot: string;
  period: Period | undefined;
  keepSeconds: number;
  inputHash?: string | undefined;
  data?: Json | undefined;
  execution?: string | undefined;
}

/** What the write of begin stores. Instants are epoch milliseconds. */
export interface OnceGrant extends OnceRequest {
  id: string;
  entry: Item[string];
  fence: number;
  acquiredAt: number;
  /** How long the result is kept: as the caller asked, or longer if the present `keep_until` is later. */
  keepMs: number;
  /** How long the record stays after each write on the grant. */
  staysSeconds: number;
}

/** Makes the grant of a run. @param before the record, as far as this call knows it. Undefined for a first try */
export function newOnceGrant(
  dependencies: LeaseDependencies,
  request: OnceRequest,
  before: OnceRecord | undefined,
): OnceGrant {
  const { name, holder, ttlSeconds, data, execution } = request;
  const now = dependencies.clock.now();
  const keepMs = Math.max(request.keepSeconds * 1000, (before?.done?.keepUntil ?? 0) - now);
  const staysSeconds = Math.ceil(keepMs / 1000) + dependencies.fenceRetentionSeconds;
  const alone = { limit: null, weight: EXCLUSIVE_WEIGHT, room: 0 };
  const grant = { name, holder, ttlMs: ttlSeconds * 1000, data, execution, ...alone };
  const { id, item: entry } = entryOfNew(dependencies, { grant, now, staysSeconds });
  const fence = Math.max((before?.fence ?? 0) + 1, now);
  return { ...request, id, entry, fence, acquiredAt: now, keepMs, staysSeconds };
}

export const onceItem = ({ slot, inputHash, execution, ...grant }: OnceGrant): Item => ({
  [EXCLUSIVE_PATH]: grant.entry,
  fence: integer(grant.fence),
  used: integer(EXCLUSIVE_WEIGHT),
  lease_version: text(HOLDFAST_LEASE_VERSION),
  lease_expiry: integer(Math.ceil(grant.acquiredAt / 1000) + grant.staysSeconds),
  slot: text(slot),
  keep_ms: integer(grant.keepMs),
  ...(inputHash !== undefined && { input_hash: text(inputHash) }),
  ...(execution !== undefined && { execution: text(execution) }),
});
