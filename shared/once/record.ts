import type { Json } from '../aws/attributes.ts';
import { json, number } from '../aws/attributes.ts';
import type { Item } from '../aws/dynamodb.ts';
import { type LeaseRecord, parseRecord } from '../leases/record.ts';

/** The record of `once` (docs/protocols/once.md#record): a lease, with the slot of its grant and the last slot that was done. */
export interface OnceRecord extends LeaseRecord {
  /** The slot of the grant. */
  slot?: string | undefined;
  /** How long the result of the grant is to be kept, in milliseconds. */
  keepMs?: number | undefined;
  /** The lease id of the last grant that stored a result, also after the slot is forgotten. */
  doneBy?: string | undefined;
  done?: Done | undefined;
}

/** The last slot that was done. Instants are epoch milliseconds. */
export interface Done {
  slot: string;
  at: number;
  /** The lease id of the grant that stored the result. */
  by: string | undefined;
  holder: string | undefined;
  fence: number | undefined;
  result: Json;
  inputHash: string | undefined;
  keepUntil: number;
}

/** @param item undefined if there is no record @throws OtherKind for a record that a third-party client made a pool */
export function parseOnce(key: string, item: Item | undefined, unanswered = false): OnceRecord {
  if (!item) return { key };
  return {
    ...parseRecord(item, unanswered),
    slot: item.slot?.S,
    keepMs: number(item, 'keep_ms'),
    doneBy: item.done_by?.S,
    done: doneIn(item),
  };
}

function doneIn(item: Item): Done | undefined {
  const slot = item.done_slot?.S;
  if (slot === undefined) return undefined;
  return {
    slot,
    at: number(item, 'done_at') ?? 0,
    by: item.done_by?.S,
    holder: item.done_holder?.S,
    fence: number(item, 'done_fence'),
    result: json(item.result?.S) ?? null,
    inputHash: item.done_input_hash?.S || undefined,
    keepUntil: number(item, 'keep_until') ?? 0,
  };
}
