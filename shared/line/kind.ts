import type { Item } from '../aws/dynamodb.ts';
import { HoldfastError } from '../errors.ts';

/** The kinds of a key (docs/protocols/kinds.md). A key has one record, and the record has one kind. */
export const KINDS = ['lease', 'pool'] as const;
export type Kind = (typeof KINDS)[number];

/** The `lease_version` of a pool's record. Every other client of the table takes such a record for a held lease. */
export const OURS = 'holdfast';

/** A record with the weight of permits, or with the mark of a line for permits. */
export const isPool = (item: Item): boolean => item.used !== undefined || item.mark !== undefined;

/** The record of a lease that Holdfast granted, or for which callers wait. A record of a third-party client has neither attribute. */
export const isLease = (item: Item): boolean =>
  !isPool(item) && (item.lease_id !== undefined || item.waiters !== undefined);

/** The kind that a waiter waits for. Only a waiter for a permit has terms. */
export const kindOf = ({ permit }: { permit?: object | undefined }): Kind => (permit === undefined ? 'lease' : 'pool');

/**
 * A call on a lease met the record of a pool, or a call on a pool met the record of a lease. Leases and permits do not import each other, so `locks/`
 * catches this error and decides what happens.
 */
export class OtherKind extends HoldfastError {
  /** The record that the call met. */
  readonly item: Item;
  /** Whether a try of the lost write got no answer: that try may have landed before the key changed its kind. */
  readonly unanswered: boolean;

  constructor(item: Item, unanswered = false) {
    super('WrongKind', `the key is used as a ${isPool(item) ? 'pool of permits' : 'lease'}`, { key: item.key?.S });
    this.item = item;
    this.unanswered = unanswered;
  }
}

/** How often a key may change its kind during one call. */
const MOST_CHANGES = 4;

/**
 * What a call met whose key has changed its kind so often.
 * @throws the error, if it is no OtherKind; HoldfastError Unavailable if the key has changed its kind too often, so that the call always ends
 */
export function otherKind(error: unknown, changes: number): OtherKind {
  if (!(error instanceof OtherKind)) throw error;
  if (changes < MOST_CHANGES) return error;
  throw new HoldfastError(
    'Unavailable',
    'callers keep changing the kind of the key: use one key as a lease or as a pool',
    { retryAfterMs: 1000 },
  );
}
