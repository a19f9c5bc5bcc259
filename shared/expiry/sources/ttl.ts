import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { integer, text } from '../../aws/attributes.ts';
import { aliased, type Condition } from '../../aws/condition.ts';

/** Why DynamoDB can never delete an item by its TTL attribute. */
export type TtlFault = 'milliseconds' | 'missing' | 'notANumber' | 'notATime' | 'olderThanFiveYears';

/**
 * DynamoDB deletes no item whose TTL is more than five years in the past, as a guard against mistakes. Five times 365 days is
 * the shorter reading of five years.
 */
const FIVE_YEARS_SECONDS = 5 * 365 * 86_400;

/**
 * As seconds this is 2001, before DynamoDB existed. A smaller number is no time: the writer meant none, or a duration. Such a
 * record may be new.
 */
const LEAST_SECONDS = 1_000_000_000;

/** As seconds this is the year 5138, and as milliseconds 1973. No client means the year 5138. */
export const LEAST_MILLISECONDS = 100_000_000_000;

export interface Ttl {
  /** The time that the writer meant, in epoch milliseconds. Undefined if that cannot be known. */
  atMs: number | undefined;
  fault: TtlFault | null;
}

/** Reads a TTL attribute as DynamoDB does (a number of epoch seconds), and as its writer probably meant it. */
export function readTtl(value: AttributeValue | undefined, now: number): Ttl {
  if (value === undefined) return { atMs: undefined, fault: 'missing' };
  if (value.N === undefined) return { atMs: undefined, fault: 'notANumber' };
  const ttl = Number(value.N);
  if (ttl >= LEAST_MILLISECONDS) return { atMs: ttl, fault: 'milliseconds' };
  if (ttl < LEAST_SECONDS) return { atMs: undefined, fault: 'notATime' };
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

/** The fields of a row that describe its TTL. @param what why the record is in the report; a fault is added to it */
export const reasonWithTtl = (what: string, fault: TtlFault | null) => ({
  reason: fault ? `${what}; ${FAULTS[fault]}` : what,
  neverDeletable: fault !== null,
  ttlFault: fault,
});

/** The filter of a scan: the time in the TTL attribute is over. */
export const ttlIsOver = (attribute: string, now: number): Condition =>
  aliased(
    `#${attribute} >= :leastSeconds AND #${attribute} < :seconds OR #${attribute} BETWEEN :leastMs AND :milliseconds`,
    {
      ':seconds': integer(Math.floor(now / 1000)),
      ':leastSeconds': integer(LEAST_SECONDS),
      ':leastMs': integer(LEAST_MILLISECONDS),
      ':milliseconds': integer(now),
    },
  );

/** The filter of a scan: the TTL attribute holds no time, so it never will be over. */
export const ttlIsUnreadable = (attribute: string): Condition =>
  aliased(`NOT attribute_type(#${attribute}, :number) OR #${attribute} < :leastSeconds`, {
    ':number': text('N'),
    ':leastSeconds': integer(LEAST_SECONDS),
  });
