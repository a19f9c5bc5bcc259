import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { integer, text } from '../../aws/attributes.ts';
import { aliased, type Condition } from '../../aws/condition.ts';

/** Why the TTL attribute of an item can never make DynamoDB delete it. */
export type TtlFault = 'milliseconds' | 'missing' | 'notANumber' | 'notATime' | 'olderThanFiveYears';

/**
 * DynamoDB does not delete an item whose TTL is more than five years in the past. AWS does not define five years in
 * days; this is the shorter reading, without leap days.
 */
const FIVE_YEARS_SECONDS = 5 * 365 * 86_400;

/**
 * The smallest number that counts as a time: in seconds, it is in the year 2001, before DynamoDB existed. With a
 * smaller number, the writer meant a duration, or no time, so the record may be new.
 */
const MIN_EPOCH_SECONDS = 1_000_000_000;

/** The smallest number that is taken for milliseconds: in seconds, it would be in the year 5138. */
export const MIN_EPOCH_MS = 100_000_000_000;

export interface Ttl {
  /** The time that the writer meant, in epoch milliseconds. Undefined if it cannot be known. */
  atMs: number | undefined;
  fault: TtlFault | null;
}

/** Reads a TTL attribute as its writer probably meant it. DynamoDB itself only knows numbers of epoch seconds. */
export function readTtl(value: AttributeValue | undefined, now: number): Ttl {
  if (value === undefined) return { atMs: undefined, fault: 'missing' };
  if (value.N === undefined) return { atMs: undefined, fault: 'notANumber' };
  const ttl = Number(value.N);
  if (ttl >= MIN_EPOCH_MS) return { atMs: ttl, fault: 'milliseconds' };
  if (ttl < MIN_EPOCH_SECONDS) return { atMs: undefined, fault: 'notATime' };
  const tooOld = ttl < Math.floor(now / 1000) - FIVE_YEARS_SECONDS;
  return { atMs: ttl * 1000, fault: tooOld ? 'olderThanFiveYears' : null };
}

const FAULTS: Record<TtlFault, string> = {
  milliseconds: 'its TTL is in milliseconds and not in seconds, so DynamoDB never deletes it',
  missing: 'it has no TTL, so DynamoDB never deletes it',
  notANumber: 'its TTL is not a number, so DynamoDB never deletes it',
  notATime: 'its TTL is too small to be a time, so DynamoDB never deletes it',
  olderThanFiveYears: 'its TTL is more than five years past, so DynamoDB never deletes it',
};

/**
 * The fields of a row that depend on the TTL.
 * @param what why the record is in the report. The reason adds a fault of the TTL to it
 */
export const reasonWithTtl = (what: string, fault: TtlFault | null) => ({
  reason: fault ? `${what}; ${FAULTS[fault]}` : what,
  neverDeletable: fault !== null,
  ttlFault: fault,
});

/** The time in the TTL attribute has passed, whether it is in seconds or in milliseconds. */
export const ttlIsOver = (attribute: string, now: number): Condition =>
  aliased(
    `#${attribute} >= :leastSeconds AND #${attribute} < :seconds OR #${attribute} BETWEEN :leastMs AND :milliseconds`,
    {
      ':seconds': integer(Math.floor(now / 1000)),
      ':leastSeconds': integer(MIN_EPOCH_SECONDS),
      ':leastMs': integer(MIN_EPOCH_MS),
      ':milliseconds': integer(now),
    },
  );

/** The TTL attribute is not a time, so it will never pass. */
export const ttlIsUnreadable = (attribute: string): Condition =>
  aliased(`NOT attribute_type(#${attribute}, :number) OR #${attribute} < :leastSeconds`, {
    ':number': text('N'),
    ':leastSeconds': integer(MIN_EPOCH_SECONDS),
  });
