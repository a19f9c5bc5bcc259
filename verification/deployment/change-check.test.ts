import { setTimeout as delay } from 'node:timers/promises';
import {
  DescribeStacksCommand,
  paginateDescribeStackEvents,
  type Stack,
  type StackEvent,
  UpdateStackCommand,
} from '@aws-sdk/client-cloudformation';
import { CreateTableCommand } from '@aws-sdk/client-dynamodb';
import { expect, it } from 'vitest';
import { call, cloudFormation, deployed, dynamodb, ROOT } from './support/aws.ts';

const leasesTable = async (name: string): Promise<string> => {
  await dynamodb.send(
    new CreateTableCommand({
      TableName: name,
      BillingMode: 'PAY_PER_REQUEST',
      AttributeDefinitions: [{ AttributeName: 'key', AttributeType: 'S' }],
      KeySchema: [{ AttributeName: 'key', KeyType: 'HASH' }],
    }),
  );
  return name;
};

const described = async (stage: string): Promise<Stack> => {
  const { Stacks: [stack] = [] } = await cloudFormation.send(
    new DescribeStacksCommand({ StackName: `holdfast-${stage}` }),
  );
  return stack ?? expect.fail(`there is no stack of ${stage}`);
};

const tableOf = async (stage: string) =>
  (await described(stage)).Outputs?.find(({ OutputKey }) => OutputKey === 'LeasesTableName')?.OutputValue;

/** Updates the stack by the request that Terraform sends: a parameter that is not named goes back to its default. @returns its last status */
async function updateByOtherTool(stage: string, parameters: Record<string, string>): Promise<string> {
  const StackName = `holdfast-${stage}`;
  await cloudFormation.send(
    new UpdateStackCommand({
      StackName,
      UsePreviousTemplate: true,
      Capabilities: ['CAPABILITY_NAMED_IAM'],
      Parameters: Object.entries({ stage, ...parameters }).map(([ParameterKey, ParameterValue]) => ({
        ParameterKey,
        ParameterValue,
      })),
    }),
  );
  for (;;) {
    const status = String((await described(stage)).StackStatus);
    if (!status.endsWith('_IN_PROGRESS')) return status;
    await delay(500);
  }
}

/** What happened to a resource, the latest first. */
async function eventsOf(stage: string, resource: string): Promise<StackEvent[]> {
  const events: StackEvent[] = [];
  const pages = paginateDescribeStackEvents({ client: cloudFormation }, { StackName: `holdfast-${stage}` });
  for await (const { StackEvents = [] } of pages)
    events.push(...StackEvents.filter(({ LogicalResourceId }) => LogicalResourceId === resource));
  return events;
}

/** Why updates of a resource failed. */
const reasonsOf = async (stage: string, resource: string): Promise<(string | undefined)[]> =>
  (await eventsOf(stage, resource))
    .filter(({ ResourceStatus }) => ResourceStatus === 'UPDATE_FAILED')
    .map(({ ResourceStatusReason }) => ResourceStatusReason);

/** A lease that A holds, and what every other caller receives. */
async function heldLease(url: string) {
  const acquire = (holder: string) =>
    call(`${url}/v1/leases/acquire`, { body: { key: 'nightly', holder, ttlSeconds: 3600 }, credentials: ROOT });
  const { status, body } = await acquire('A');
  expect(status).toBe(201);
  const proof = { key: 'nightly', leaseId: body.leaseId };
  return async () => {
    expect(await acquire('B')).toMatchObject({ status: 409, body: { holder: 'A', fence: body.fence } });
    const beat = await call(`${url}/v1/leases/heartbeat`, { body: proof, credentials: ROOT });
    expect(beat).toMatchObject({ status: 200, body: { fence: body.fence } });
  };
}

it('an update that forgets a table is refused before a function changes', async () => {
  const stage = 'fixed';
  const table = await leasesTable('my-leases-of-fixed');
  const limit = { executionStateMachines: 'jobs-*' };
  const named = ['--param', `leasesTable=${table}`, '--param', 'executionStateMachines=jobs-*'];
  const { ApiUrl = '' } = await deployed(stage, named);
  const { codeBucket = '' } = await parametersOf(stage);
  const isHeldByA = await heldLease(ApiUrl);
  const before = await eventsOf(stage, 'AcquireLambdaFunction');

  expect(await updateByOtherTool(stage, { codeBucket, ...limit, memoryMb: '256' })).toBe('UPDATE_ROLLBACK_COMPLETE');
  const [reason] = await reasonsOf(stage, 'ChangeCheck');
  expect(reason).toContain(`leasesTable would change from '${table}' to 'holdfast-fixed-leases'`);
  expect(reason).toContain("set the parameter allowChange to 'leasesTable=holdfast-fixed-leases'");
  expect(await eventsOf(stage, 'AcquireLambdaFunction')).toEqual(before);
  expect(await tableOf(stage)).toBe(table);
  await isHeldByA();

  // The tool is fixed, and goes on.
  const repaired = { codeBucket, leasesTable: table, memoryMb: '256' };
  expect(await updateByOtherTool(stage, { ...repaired, ...limit })).toBe('UPDATE_COMPLETE');
  await isHeldByA();

  expect(await updateByOtherTool(stage, repaired)).toBe('UPDATE_ROLLBACK_COMPLETE');
  const [lost] = await reasonsOf(stage, 'ChangeCheck');
  expect(lost).toContain("executionStateMachines would change from 'jobs-*' to '*'");
  expect(await parametersOf(stage)).toMatchObject(limit);
});

it('an update changes a table that allowChange names, and may be reverted', async () => {
  const stage = 'allowed';
  const { ApiUrl = '' } = await deployed(stage);
  const { codeBucket = '' } = await parametersOf(stage);
  const isHeldByA = await heldLease(ApiUrl);
  const table = await leasesTable('my-leases-of-allowed');
  const change = { codeBucket, leasesTable: table, allowChange: `leasesTable=${table}` };

  const withoutCode = { ...change, codePrefix: 'nowhere/' };
  expect(await updateByOtherTool(stage, withoutCode)).toBe('UPDATE_ROLLBACK_COMPLETE');
  expect(await reasonsOf(stage, 'ChangeCheck')).toEqual([]);
  expect(await tableOf(stage)).toBe('holdfast-allowed-leases');
  await isHeldByA();

  expect(await updateByOtherTool(stage, change)).toBe('UPDATE_COMPLETE');
  expect(await tableOf(stage)).toBe(table);
  // The parameter that allowed one change does not allow another one, not even the way back.
  const { leasesTable: _, ...forgotten } = change;
  expect(await updateByOtherTool(stage, forgotten)).toBe('UPDATE_ROLLBACK_COMPLETE');
  expect(await tableOf(stage)).toBe(table);
});

const parametersOf = async (stage: string): Promise<Record<string, string>> =>
  Object.fromEntries(
    ((await described(stage)).Parameters ?? []).map(({ ParameterKey, ParameterValue }) => [
      String(ParameterKey),
      ParameterValue ?? '',
    ]),
  );
