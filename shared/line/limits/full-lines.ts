import { QueryCommand } from '@aws-sdk/client-dynamodb';
import { integer } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import type { Item } from '../../aws/dynamodb.ts';
import { reading, send } from '../../aws/send.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import { IS_WAITER_OF, waiterOf } from '../waiters.ts';
import { DEFAULT_QUOTAS } from './quotas.ts';

/** A hint may be wrong. So at most this many arrivals pass the quota before one of them counts the line, whatever the record says. */
const MAX_UNCOUNTED = 32;

const countedEvery = (waitersPerKey: number): number =>
  Math.min(MAX_UNCOUNTED, Math.max(1, Math.ceil(waitersPerKey / MAX_UNCOUNTED)));

/** A call or a task that has just joined a line, and the record after that. */
export interface Arrived {
  /** The key of the line. */
  key: string;
  /** The mark: how many have joined so far, with this one. */
  arrivals: number;
  /** A hint: how many of those have left the line. */
  lineOut: number | undefined;
  /** Sets the hint after a count that contradicts it. */
  correct(inLine: number): Promise<unknown>;
}

/**
 * Whether more are in line than the quota allows (docs/protocols/queue.md#limits). Counts the line only if, by the record, more may be in it: a
 * crowd that comes back raises the mark quickly, and that alone is no reason to count.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function isLineFull(
  dependencies: LeaseDependencies,
  { key, arrivals, lineOut = 0, correct }: Arrived,
  call: Call,
): Promise<boolean> {
  const { waitersPerKey } = dependencies.quotas ?? DEFAULT_QUOTAS;
  const seemsFull = arrivals - lineOut > waitersPerKey;
  const isSample = arrivals > waitersPerKey && arrivals % countedEvery(waitersPerKey) === 0;
  if (!seemsFull && !isSample) return false;
  const inLine = await countInLine(dependencies, key, call);
  const isFull = inLine > waitersPerKey;
  if (isFull !== seemsFull) await correct(inLine);
  return isFull;
}

/**
 * Counts the tasks and callers in line, up to one more than the quota, by an eventually consistent count: half a read unit for each 4 KiB of rows.
 * The row of a caller that left stays until the repair deletes it, and does not count.
 * @throws HoldfastError Throttled, Unavailable
 */
async function countInLine(
  { dynamodb, clock, waitersTable, quotas: { waitersPerKey } = DEFAULT_QUOTAS }: LeaseDependencies,
  key: string,
  call: Call,
): Promise<number> {
  let count = 0;
  let from: Item | undefined;
  do {
    const command: QueryCommand = new QueryCommand({
      TableName: waitersTable,
      Select: 'COUNT',
      Limit: waitersPerKey + 1 - count,
      KeyConditionExpression: IS_WAITER_OF,
      FilterExpression: 'attribute_not_exists(keep_until) OR keep_until > :now',
      ExpressionAttributeNames: { '#key': 'key' },
      ExpressionAttributeValues: { ...waiterOf(key), ':now': integer(clock.now()) },
      ...(from && { ExclusiveStartKey: from }),
    });
    const page = await send(dynamodb, { command, operation: reading(`table ${waitersTable}`) }, call);
    count += page.Count ?? 0;
    from = page.LastEvaluatedKey;
  } while (from && count <= waitersPerKey);
  return count;
}
