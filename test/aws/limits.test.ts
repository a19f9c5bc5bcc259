import { PutItemCommand, TransactWriteItemsCommand, UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { expect, it } from 'vitest';
import { newTable, testClient } from '../support/emulators/aws.ts';

const dynamodb = testClient();
const waiters = await newTable('waiters');
const text = (bytes: number) => ({ S: 'x'.repeat(bytes) });
const row = (keyBytes: number, executionBytes: number) => ({
  ...{ key: text(keyBytes), ticket: text(9), execution: text(executionBytes) },
});
const put = (Item: PutItemCommand['input']['Item']) => new PutItemCommand({ TableName: waiters, Item });
const update = (UpdateExpression: string, bytes = 1) =>
  new UpdateItemCommand({
    ...{ TableName: waiters, Key: { key: text(9), ticket: text(9) }, UpdateExpression },
    ...{
      ExpressionAttributeNames: { '#execution': 'execution' },
      ExpressionAttributeValues: { ':value': text(bytes) },
    },
  });

it('a test client of DynamoDB refuses keys of an index that are longer than DynamoDB takes', async () => {
  await dynamodb.send(put(row(1024, 2048)));
  const { execution: _, ...outside } = row(1025, 1);
  await dynamodb.send(put(outside));
  const refused = [
    put(row(1025, 1)),
    put(row(1, 2049)),
    update('SET #execution = :value', 2049),
    new TransactWriteItemsCommand({ TransactItems: [{ Put: { TableName: waiters, Item: row(1025, 1) } }] }),
  ];
  for (const command of refused)
    await expect(dynamodb.send(command as PutItemCommand)).rejects.toMatchObject({
      name: 'ValidationException',
      message: expect.stringContaining('secondary index'),
    });
});

it('a test client of DynamoDB refuses an expression with more operators than DynamoDB takes', async () => {
  const names = Array.from({ length: 400 }, (_, nth) => `q${nth}`);
  const all = (count: number) => `SET #execution=:value,${names.slice(0, count).map((name) => `${name}=:value`)}`;
  await dynamodb.send(update(all(299)));
  await expect(dynamodb.send(update(all(300)))).rejects.toMatchObject({ name: 'ValidationException' });
});
