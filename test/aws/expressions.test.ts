import { PutItemCommand, TransactWriteItemsCommand, UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { describe, expect, it } from 'vitest';
import { integer, text } from '../../shared/aws/attributes.ts';
import { all, any, conditionFields, not } from '../../shared/aws/condition.ts';
import { requiredString, wholeNumber } from '../../shared/aws/variables.ts';
import { newTable, testClient } from '../support/emulators/aws.ts';

const isThere = { expression: 'attribute_exists(#path)', names: { '#path': 'path' } };
const isSeen = { expression: 'version = :seen', values: { ':seen': text('one') } };

describe('a condition', () => {
  it('a condition has the names and values of all its parts', () => {
    expect(all(isThere, any(isSeen, not(isThere)))).toEqual({
      expression: '(attribute_exists(#path)) AND ((version = :seen) OR (NOT (attribute_exists(#path))))',
      names: { '#path': 'path' },
      values: { ':seen': text('one') },
    });
  });

  it('a condition of one part is that part, because DynamoDB refuses doubled parentheses', () => {
    expect(all(isSeen)).toEqual(isSeen);
    expect(any(isThere)).toEqual(isThere);
  });

  it('a condition becomes the fields of a command, with what its other expressions name', () => {
    expect(conditionFields(isSeen, { values: { ':now': integer(5) } })).toEqual({
      ConditionExpression: 'version = :seen',
      ExpressionAttributeValues: { ':seen': text('one'), ':now': integer(5) },
    });
  });

  it('a condition refuses one placeholder for two values', () => {
    const another = { expression: 'fence = :seen', values: { ':seen': integer(1) } };
    expect(() => all(isSeen, another)).toThrow(':seen stands for two things');
    expect(() => conditionFields(isSeen, { values: { ':seen': text('two') } })).toThrow(':seen stands for two things');
    expect(all(isSeen, isSeen).values).toEqual(isSeen.values);
  });
});

const dynamodb = testClient();
const waiters = await newTable('waiters');
const ofBytes = (bytes: number) => ({ S: 'x'.repeat(bytes) });
const row = (keyBytes: number, executionBytes: number) => ({
  ...{ key: ofBytes(keyBytes), ticket: ofBytes(9), execution: ofBytes(executionBytes) },
});
const put = (Item: PutItemCommand['input']['Item']) => new PutItemCommand({ TableName: waiters, Item });
const update = (UpdateExpression: string, bytes = 1) =>
  new UpdateItemCommand({
    ...{ TableName: waiters, Key: { key: ofBytes(9), ticket: ofBytes(9) }, UpdateExpression },
    ...{
      ExpressionAttributeNames: { '#execution': 'execution' },
      ExpressionAttributeValues: { ':value': ofBytes(bytes) },
    },
  });

it('the test DynamoDB client refuses index keys that are too long for DynamoDB', async () => {
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

it('the test DynamoDB client refuses an expression with more operators than DynamoDB takes', async () => {
  const names = Array.from({ length: 400 }, (_, nth) => `q${nth}`);
  const all = (count: number) => `SET #execution=:value,${names.slice(0, count).map((name) => `${name}=:value`)}`;
  await dynamodb.send(update(all(299)));
  await expect(dynamodb.send(update(all(300)))).rejects.toMatchObject({ name: 'ValidationException' });
});

it('a required setting must be present and not empty', () => {
  expect(requiredString('TABLE', { TABLE: 't' })).toBe('t');
  for (const env of [{}, { TABLE: '' }]) expect(() => requiredString('TABLE', env)).toThrow('TABLE is not set');
});

it('a numeric setting must be a whole number, or absent', () => {
  expect(wholeNumber('MS', 7, {})).toBe(7);
  for (const [text, value] of [
    ['0', 0],
    ['20', 20],
    ['999999999999999', 999_999_999_999_999],
  ] as const)
    expect(wholeNumber('MS', 7, { MS: text })).toBe(value);
  for (const text of ['', ' 1', '1 ', '-1', '1.5', '20s', 's20', '1000000000000000'])
    expect(() => wholeNumber('MS', 7, { MS: text })).toThrow(`MS must be a whole number, not '${text}'`);
});
