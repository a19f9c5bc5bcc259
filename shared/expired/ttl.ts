import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { integer, text } from '../aws/attributes.ts';
import { aliased, type Condition } from '../aws/condition.ts';

/** What can be wrong with a TTL attribute, so that DynamoDB never deletes the item. */
export type TtlFault = 'milliseconds' | 'missing' | 'notANumber' | 'notATime' | 'olderThanFiveYears';

/**
 * DynamoDB deletes nothing whose TTL is more than five years past, against deleting a table by mistake. Five times 365
 * days is the shorter reading of that.
 */
const FIVE_YEARS_SECONDS = 5 * 365 * 86_400;

/**
 * As seconds this is 2001, before there was DynamoDB. Whoever writes less means no time: none at all, or a duration, and
 * the record may be as young as can be.
 */
const LEAST_SECONDS = 1_000_000_000;

/** As seconds this is the year 5138, as milliseconds 1973: nobody means the former. */
export const LEAST_MILLISECONDS = 100_000_000_000;

export interface Ttl {
  /** What the attribute was meant to say, in epoch milliseconds; undefined where that is not to be known. */
  atMs: number | undefined;
  fault: TtlFault | null;
}

/** Reads a TTL attribute as DynamoDB does (a number of epoch seconds), and as its writer may have meant it. */
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
  milliseconds: 'its TTL holds milliseconds where seconds belong, so DynamoDB never deletes it',
  missing: 'it has no TTL, so DynamoDB never deletes it',
  notANumber: 'its TTL is not a number, so DynamoDB never deletes it',
  notATime: 'its TTL is too small a number to be a time, so DynamoDB never deletes it',
  olderThanFiveYears: 'its TTL is more than five years past, which DynamoDB never deletes',
};

/** What a row says of its TTL. @param what the reason for which it is shown, which a fault is appended to */
export const reasonWithTtl = (what: string, fault: TtlFault | null) => ({
  reason: fault ? `${what}; ${FAULTS[fault]}` : what,
  neverDeletable: fault !== null,
  ttlFault: fault,
});

/** In the filter of a scan: the time that the TTL attribute names is over. */
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

/** As above: the attribute names no time at all, so it never will be. */
export const ttlIsUnreadable = (attribute: string): Condition =>
  aliased(`NOT attribute_type(#${attribute}, :number) OR #${attribute} < :leastSeconds`, {
    ':number': text('N'),
    ':leastSeconds': integer(LEAST_SECONDS),
  });
