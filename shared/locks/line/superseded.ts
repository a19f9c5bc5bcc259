import { HoldfastError } from '../../errors.ts';
import { NAMELESS } from '../record/held-text.ts';
import { endOfRequest, entryOf, type KeyRecord } from '../record/record.ts';
import { leaseLost } from '../record/refusals.ts';

/** The error for a request that a newer one has replaced. @param by the holder of the newer request */
export const superseded = (key: string, by = NAMELESS): HoldfastError =>
  new HoldfastError('Superseded', `a newer request, by ${by}, has replaced this one`, { key, by });

/** The holder of the newer request that has replaced a request, or has asked its grant to stop. */
export const supersederOf = (record: KeyRecord, requestName: string): string | undefined =>
  entryOf(record, requestName)?.newer ?? record.ring.find((slot) => slot.name === requestName)?.newer;

/**
 * Why a request cannot receive a grant: its grant has ended or is ending, or a newer request has replaced it. Undefined
 * if the record remembers neither.
 */
export function refusalOf(record: KeyRecord, requestName: string): HoldfastError | undefined {
  const how = endOfRequest(record, requestName);
  return how === 'superseded'
    ? superseded(record.key, supersederOf(record, requestName))
    : how && leaseLost(record.key, how);
}
