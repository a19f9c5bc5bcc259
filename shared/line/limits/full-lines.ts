import { QueryCommand } from '@aws-sdk/client-dynamodb';
import { integer, text } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import type { Item } from '../../aws/dynamodb.ts';
import { reading, send } from '../../aws/send.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import { DEFAULT_QUOTAS } from './quotas.ts';

/**
 * Counts the tasks and callers in line, up to one more than the quota, by an eventually consistent count: half a read unit for each 4 KiB of rows.
 * The row of a caller that left stays until the repair deletes it, and does not count.
 * @throws HoldfastError Throttled, Unavailable
 */
export async function countInLine(
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
      KeyConditionExpression: '#key = :key',
      FilterExpression: 'attribute_not_exists(keep_until) OR keep_until > :now',
      ExpressionAttributeNames: { '#key': 'key' },
      ExpressionAttributeValues: { ':key': text(key), ':now': integer(clock.now()) },
      ...(from && { ExclusiveStartKey: from }),
    });
    const page = await send(dynamodb, { command, operation: reading(`table ${waitersTable}`) }, call);
    count += page.Count ?? 0;
    from = page.LastEvaluatedKey;
  } while (from && count <= waitersPerKey);
  return count;
}

/** Whether more tasks and callers are in line than the quota allows. @throws as `countInLine` */
export const isQueueFull = async (dependencies: LeaseDependencies, key: string, call: Call): Promise<boolean> =>
  (await countInLine(dependencies, key, call)) > (dependencies.quotas ?? DEFAULT_QUOTAS).waitersPerKey;
