import { type AttributeValue, PutItemCommand } from '@aws-sdk/client-dynamodb';
import { integer, text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { aliased, all, type Condition, conditionFields } from '../aws/condition.ts';
import { conditionalWrite, type Item } from '../aws/dynamodb.ts';
import { writing } from '../aws/send.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { POOL } from '../line/kind.ts';
import { isSamePool, isUnmarked } from './conditions.ts';
import { entryOfNew, MOST_FENCE, type NewPermit, type PoolRecord, parsePool, unusable } from './record.ts';
import { isStillPool, ttlAfter, type Written } from './write.ts';

// How a key becomes a pool, and how a pool becomes a free lease (docs/protocols/kinds.md).

interface Forming {
  key: string;
  /** The record of a lease that no caller has. Undefined if the key has no record. */
  over?: Item | undefined;
  /** A permit to grant with the same write. */
  permit?: NewPermit;
  /** The next waiter, if the pool has a line. */
  ticket?: string | undefined;
  isMarked?: boolean;
}

/**
 * Makes a pool of a key that no caller has. One write, if the record is still as it was seen.
 * @throws OtherKind if the key has become a lease; HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function formPool(dependencies: LeaseDependencies, forming: Forming, call: Call): Promise<Written> {
  const { dynamodb, clock, table } = dependencies;
  const { key, over, permit, ticket, isMarked = false } = forming;
  const now = clock.now();
  const fence = fenceAfter(key, over, now);
  const item: Item = {
    key: text(key),
    lease_version: text(POOL),
    lease_expiry: ttlAfter(now),
    formed: integer(fence),
    fence: integer(fence),
    used: integer(permit?.weight ?? 0),
    ...(isMarked && { waiters: integer(1), seq: integer(1) }),
    ...(ticket !== undefined && { next: text(ticket) }),
    ...(permit && granted(dependencies, { permit, fence, now })),
  };
  const command = new PutItemCommand({
    TableName: table,
    Item: item,
    ...conditionFields(over ? isStillFree(over) : aliased('attribute_not_exists(#key)')),
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  });
  const outcome = await conditionalWrite(dynamodb, { command, operation: writing(`table ${table}`) }, call);
  const record = parsePool(key, outcome.won ? item : outcome.old);
  return { won: outcome.won, record, unanswered: !outcome.won && outcome.unanswered };
}

function fenceAfter(key: string, over: Item | undefined, now: number): number {
  const seen = over?.fence === undefined ? 0 : Number(over.fence.N);
  if (seen < MOST_FENCE) return Math.max(now, seen + 1);
  throw unusable({ key, malformed: 'fence' });
}

function granted(
  dependencies: LeaseDependencies,
  { permit, fence, now }: { permit: NewPermit; fence: number; now: number },
): Item {
  const { name, item } = entryOfNew(dependencies, { permit, now });
  const limit = permit.limit === null ? {} : { last_limit: integer(permit.limit), limit_by: text(permit.holder) };
  return { [`h${name}`]: item, [`f${name}`]: integer(fence), ...limit };
}

/** No caller has had the key since the record was seen, and no waiter has joined. */
function isStillFree(over: Item): Condition {
  const as = (name: string, value: AttributeValue | undefined): Condition =>
    value === undefined
      ? aliased(`attribute_not_exists(#${name})`)
      : aliased(`#${name} = :${name}`, { [`:${name}`]: value });
  return all(isUnmarked, as('fence', over.fence), as('lease_version', over.lease_version));
}

/**
 * Makes a free lease of an empty pool without a line. One write, if the pool is still as it was seen. The next grant of the key, of either kind, has
 * a higher fence than all permits before.
 * @returns false if the pool has changed
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function dissolvePool(
  { dynamodb, clock, table, fenceRetentionSeconds }: LeaseDependencies,
  record: PoolRecord,
  call: Call,
): Promise<boolean> {
  const { key, fence = 0 } = record;
  const command = new PutItemCommand({
    TableName: table,
    Item: {
      key: text(key),
      fence: integer(fence),
      lease_expiry: integer(Math.ceil(clock.now() / 1000) + fenceRetentionSeconds),
    },
    ...conditionFields(
      all(
        isStillPool,
        isSamePool(record),
        isUnmarked,
        aliased('#used = :zero AND #fence = :fence', { ':zero': integer(0), ':fence': integer(fence) }),
      ),
    ),
  });
  return (await conditionalWrite(dynamodb, { command, operation: writing(`table ${table}`) }, call)).won;
}
