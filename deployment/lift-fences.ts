import { type DynamoDBClient, paginateScan, UpdateItemCommand } from '@aws-sdk/client-dynamodb';

/** How far a fence that another machine granted may be ahead of this clock, in milliseconds. */
const MARGIN_MS = 60_000;

/**
 * Lifts every fence of a restored table of leases, or of pools, above those that were granted after the point in time of
 * the restore. Fences follow the clock, so a minute from now is above them all. A fence that is higher stays.
 * @param now epoch milliseconds
 * @returns how many were lifted
 */
export async function liftFences(dynamodb: DynamoDBClient, table: string, now: number): Promise<number> {
  const to = { N: String(now + MARGIN_MS) };
  const tooLow = {
    ExpressionAttributeNames: { '#fence': 'fence' },
    ExpressionAttributeValues: { ':to': to },
  };
  let lifted = 0;
  const filter = { ...tooLow, FilterExpression: '#fence < :to', ConsistentRead: true };
  for await (const { Items = [] } of paginateScan({ client: dynamodb }, { TableName: table, ...filter }))
    for (const { key, row } of Items) {
      if (!key) continue;
      const update = { ...tooLow, UpdateExpression: 'SET #fence = :to', ConditionExpression: '#fence < :to' };
      await dynamodb
        .send(new UpdateItemCommand({ TableName: table, Key: { key, ...(row && { row }) }, ...update }))
        .then(
          () => {
            lifted += 1;
          },
          (error: Error) => {
            // A grant has lifted it, or it was deleted.
            if (error.name !== 'ConditionalCheckFailedException') throw error;
          },
        );
    }
  return lifted;
}
