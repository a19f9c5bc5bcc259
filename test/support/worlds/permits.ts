import {
  type AttributeValue,
  DeleteItemCommand,
  type DynamoDBClient,
  GetItemCommand,
  PutItemCommand,
  UpdateItemCommand,
} from '@aws-sdk/client-dynamodb';
import type { LeaseDependencies } from '../../../shared/line/dependencies.ts';
import { lookUpKey } from '../../../shared/locks/read.ts';
import { acquirePermit } from '../../../shared/permits/acquire.ts';
import { breakPermitByFence } from '../../../shared/permits/break.ts';
import { extendPermit } from '../../../shared/permits/heartbeat.ts';
import { releasePermit } from '../../../shared/permits/release.ts';
import { seededIds, testSeed } from '../chance/seed.ts';
import { call, newTable, testClient, watch } from '../emulators/aws.ts';
import { documented } from '../stack/contract.ts';
import { ManualClock } from '../time/clock.ts';
import { noStepFunctions } from './leases.ts';

type Item = Record<string, AttributeValue>;

/** A table of its own, a clock to move, and the calls on pools over them. */
export async function poolWorld(overrides: Partial<LeaseDependencies> = {}) {
  const clock = new ManualClock();
  const dynamodb = testClient();
  const requests = watch(dynamodb);
  const dependencies = {
    dynamodb,
    clock,
    ids: seededIds(testSeed()),
    table: await newTable('leases'),
    waitersTable: await newTable('waiters'),
    stepFunctions: noStepFunctions,
    clockSkewMs: 500,
    maxWaitSeconds: 20,
    fenceRetentionSeconds: 3600,
    ...overrides,
  };
  const acquired = documented('acquire', acquirePermit(dependencies));
  const heartbeaten = documented('heartbeat', extendPermit(dependencies));
  const released = documented('release', releasePermit(dependencies));
  const broken = documented('breakLease', breakPermitByFence(dependencies));
  const read = documented('readLeases', lookUpKey(dependencies));

  return {
    clock,
    dynamodb,
    requests,
    dependencies,
    /** The schema's defaults are filled in. */
    acquire: (input: Partial<Parameters<typeof acquired>[0]> & { key: string }, as = call()) =>
      acquired({ holder: 'tester', ttlSeconds: 60, waitSeconds: 0, ...input }, as),
    heartbeat: (input: Parameters<typeof heartbeaten>[0], as = call()) => heartbeaten(input, as),
    release: ({ key, leaseId }: { key: string; leaseId: string }, as = call()) => released({ key, leaseId }, as),
    breakPermit: (input: Parameters<typeof broken>[0], as = call()) => broken(input, as),
    read: (key: string) => read({ key }, call()),
    ...rawPools(dynamodb, dependencies.table),
  };
}

/** What tells a pool's record from that of a lease. */
const POOL_ITEM: Item = {
  lease_version: { S: 'holdfast' },
  lease_expiry: { N: '4102444800' },
  used: { N: '0' },
};

/** Records of pools, behind the product's back. */
export function rawPools(dynamodb: DynamoDBClient, table: string) {
  const keyOf = (key: string) => ({ TableName: table, Key: { key: { S: key } } });
  return {
    rawItem: async (key: string): Promise<Item | undefined> =>
      (await dynamodb.send(new GetItemCommand({ ...keyOf(key), ConsistentRead: true }))).Item,
    putRaw: (item: Item) => dynamodb.send(new PutItemCommand({ TableName: table, Item: { ...POOL_ITEM, ...item } })),
    /** An empty pool. */
    form: (key: string) =>
      dynamodb.send(
        new PutItemCommand({
          TableName: table,
          Item: { ...POOL_ITEM, key: { S: key }, used: { N: '0' }, fence: { N: '1' } },
        }),
      ),
    /** As TTL does. */
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
