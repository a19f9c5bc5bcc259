import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { GetItemCommand, PutItemCommand, UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { integer, text } from '../../../shared/aws/attributes.ts';
import { serve } from '../scenarios.ts';
import { client, isWon, ourPauses, table } from './peer.ts';

/**
 * The semaphore of an AWS sample (aws-samples/aws-stepfunctions-examples, app-control-concurrency-with-dynamodb). Each state of the sample is a call
 * here. Each name has an item with a count and an attribute for each holder. Nothing expires: the sample finds dead holders through an event of Step
 * Functions.
 */

/** The sample retries Acquire Lock this often: first after a second, then each time after twice as long. Then it reads the item, and waits three seconds. */
const [RETRIES, FIRST_RETRY_MS, WAIT_MS] = [6, 1000, 3000];

function* samplePauses(): Generator<number, never> {
  for (;;) {
    for (let retry = 0; retry < RETRIES; retry++) yield FIRST_RETRY_MS * 2 ** retry;
    yield WAIT_MS;
  }
}

function pausing(): () => Promise<void> {
  if (process.env.PAUSES !== 'sample') return ourPauses();
  const pauses = samplePauses();
  return () => delay(pauses.next().value);
}

interface Acquiring {
  key: string;
  /** Stands for the id of the execution. */
  execution: string;
  limit: number;
}

async function acquire({ key, execution, limit }: Acquiring): Promise<void> {
  const pause = pausing();
  for (;;) {
    for (let retry = 0; retry <= RETRIES; retry++) {
      if (await acquireLock({ key, execution, limit })) return;
      if (retry < RETRIES) await pause();
    }
    if (await isAcquired(key, execution)) return;
    await pause();
  }
}

async function acquireLock({ key, execution, limit }: Acquiring): Promise<boolean> {
  const command = () =>
    new UpdateItemCommand({
      TableName: table,
      Key: { LockName: text(key) },
      UpdateExpression: 'SET #count = #count + :increase, #owner = :time',
      ConditionExpression: '#count <> :limit AND attribute_not_exists(#owner)',
      ExpressionAttributeNames: { '#count': 'currentlockcount', '#owner': execution },
      ExpressionAttributeValues: {
        ':increase': integer(1),
        ':limit': integer(limit),
        ':time': text(new Date().toISOString()),
      },
      ReturnValues: 'UPDATED_NEW',
    });
  for (;;)
    try {
      return await isWon(client.send(command()));
    } catch (error) {
      if ((error as Error).name !== 'ValidationException') throw error;
      await initialize(key); // the item does not exist yet
    }
}

const initialize = (key: string) =>
  isWon(
    client.send(
      new PutItemCommand({
        TableName: table,
        Item: { LockName: text(key), currentlockcount: integer(0) },
        ConditionExpression: 'LockName <> :key',
        ExpressionAttributeValues: { ':key': text(key) },
      }),
    ),
  );

async function isAcquired(key: string, execution: string): Promise<boolean> {
  const { Item: item } = await client.send(
    new GetItemCommand({
      TableName: table,
      Key: { LockName: text(key) },
      ProjectionExpression: '#owner',
      ExpressionAttributeNames: { '#owner': execution },
    }),
  );
  return item?.[execution] !== undefined;
}

const release = (key: string, execution: string) =>
  isWon(
    client.send(
      new UpdateItemCommand({
        TableName: table,
        Key: { LockName: text(key) },
        UpdateExpression: 'SET #count = #count - :decrease REMOVE #owner',
        ConditionExpression: 'attribute_exists(#owner)',
        ExpressionAttributeNames: { '#count': 'currentlockcount', '#owner': execution },
        ExpressionAttributeValues: { ':decrease': integer(1) },
        ReturnValues: 'UPDATED_NEW',
      }),
    ),
  );

void serve({
  caller: (_, limit) => ({
    acquire: async (key) => {
      const execution = randomUUID();
      await acquire({ key, execution, limit });
      return { release: () => release(key, execution) };
    },
  }),
});
