import {
  ConditionalCheckFailedException,
  type DynamoDBClient,
  paginateScan,
  UpdateItemCommand,
} from '@aws-sdk/client-dynamodb';
import { PARAMETERS } from '../infrastructure/parameters.ts';
import type { Item } from '../shared/aws/dynamodb.ts';
import { EXCLUSIVE_PATH } from '../shared/locks/record/identity.ts';

/** How far a granted fence may be ahead of the AWS clock, in milliseconds. */
const MARGIN_MS = 60_000;

/** How long TTL must keep a record after the clock has passed its lifted fence, in seconds. */
const KEPT_SECONDS = {
  // Short, because clients of the Rust crate take the TTL attribute of a held lease for its expiry.
  held: 60,
  other: Number(PARAMETERS.fenceRetentionSeconds?.default),
};

/**
 * Lifts every fence of a restored table above those that were granted after the point in time of the restore. Fences follow the clock, so a minute
 * from now is above all of them. A fence that is already higher stays. A lifted fence is ahead of the clock, so TTL must not delete its record
 * before the clock has passed the fence: the next grant would then have a lower one.
 * @param now epoch milliseconds by the AWS clock
 * @returns how many fences were lifted
 */
export async function liftFences(dynamodb: DynamoDBClient, table: string, now: number): Promise<number> {
  const to = now + MARGIN_MS;
  let lifted = 0;
  const pages = paginateScan(
    { client: dynamodb },
    {
      TableName: table,
      FilterExpression: '#fence < :to',
      ExpressionAttributeNames: { '#fence': 'fence' },
      ExpressionAttributeValues: { ':to': { N: String(to) } },
      ConsistentRead: true,
    },
  );
  for await (const { Items = [] } of pages)
    for (const item of Items) if (await lift(dynamodb, { table, item, to })) lifted += 1;
  return lifted;
}

/** @returns false if a grant has raised the fence since, or the record was deleted */
async function lift(
  dynamodb: DynamoDBClient,
  { table, item, to }: { table: string; item: Item; to: number },
): Promise<boolean> {
  const { key } = item;
  if (!key) return false;
  let current: Item | undefined = item;
  while (current && Number(current.fence?.N) < to)
    try {
      const update = updateOf(current, to);
      await dynamodb.send(new UpdateItemCommand({ TableName: table, Key: { key }, ...update }));
      return true;
    } catch (error) {
      if (!(error instanceof ConditionalCheckFailedException)) throw error;
      current = error.Item;
    }
  return false;
}

/** Whether an exclusive holder or a third-party client holds the key. */
const isHeldExclusively = (item: Item): boolean =>
  item[EXCLUSIVE_PATH]?.M?.i !== undefined || (item.lease_version !== undefined && item.used === undefined);

/** Sets the fence, and postpones the TTL if DynamoDB could otherwise delete the record too early. */
function updateOf(current: Item, to: number) {
  const seen = current.lease_expiry;
  const kept = Math.ceil(to / 1000) + (isHeldExclusively(current) ? KEPT_SECONDS.held : KEPT_SECONDS.other);
  // DynamoDB never deletes a record without the TTL attribute.
  const isEarly = seen?.N !== undefined && Number(seen.N) < kept;
  return {
    UpdateExpression: `SET #fence = :to${isEarly ? ', #ttl = :kept' : ''}`,
    ConditionExpression: `#fence < :to AND ${seen ? '#ttl = :seen' : 'attribute_not_exists(#ttl)'}`,
    ExpressionAttributeNames: { '#fence': 'fence', '#ttl': 'lease_expiry' },
    ExpressionAttributeValues: {
      ':to': { N: String(to) },
      ...(seen && { ':seen': seen }),
      ...(isEarly && { ':kept': { N: String(kept) } }),
    },
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD' as const,
  };
}
