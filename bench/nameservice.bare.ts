import { DynamoDBClient, UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { all, conditionFields } from '../shared/aws/condition.ts';
import { isBelow, isThere } from '../shared/nameservice/conditions.ts';
import { pointerNames } from '../shared/nameservice/pointers.ts';

/** A publish without this service: the same update on the same condition, and nothing around it. */
const client = new DynamoDBClient({});
const table = process.env.NAMESERVICE_TABLE;

export async function publishCommit(alias: string, address: string, t: number): Promise<void> {
  await client.send(
    new UpdateItemCommand({
      TableName: table,
      Key: { pk: { S: `${alias}:main` }, sk: { S: 'head' } },
      UpdateExpression: 'SET updated_at_ms = :now, commit_address = :address, commit_t = :t REMOVE commit_id',
      ...conditionFields(all(isThere, isBelow(pointerNames('commit', 'address'), t)), {
        values: { ':address': { S: address }, ':now': { N: String(Date.now()) } },
      }),
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
    }),
  );
}
