import {
  type AttributeValue,
  DeleteItemCommand,
  type DynamoDBClient,
  GetItemCommand,
  PutItemCommand,
  UpdateItemCommand,
} from '@aws-sdk/client-dynamodb';
import type { LeaseDependencies } from '../../../shared/locks/dependencies.ts';
import { leaseWorld } from './leases.ts';

type Item = Record<string, AttributeValue>;

/** leaseWorld, with reads of one key and direct access to the records. */
export async function permitsWorld(overrides: Partial<LeaseDependencies> = {}) {
  const world = await leaseWorld(overrides);
  const { readKey: read, breakLease: breakPermit } = world;
  return { ...world, read, breakPermit, ...rawKeys(world.dynamodb, world.table) };
}

/** The attributes of every record of a key with permits. */
const RECORD: Item = {
  lease_version: { S: 'holdfast' },
  lease_expiry: { N: '4102444800' },
  used: { N: '0' },
};

/** Direct access to the records, without the product. */
export function rawKeys(dynamodb: DynamoDBClient, table: string) {
  const keyOf = (key: string) => ({ TableName: table, Key: { key: { S: key } } });
  return {
    rawItem: async (key: string): Promise<Item | undefined> =>
      (await dynamodb.send(new GetItemCommand({ ...keyOf(key), ConsistentRead: true }))).Item,
    putRaw: (item: Item) => dynamodb.send(new PutItemCommand({ TableName: table, Item: { ...RECORD, ...item } })),
    /** A key whose permits have all ended. */
    form: (key: string) =>
      dynamodb.send(
        new PutItemCommand({
          TableName: table,
          Item: { ...RECORD, key: { S: key }, used: { N: '0' }, fence: { N: '1' } },
        }),
      ),
    /** Deletes a record, as TTL does. */
    deleteRaw: (key: string) => dynamodb.send(new DeleteItemCommand(keyOf(key))),
    /** Adds an attribute as another client would. */
    setRaw: (key: string, name: string, value: AttributeValue) =>
      dynamodb.send(
        new UpdateItemCommand({
          ...keyOf(key),
          UpdateExpression: 'SET #name = :value',
          ExpressionAttributeNames: { '#name': name },
          ExpressionAttributeValues: { ':value': value },
        }),
      ),
  };
}
