import { setTimeout as delay } from 'node:timers/promises';
import {
  CreateStackCommand,
  DescribeStacksCommand,
  UpdateStackCommand,
  waitUntilStackCreateComplete,
  waitUntilStackUpdateComplete,
} from '@aws-sdk/client-cloudformation';
import { DescribeTableCommand, ScanCommand } from '@aws-sdk/client-dynamodb';
import { PutObjectCommand } from '@aws-sdk/client-s3';
import { describe, expect, it } from 'vitest';
import type { HoldfastEvent } from '../../client/src/events.ts';
import { readService } from '../../infrastructure/read.ts';
import { client, cloudFormation, deploy, deployed, dynamodb, makeBucket, REGION, run, s3 } from './support/aws.ts';
import { firstRelease } from './support/first-release.ts';
import { heartbeats } from './support/heartbeats.ts';
import { park } from './support/park.ts';

const STAGE = 'upgrade';
const StackName = `holdfast-${STAGE}`;
const first = await firstRelease(STAGE);
/** Of the lease that is held throughout: more than any deployment, or pause of a busy machine, takes. */
const TTL_MS = 600_000;
const waiting = { client: cloudFormation, maxWaitTime: 600, minDelay: 1, maxDelay: 1 };

// A clone without history cannot build it.
describe.skipIf(!first)('an upgrade from the first release', () => {
  const Capabilities = ['CAPABILITY_NAMED_IAM' as const];
  let api = '';
  const events: HoldfastEvent[] = [];
  const holdfast = () => client(api, { holder: 'client', onEvent: (event) => events.push(event) });

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
    await makeBucket('first-release');
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
    const lease = await holdfast().readLease('held', { waiters: true });
    if (lease.kind === 'pool') throw new Error('the key is a pool');
    const { holder, fence, state, waiters } = lease;
    const { etag, size } = await holdfast().readCommit({ path: 'log/1' });
    const name = await holdfast().readName('books');
    return {
      lease: { holder, fence, state },
      tickets: waiters?.map(({ ticket }) => ticket),
      commit: { etag, size },
      name: 'commit' in name && name.commit,
    };
  }

  const commit = { path: 'log/1', ifNoneMatch: '*', commitId: 'c-1', body: 'one' } as const;

  it('an upgrade from the first release and back loses no lease, fence, ticket, commit or alias, while a client holds a lease through it', async () => {
    await deployFirst();
    const lease = await holdfast().acquire('held', { ttlSeconds: TTL_MS / 1000, releaseTimeoutMs: TTL_MS });
    const parked = await park(STAGE, { key: 'held', holder: 'task' });
    while (!(await holdfast().readLease('held', { waiters: true })).waiters?.length) await delay(100);
    expect(await holdfast().commit(commit)).toMatchObject({ repeated: false });
    await holdfast().publish({ op: 'initLedger', alias: 'books' });
    await holdfast().publish({ op: 'publishCommit', alias: 'books', address: 's3://books/2', t: 2 });
    const before = await state();
    expect(before).toMatchObject({
      lease: { holder: 'client', state: 'held', fence: lease.fence },
      tickets: [expect.any(String)],
      name: { t: 2 },
    });
    const itemsBefore = await items();
    const createdBefore = await createdAt();
    const beating = heartbeats(holdfast(), lease, TTL_MS);
    await beating.more();

    const { exitCode, output } = await deploy(STAGE);
    expect(exitCode, output).toBe(0);
    expect(await createdAt()).toEqual(createdBefore);
    expect(await state()).toEqual(before);
    expect(await items()).toEqual(itemsBefore);
    await expect(client(api, { holder: 'other' }).acquire('held')).rejects.toMatchObject({
      code: 'LeaseHeld',
      holder: 'client',
    });
    expect(await holdfast().commit(commit)).toMatchObject({ repeated: true });
    await beating.more();

    await update(); // back: the former template, as the former version sends it
    expect(await state()).toEqual(before);
    await beating.more();
    await deployed(STAGE);
    expect(await state()).toEqual(before);
    await beating.more();

    await beating.end();
    expect(lease.lost).toBeUndefined();
    expect(lease.held).toBe(true);
    expect(events.filter(({ type }) => type === 'lost')).toEqual([]);
    expect(await lease.release()).toBe(true);
    // What waited since the first release gets the lease from this one.
    expect(await parked.output()).toMatchObject({ holder: 'task' });
  });

  it('an upgrade from the first release is refused if it names another table than the first release was deployed with', async () => {
    const { exitCode, output } = await deploy(STAGE, ['--param=commitProtocol=native']);
    expect(output).toContain("commitProtocol from 'dynamo' to 'native'");
    expect(exitCode).toBe(64);
  });

  // CloudFormation changes the code and the environment of a function in two calls. test/deployment/mixed-versions.test.ts has the new code.
  it('an upgrade from the first release lets its functions start with the environment of this release, but for the scheduled report', async () => {
    const { environment } = await readService(STAGE);
    const modules = first?.modules ?? [];
    expect(modules.length).toBeGreaterThan(15);
    const script = `
      for (const path of ${JSON.stringify(modules)})
        await import(path).catch(({ message }) => console.log(path.match(/dist.(.*).index/)[1], message));
    `;
    const env = { ...environment, AWS_REGION: REGION };
    const { exitCode, output } = await run(process.execPath, ['--input-type=module', '--eval', script], { env });
    expect(output).toBe('expiry/report POWERTOOLS_SERVICE_NAME is not set\n');
    expect(exitCode).toBe(0);
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
});
