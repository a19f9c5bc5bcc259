import { type Config, type Item, type Op, Refused, type Steps } from './types.ts';
import { endsAt, type Previous } from './writes.ts';

export const NOW: Op = { op: 'now' };

export interface Written {
  won: boolean;
  standing: Item;
  /** An earlier try of the SDK's got no answer. */
  unanswered: boolean;
}

/** One conditional write: it answers with the record as it is now, or as it kept the write from happening. */
export function* write(op: Op): Steps<Written> {
  const { won, item, old, unanswered } = yield op;
  return { won, standing: (won ? item : old) ?? { key: op.key }, unanswered };
}

/** For a write that sets a version of its own: an earlier try of the SDK's may have landed before the one that lost. */
export function* writeVersion(op: Op, version: string): Steps<Written> {
  const written = yield* write(op);
  return { ...written, won: written.won || written.standing.lease_version === version };
}

export const lost = (reason: string) => new Refused('LeaseLost', { reason });
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

export const ticketName = (now: number, uuid: string): string => `${String(now).padStart(9, '0')}-${uuid}`;

/** What a call of acquire answers. */
export interface Answer extends View {
  waited: number;
  repeated: boolean;
  previous: Previous | undefined;
  /** Whether this call claimed it. */
  claimed: boolean;
}
