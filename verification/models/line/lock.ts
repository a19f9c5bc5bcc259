import type { Item, Op, Steps } from '../engine/types.ts';

/** What a lock has given to one request. */
interface Grant {
  version: string;
  /** The row that it was given to. */
  ticket: string | undefined;
  /** Until its claim: the ttl that was asked for. */
  claimTtl: number | undefined;
  expiresAt: number;
  ttl: number;
}

/** A lease, or the permits of a pool, as one request sees it. The line reads no attribute of its record. */
export interface Lock {
  key: string;
  /** Undefined if the request has no grant that stands. */
  own(record: Item): Grant | undefined;
  /** Makes an unclaimed grant a full one, or gives a full grant its whole ttl again. */
  renewal(record: Item, version: string, now: number): Op;
  /** A full grant that another call of the request has claimed. @returns undefined if it stands no more */
  repeat(record: Item): Steps<Item | undefined>;
  /** Ends the grant of the request unused. */
  giveUp(record: Item): Steps<void>;
}
