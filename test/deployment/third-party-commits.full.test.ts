import { DeleteTableCommand, PutItemCommand } from '@aws-sdk/client-dynamodb';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import type { ParsedRequest } from '../../deployment/request.ts';
import type { Values } from '../../deployment/values.ts';
import { systemClock } from '../../shared/surroundings/clock.ts';
import { newTable, testClient } from '../support/emulators/aws.ts';
import { type CloudFormationDouble, deployTo, startCloudFormation } from '../support/stack/cloudformation.ts';

let double: CloudFormationDouble;
let commitsTable: string;
const dynamodb = testClient();
beforeEach(async () => {
  [double, commitsTable] = await Promise.all([startCloudFormation(), newTable('commits')]);
});
afterEach(() => double.stop());

/** What the operator read. */
let said: string[];
const run = (order: Partial<ParsedRequest>) => {
  said = [];
  return deployTo({ ...double.aws, dynamodb }, { said, order: { allowedChanges: ['commitProtocol'], ...order } });
};
const deployed = async (given: Values) => {
  await run({ given });
  return double.stacks.get('holdfast-prod')?.parameters.commitProtocol;
};

/** A record as a Rust writer leaves it, and keeps until its ttl. */
const putRecord = (path: string, { secondsLeft = 3600, ...more }: Record<string, unknown> = {}) => {
  const ttl = Math.floor(systemClock.now() / 1000) + Number(secondsLeft);
  const foreign = { path: { S: path }, etag: { S: '*' }, generation: { N: '0' }, timeout: { N: '20000' } };
  const Item = { ...foreign, ttl: { N: String(ttl) }, ...more } as typeof foreign;
  return dynamodb.send(new PutItemCommand({ TableName: commitsTable, Item }));
};

describe('a deployment of commitProtocol=native', () => {
  it('a switch to native is refused while a foreign record is in the table', async () => {
    await putRecord('log/7.json');
    const words =
      /commitProtocol=native: a third-party client commits with records, and its record of log\/7\.json is in table/;
    await expect(deployed({ commitsTable, commitProtocol: 'native' })).rejects.toThrow(words);
    expect(double.stacks.size).toBe(0);
    expect(await deployed({ commitsTable })).toBe('dynamo');
    const before = double.actions.length;
    await expect(deployed({ commitProtocol: 'native' })).rejects.toThrow(words);
    expect(double.actions.slice(before)).toEqual(['DescribeStacks', 'GetTemplate']);
    expect(double.stacks.get('holdfast-prod')?.parameters.commitProtocol).toBe('dynamo');
  });

  it('a deployment of native also searches its own table for foreign records', async () => {
    await run({ stage: 'own-table' });
    commitsTable = await newTable('commits', 'holdfast-own-table-commits');
    onTestFinished(async () => void (await dynamodb.send(new DeleteTableCommand({ TableName: commitsTable }))));
    await putRecord('log/7.json');
    await expect(run({ stage: 'own-table', given: { commitProtocol: 'native' } })).rejects.toThrow(
      'log/7.json is in table holdfast-own-table-commits',
    );
  });

  it('a deployment of native goes on once all foreign records have expired', async () => {
    await deployed({ commitsTable });
    await putRecord('over', { secondsLeft: -5 });
    await putRecord('of Holdfast', { commit_id: { S: 'job-7' }, written_at: { N: '1' } });
    await putRecord('failed', { timeout: { N: '0' } });
    expect(await deployed({ commitProtocol: 'native' })).toBe('native');
  });

  it('a later deployment of native, and one of dynamo, is not checked again', async () => {
    await deployed({ commitsTable, commitProtocol: 'native' });
    await putRecord('log/7.json');
    expect(await deployed({ memoryMb: '256' })).toBe('native');
    expect(await deployed({ commitProtocol: 'dynamo' })).toBe('dynamo');
  });

  it('a deployment advises native to a new stack without a commit protocol', async () => {
    const advice = expect.stringContaining('Without such writers, native is better');
    await deployed({});
    expect(said).toContainEqual(advice);
    await deployed({ memoryMb: '256' });
    expect(said).not.toContainEqual(advice);
    double.stacks.clear();
    await deployed({ commitProtocol: 'dynamo' });
    expect(said).not.toContainEqual(advice);
  });
});
