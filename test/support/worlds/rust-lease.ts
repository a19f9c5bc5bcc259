import { randomUUID } from 'node:crypto';
import {
  ConditionalCheckFailedException,
  DeleteItemCommand,
  type DynamoDBClient,
  PutItemCommand,
  UpdateItemCommand,
} from '@aws-sdk/client-dynamodb';
import type { Clock } from '../../../shared/surroundings/clock.ts';

/**
 * The three calls of the Rust crate dynamodb-lease 0.22.1, item by item and condition by condition, as a test actor. It has whole seconds of
 * its own clock, a version that rotates, and records without any other attribute.
 */
export function rustClient(dynamodb: DynamoDBClient, table: string, clock: Clock) {
  const seconds = () => Math.floor(clock.now() / 1000);
  const won = async (act: Promise<unknown>): Promise<boolean> => {
    try {
      await act;
      return true;
    } catch (error) {
      if (error instanceof ConditionalCheckFailedException) return false;
      throw error;
    }
  };
  return {
    /** The version of the lease, or undefined if another holder has it. */
    async tryAcquire(key: string, ttlSeconds: number): Promise<string | undefined> {
      const version = randomUUID();
      const put = new PutItemCommand({
        TableName: table,
        Item: {
          key: { S: key },
          lease_expiry: { N: String(seconds() + ttlSeconds) },
          lease_version: { S: version },
        },
        ConditionExpression: 'attribute_not_exists(lease_version) OR lease_expiry < :now',
        ExpressionAttributeValues: { ':now': { N: String(seconds()) } },
      });
      return (await won(dynamodb.send(put))) ? version : undefined;
    },
    /** The new version, or undefined if the lease is lost. */
    async extend(key: string, version: string, ttlSeconds: number): Promise<string | undefined> {
      const next = randomUUID();
      const update = new UpdateItemCommand({
        TableName: table,
        Key: { key: { S: key } },
        UpdateExpression: 'SET lease_version=:new_lease_v, lease_expiry=:expiry',
        ConditionExpression: 'lease_version=:lease_v',
        ExpressionAttributeValues: {
          ':new_lease_v': { S: next },
          ':expiry': { N: String(seconds() + ttlSeconds) },
          ':lease_v': { S: version },
        },
      });
      return (await won(dynamodb.send(update))) ? next : undefined;
    },
    release: (key: string, version: string): Promise<boolean> =>
      won(
        dynamodb.send(
          new DeleteItemCommand({
            TableName: table,
            Key: { key: { S: key } },
            ConditionExpression: 'lease_version=:lease_v',
            ExpressionAttributeValues: { ':lease_v': { S: version } },
          }),
        ),
      ),
  };
}
