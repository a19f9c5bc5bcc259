import { type Written, write } from '../engine/common.ts';
import type { Config, Item, Op, Steps } from '../engine/types.ts';
import { endsAt, type Previous } from './writes.ts';

/** For a write that sets a version of its own: an earlier try of the SDK's may have landed before the one that lost. */
export function* writeVersion(op: Op, version: string): Steps<Written> {
  const written = yield* write(op);
  return { ...written, won: written.won || written.standing.lease_version === version };
}

export const endReason = (record: Item) => (record.broken_at === undefined ? 'released' : 'broken');

export interface View {
  leaseId: string;
  version: string;
  fence: number;
  remaining: number;
  ttl: number;
}
export const viewOf = (record: Item, now: number, config: Config): View => ({
  leaseId: record.lease_id,
  version: record.lease_version,
  fence: record.fence,
  remaining: Math.max(0, endsAt(record, config) - now),
  ttl: record.ttl_ms,
});

/** As a transfer left it on the record. */
export const storedPrevious = (record: Item): Previous | undefined =>
  record.prev_fence === undefined
    ? undefined
    : { holder: record.prev_holder, fence: record.prev_fence, ended: record.prev_ended };

/** What a call of acquire answers. */
export interface Answer extends View {
  waited: number;
  repeated: boolean;
  previous: Previous | undefined;
  /** Whether this call claimed it. */
  claimed: boolean;
}
