import { type Json, jsonOfText, number } from '../aws/attributes.ts';
import type { Item } from '../aws/dynamodb.ts';
import { type HolderEntry, type KeyRecord, parseKey } from '../locks/record/record.ts';

/**
 * The record of `once` (docs/protocols/once.md#record): the record of a key, with the slot of its grant and the last
 * slot that was done.
 */
export interface OnceRecord extends KeyRecord {
  slot: string | undefined;
  /** The fence of the last grant that stored a result, even after an operator has forgotten the slot. */
  doneFence: number | undefined;
  done: Done | undefined;
}

/** A slot that is done. Instants are epoch milliseconds. */
export interface Done {
  slot: string;
  /** When the result was stored. */
  at: number;
  by: string | undefined;
  holder: string | undefined;
  fence: number | undefined;
  result: Json;
  inputHash: string | undefined;
  /** Until when the record remembers the slot. */
  keepUntil: number;
}

/**
 * Parses the record of `once`.
 * @param key the key of the record, with its prefix
 * @param item undefined if there is no record
 */
export const parseOnce = (key: string, item: Item | undefined): OnceRecord => ({
  ...parseKey(key, item),
  slot: item?.slot?.S,
  doneFence: item && number(item, 'done_fence'),
  done: item && doneIn(item),
});

/** The grant of the caller that works, even if it has expired. */
export const runOf = ({ entries: [run] }: OnceRecord): HolderEntry | undefined => run;

function doneIn(item: Item): Done | undefined {
  const slot = item.done_slot?.S;
  if (slot === undefined) return undefined;
  return {
    slot,
    at: number(item, 'done_at') ?? 0,
    by: item.done_by?.S,
    holder: item.done_holder?.S,
    fence: number(item, 'done_fence'),
    result: jsonOfText(item.result?.S) ?? null,
    inputHash: item.done_input_hash?.S || undefined,
    keepUntil: number(item, 'keep_until') ?? 0,
  };
}
