import {
  ConditionalCheckFailedException,
  type DynamoDBClient,
  paginateScan,
  UpdateItemCommand,
} from '@aws-sdk/client-dynamodb';
import { PARAMETERS } from '../infrastructure/parameters.ts';
import type { Item } from '../shared/aws/dynamodb.ts';
import { ALONE } from '../shared/locks/record/identity.ts';

/** How far a fence that a function granted may be ahead of AWS's clock, in milliseconds. */
const MARGIN_MS = 60_000;

/** How long TTL keeps a record after the clock has passed its lifted fence, in seconds. */
const KEPT_SECONDS = {
  // A client of the Rust crate takes the TTL attribute of a held lease for its expiry, so the time is short.
  held: 60,
  other: Number(PARAMETERS.fenceRetentionSeconds?.default),
};

/**
 * Lifts every fence of a restored table of leases above those that were granted after the point in time of
 * the restore. Fences follow the clock, so a minute from now is above them all. A fence that is higher stays. A lifted fence is ahead of
 * the clock: if TTL deleted its record before the clock has passed the fence, the next grant would have a lower fence.
 * @param now epoch milliseconds by AWS's clock, which the functions' clocks agree with
 * @returns how many were lifted
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

/** @returns whether the fence was lifted: not if a grant has lifted it, or the record was deleted */
async function lift(
  dynamodb: DynamoDBClient,
  { table, item, to }: { table: string; item: Item; to: number },
): Promise<boolean> {
  const { key } = item;
  if (!key) return false;
  let standing: Item | undefined = item;
  while (standing && Number(standing.fence?.N) < to)
    try {
      const update = updateOf(standing, to);
      await dynamodb.send(new UpdateItemCommand({ TableName: table, Key: { key }, ...update }));
      return true;
    } catch (error) {
      if (!(error instanceof ConditionalCheckFailedException)) throw error;
      standing = error.Item;
    }
  return false;
}

/** By an exclusive holder, or by a third-party client. */
const isHeldAlone = (item: Item): boolean =>
  item[ALONE]?.M?.i !== undefined || (item.lease_version !== undefined && item.used === undefined);

/** Sets the fence, and puts the TTL off if DynamoDB may otherwise delete the record too early. */
function updateOf(standing: Item, to: number) {
  const seen = standing.lease_expiry;
  const kept = Math.ceil(to / 1000) + (isHeldAlone(standing) ? KEPT_SECONDS.held : KEPT_SECONDS.other);
  // A record without a time never vanishes.
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
