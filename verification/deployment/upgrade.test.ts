import { setTimeout as delay } from 'node:timers/promises';
import {
  CreateStackCommand,
  DescribeStacksCommand,
  UpdateStackCommand,
  waitUntilStackCreateComplete,
  waitUntilStackUpdateComplete,
} from '@aws-sdk/client-cloudformation';
import { DescribeTableCommand, ScanCommand } from '@aws-sdk/client-dynamodb';
import { CreateBucketCommand, PutObjectCommand } from '@aws-sdk/client-s3';
import { CreateStateMachineCommand, StartExecutionCommand } from '@aws-sdk/client-sfn';
import { describe, expect, it } from 'vitest';
import { call, cloudFormation, deploy, deployed, dynamodb, ROOT, s3, serviceRole, sfn } from './support/aws.ts';
import { firstRelease } from './support/first-release.ts';

const STAGE = 'upgrade';
const StackName = `holdfast-${STAGE}`;
const first = await firstRelease(STAGE);
const waiting = { client: cloudFormation, maxWaitTime: 120, minDelay: 1, maxDelay: 1 };

// A clone without history cannot build it.
describe.skipIf(!first)('an upgrade from the first release', () => {
  const Capabilities = ['CAPABILITY_NAMED_IAM' as const];
  let api = '';
  const post = (path: string, body: object) => call(`${api}/v1/${path}`, { body, credentials: ROOT });
  const get = (path: string) => call(`${api}/v1/${path}`, { method: 'GET', credentials: ROOT });

  /** As the framework does: the bucket of the code first, then everything. */
  async function deployFirst(): Promise<void> {
    const { template, zips } = first as NonNullable<typeof first>;
    const whole = JSON.parse(template);
    const { ServerlessDeploymentBucket } = whole.Resources;
    const shell = { ...whole, Conditions: {}, Outputs: {}, Resources: { ServerlessDeploymentBucket } };
    await cloudFormation.send(new CreateStackCommand({ StackName, TemplateBody: JSON.stringify(shell) }));
    await waitUntilStackCreateComplete(waiting, { StackName });
    await putTemplate(template);
    const bucket = await codeBucket();
    for (const [Key, Body] of zips) await s3.send(new PutObjectCommand({ Bucket: bucket, Key, Body }));
    await update();
  }

  const codeBucket = async () => {
    const { StackResourceDetail } = await cloudFormation.send(
      new (await import('@aws-sdk/client-cloudformation')).DescribeStackResourceCommand({
        StackName,
        LogicalResourceId: 'ServerlessDeploymentBucket',
      }),
    );
    return String(StackResourceDetail?.PhysicalResourceId);
  };
  const putTemplate = async (template: string) => {
    await s3
      .send(
        new CreateBucketCommand({
          Bucket: 'first-release',
          CreateBucketConfiguration: { LocationConstraint: 'eu-west-1' },
        }),
      )
      .catch(() => {});
    await s3.send(new PutObjectCommand({ Bucket: 'first-release', Key: 'template.json', Body: template }));
  };
  const update = async () => {
    const TemplateURL = 'https://s3.eu-west-1.amazonaws.com/first-release/template.json';
    await cloudFormation.send(new UpdateStackCommand({ StackName, TemplateURL, Capabilities }));
    await waitUntilStackUpdateComplete(waiting, { StackName });
    const { Stacks: [stack] = [] } = await cloudFormation.send(new DescribeStacksCommand({ StackName }));
    api = String(stack?.Outputs?.find(({ OutputKey }) => OutputKey === 'ApiUrl')?.OutputValue);
  };

  /** What stands in the tables and the bucket, as callers see it. */
  async function state() {
    const [lease, tickets, commit, name] = [
      await get('leases?key=held'),
      await get('leases?key=held&waiters=true'),
      await get('commits?path=log/1'),
      await get('nameservice?alias=books'),
    ];
    return {
      lease: { holder: lease.body.holder, fence: lease.body.fence, state: lease.body.state },
      tickets: tickets.body.waiters?.map(({ ticket }: { ticket: string }) => ticket),
      commit: { etag: commit.body.etag, size: commit.body.size },
      name: name.body.commit,
    };
  }

  it('and back again loses no lease, fence, ticket, commit or alias, while a client holds a lease through it', async () => {
    await deployFirst();
    const grant = await post('leases/acquire', { key: 'held', holder: 'client', ttlSeconds: 60 });
    expect(grant.status).toBe(201);
    await park();
    expect(await post('commits', { path: 'log/1', ifNoneMatch: '*', commitId: 'c-1', body: 'one' })).toMatchObject({
      status: 201,
    });
    await post('nameservice/publish', { op: 'initLedger', alias: 'books' });
    await post('nameservice/publish', { op: 'publishCommit', alias: 'books', address: 's3://books/2', t: 2 });
    const before = await state();
    expect(before).toMatchObject({
      lease: { holder: 'client', state: 'held' },
      tickets: [expect.any(String)],
      name: { t: 2 },
    });
    const itemsBefore = await items();
    const createdBefore = await createdAt();

    const heartbeats: number[] = [];
    let holding = true;
    const held = (async () => {
      while (holding) {
        heartbeats.push((await post('leases/heartbeat', { key: 'held', leaseId: grant.body.leaseId })).status);
        await delay(300);
      }
    })();

    const { exitCode, output } = await deploy(STAGE);
    expect(exitCode, output).toBe(0);
    expect(await createdAt()).toEqual(createdBefore);
    expect(await state()).toEqual(before);
    expect(await items()).toEqual(itemsBefore);
    expect(await post('leases/acquire', { key: 'held', holder: 'other' })).toMatchObject({
      status: 409,
      body: { holder: 'client' },
    });
    expect(await post('commits', { path: 'log/1', ifNoneMatch: '*', commitId: 'c-1', body: 'one' })).toMatchObject({
      body: { repeated: true },
    });

    await update(); // back: the former template, as the former version sends it
    expect(await state()).toEqual(before);
    await deployed(STAGE);
    expect(await state()).toEqual(before);

    holding = false;
    await held;
    expect(heartbeats.length).toBeGreaterThan(10);
    expect(new Set(heartbeats)).toEqual(new Set([200]));
  });

  it('is refused where it names another table than the first release was deployed with', async () => {
    const { exitCode, output } = await deploy(STAGE, ['--param=commitProtocol=native']);
    expect(output).toContain("commitProtocol from 'dynamo' to 'native'");
    expect(exitCode).toBe(64);
  });

  /** A table that was replaced would be a new one. */
  const createdAt = () =>
    Promise.all(
      ['leases', 'waiters', 'commits', 'nameservice'].map(async (kind) => {
        const { Table } = await dynamodb.send(new DescribeTableCommand({ TableName: `${StackName}-${kind}` }));
        return Table?.CreationDateTime;
      }),
    );

  const items = async () => {
    const tables = ['leases', 'waiters', 'commits', 'nameservice'].map(async (kind) => {
      const { Items = [] } = await dynamodb.send(new ScanCommand({ TableName: `${StackName}-${kind}` }));
      // The heartbeat of the client moves these.
      return Items.map(({ lease_version: _, expires_at: __, heartbeat_at: ___, lease_expiry: ____, ...item }) => item);
    });
    return Promise.all(tables);
  };

  /** A task that waits for the lease. */
  async function park(): Promise<void> {
    const roleArn = await serviceRole('parks', 'states.amazonaws.com');
    const { iam } = await import('./support/aws.ts');
    const { PutRolePolicyCommand } = await import('@aws-sdk/client-iam');
    const PolicyDocument = JSON.stringify({
      Version: '2012-10-17',
      Statement: [{ Effect: 'Allow', Action: 'lambda:InvokeFunction', Resource: '*' }],
    });
    await iam.send(new PutRolePolicyCommand({ RoleName: 'parks', PolicyName: 'invoke', PolicyDocument }));
    const definition = JSON.stringify({
      StartAt: 'Acquire',
      States: {
        Acquire: {
          Type: 'Task',
          Resource: 'arn:aws:states:::lambda:invoke.waitForTaskToken',
          Parameters: {
            FunctionName: `${StackName}-acquire`,
            Payload: { key: 'held', holder: 'task', 'taskToken.$': '$$.Task.Token', parkSeconds: 3600 },
          },
          End: true,
        },
      },
    });
    const { stateMachineArn } = await sfn.send(new CreateStateMachineCommand({ name: 'parks', roleArn, definition }));
    await sfn.send(new StartExecutionCommand({ stateMachineArn: String(stateMachineArn), input: '{}' }));
    for (let tries = 0; tries < 100; tries++) {
      if ((await get('leases?key=held&waiters=true')).body.waiters?.length > 0) return;
      await delay(100);
    }
    throw new Error('the task was not parked');
  }
});
