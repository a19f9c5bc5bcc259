import { setTimeout as delay } from 'node:timers/promises';
import {
  CreateStackCommand,
  DescribeStacksCommand,
  ListStackResourcesCommand,
  UpdateStackCommand,
  waitUntilStackCreateComplete,
  waitUntilStackUpdateComplete,
} from '@aws-sdk/client-cloudformation';
import {
  type AttributeValue,
  DeleteItemCommand,
  DeleteTableCommand,
  DescribeTableCommand,
  ScanCommand,
  UpdateTableCommand,
} from '@aws-sdk/client-dynamodb';
import { PutObjectCommand } from '@aws-sdk/client-s3';
import { describe, expect, it } from 'vitest';
import policy from '../../deployment/deployer-policy.json' with { type: 'json' };
import type { Item } from '../../shared/aws/dynamodb.ts';
import {
  call,
  client,
  cloudFormation,
  deploy,
  deployed,
  dynamodb,
  makeBucket,
  ROOT,
  s3,
  startDeploy,
  user,
} from './support/aws.ts';
import { heartbeats } from './support/heartbeats.ts';
import { park } from './support/park.ts';
import { recordedRelease } from './support/recorded-release.ts';

/** More than any deployment, or pause of a busy machine, takes. */
const TTL_SECONDS = 1800;
/** Begins with the name of the default bucket, so that the policy of a deployer has it. */
const BUCKET = 'holdfast-code-0-2-0';
const TemplateURL = `https://s3.eu-west-1.amazonaws.com/${BUCKET}/template.json`;
const Capabilities = ['CAPABILITY_NAMED_IAM' as const];
const waiting = { client: cloudFormation, maxWaitTime: 600, minDelay: 1, maxDelay: 1 };
/** The command polls the pools every ten seconds. */
const TWO_POLLS_MS = 20_000;

const valuesOf = (values: Record<string, string>) =>
  Object.entries(values).map(([ParameterKey, ParameterValue]) => ({ ParameterKey, ParameterValue }));

/** A stack of 0.2.0, with the calls of its API. */
async function deployOld(stage: string) {
  const { template, zips } = await recordedRelease();
  await makeBucket(BUCKET);
  await s3.send(new PutObjectCommand({ Bucket: BUCKET, Key: 'template.json', Body: template }));
  for (const [name, Body] of zips)
    await s3.send(new PutObjectCommand({ Bucket: BUCKET, Key: `holdfast/${name}`, Body }));
  const StackName = `holdfast-${stage}`;
  const Parameters = valuesOf({ stage, codeBucket: BUCKET });
  await cloudFormation.send(new CreateStackCommand({ StackName, TemplateURL, Parameters, Capabilities }));
  await waitUntilStackCreateComplete(waiting, { StackName });
  const url = `${await outputOf(stage, 'ApiUrl')}/v1/leases`;
  const send = (name: string, body: object, tries?: number) =>
    call(`${url}/${name}`, { body, credentials: ROOT, ...(tries && { tries }) });
  return {
    api: url.replace('/v1/leases', ''),
    acquire: (key: string, body: object = {}, tries?: number) =>
      send('acquire', { key, holder: 'holder', ttlSeconds: TTL_SECONDS, ...body }, tries),
    heartbeat: (key: string, leaseId: string) => send('heartbeat', { key, leaseId }),
    release: (key: string, leaseId: string) => send('release', { key, leaseId }),
  };
}

async function updateToOld(stage: string, values: Record<string, string>): Promise<void> {
  const StackName = `holdfast-${stage}`;
  const Parameters = valuesOf({ stage, codeBucket: BUCKET, ...values });
  await cloudFormation.send(new UpdateStackCommand({ StackName, TemplateURL, Parameters, Capabilities }));
  await waitUntilStackUpdateComplete(waiting, { StackName });
}

const stackOf = async (stage: string) => {
  const { Stacks: [stack] = [] } = await cloudFormation.send(
    new DescribeStacksCommand({ StackName: `holdfast-${stage}` }),
  );
  return stack;
};
const outputOf = async (stage: string, name: string) =>
  String((await stackOf(stage))?.Outputs?.find(({ OutputKey }) => OutputKey === name)?.OutputValue);
const parametersOf = async (stage: string) =>
  Object.fromEntries((await stackOf(stage))?.Parameters?.map((one) => [one.ParameterKey, one.ParameterValue]) ?? []);

const items = async (stage: string, table: string) =>
  (await dynamodb.send(new ScanCommand({ TableName: `holdfast-${stage}-${table}`, ConsistentRead: true }))).Items ?? [];
const linesOf = async (stage: string) => (await items(stage, 'waiters')).map(({ key }) => key?.S);

/** The former table is no resource of the stack, and has its items and its protection from deletion. */
async function expectKept(stage: string, keys: string[]): Promise<void> {
  const StackName = `holdfast-${stage}`;
  const resources: string[] = [];
  for (let NextToken: string | undefined, more = true; more; more = NextToken !== undefined) {
    const page = await cloudFormation.send(new ListStackResourcesCommand({ StackName, NextToken }));
    resources.push(...(page.StackResourceSummaries ?? []).map(({ PhysicalResourceId }) => String(PhysicalResourceId)));
    NextToken = page.NextToken;
  }
  expect(resources).toContain(`${StackName}-leases`);
  expect(resources).not.toContain(`${StackName}-pools`);
  const { Table } = await dynamodb.send(new DescribeTableCommand({ TableName: `${StackName}-pools` }));
  expect(Table).toMatchObject({ TableStatus: 'ACTIVE', DeletionProtectionEnabled: true });
  expect((await items(stage, 'pools')).map(({ key }) => key?.S).toSorted()).toEqual(keys);
}

const STOPPED = { acquireConcurrency: '0', poolsTable: '' };

describe('the upgrade from 0.2.0', () => {
  const stage = 'drain-old';
  let old: Awaited<ReturnType<typeof deployOld>>;
  const holdfast = () => client(old.api, { holder: 'client' });

  it('the upgrade from 0.2.0 waits until each permit is released, loses no lease, and keeps the former table outside the stack', async () => {
    old = await deployOld(stage);
    const lease = await holdfast().acquire('held', { ttlSeconds: TTL_SECONDS, releaseTimeoutMs: TTL_SECONDS * 1000 });
    const render = await old.acquire('render', { limit: 1 });
    const gpus = await old.acquire('gpus', { limit: 1 });
    expect([render.status, gpus.status]).toEqual([201, 201]);
    const parked = await park(stage, { key: 'gpus', holder: 'task', limit: 1 });
    await expect.poll(() => linesOf(stage)).toEqual(['holdfast:pool:gpus']);
    const beating = heartbeats(holdfast(), lease, TTL_SECONDS * 1000);

    const deployment = startDeploy(stage);
    await deployment.prints('Waiting: permits of gpus, render are held, or callers wait for them');
    expect(await parametersOf(stage)).toMatchObject(STOPPED);
    expect([429, 503]).toContain((await old.acquire('other', {}, 1)).status);
    await beating.more();
    expect((await old.heartbeat('render', render.body.leaseId)).status).toBe(200);
    expect((await old.release('render', render.body.leaseId)).body).toMatchObject({ released: true });
    await deployment.prints('Waiting: permits of gpus are held, or callers wait for them');
    expect((await old.release('gpus', gpus.body.leaseId)).body).toMatchObject({ released: true });
    const granted = await parked.output();
    expect(granted).toMatchObject({ holder: 'task' });
    await delay(TWO_POLLS_MS);
    expect(await parametersOf(stage)).toMatchObject(STOPPED);
    expect((await old.release('gpus', granted.leaseId)).body).toMatchObject({ released: true });

    const { exitCode, output } = await deployment.ended;
    expect(exitCode, output).toBe(0);
    const { poolsTable, acquireConcurrency } = await parametersOf(stage);
    expect({ poolsTable, acquireConcurrency }).toEqual({ poolsTable: undefined, acquireConcurrency: '' });
    await expectKept(stage, ['gpus', 'render']);
    await beating.more();
    await beating.end();
    expect(lease.lost).toBeUndefined();

    const again = await old.acquire('render', { limit: 2 });
    expect(again.status).toBe(201);
    expect(again.body.fence).toBeGreaterThan(render.body.fence);
    expect((await old.acquire('gpus')).status).toBe(201);
    expect(await old.acquire('render')).toMatchObject({ status: 409, body: { code: 'WrongKind', kind: 'pool' } });
    expect(await old.acquire('held', { limit: 2 })).toMatchObject({
      status: 409,
      body: { code: 'WrongKind', kind: 'lease', holder: 'client', fence: lease.fence },
    });
    expect((await deploy(stage)).output).toContain('Nothing to change');
    expect((await old.release('render', again.body.leaseId)).body).toMatchObject({ released: true });
    expect(await lease.release()).toBe(true);
  });

  it('the upgrade from 0.2.0 goes back to 0.2.0 by the steps of the guide, and no fence is granted again', async () => {
    const held = await old.acquire('held');
    const last = await old.acquire('render', { limit: 2 });
    expect((await old.release('render', last.body.leaseId)).body).toMatchObject({ released: true });
    await deployed(stage, ['--param', 'acquireConcurrency=0']);
    const StackName = `holdfast-${stage}`;
    const remove = async (kind: string, names: string[], isLate: (item: Item) => boolean) => {
      const late = (await items(stage, kind)).filter(isLate);
      for (const item of late) {
        const Key = Object.fromEntries(names.map((name) => [name, item[name] as AttributeValue]));
        await dynamodb.send(new DeleteItemCommand({ TableName: `${StackName}-${kind}`, Key }));
      }
      return late.length;
    };
    expect(await remove('leases', ['key'], ({ lease_version }) => lease_version?.S === 'pool')).toBe(1);
    await remove('waiters', ['key', 'ticket'], ({ ticket }) => String(ticket?.S).startsWith('x'));
    const TableName = `${StackName}-pools`;
    await dynamodb.send(new UpdateTableCommand({ TableName, DeletionProtectionEnabled: false }));
    await dynamodb.send(new DeleteTableCommand({ TableName }));
    await updateToOld(stage, { acquireConcurrency: '0' });
    await updateToOld(stage, {});

    expect(await old.acquire('held')).toMatchObject({
      status: 409,
      body: { code: 'LeaseHeld', fence: held.body.fence },
    });
    const permit = await old.acquire('render', { limit: 1 });
    expect(permit.status).toBe(201);
    expect(permit.body.fence).toBeGreaterThan(last.body.fence);
    expect((await items(stage, 'pools')).map(({ key, used }) => [key?.S, used?.N])).toEqual([['render', '1']]);
  });
});

it('an upgrade from 0.2.0 that was interrupted goes on with the option that it printed, and forgets held permits with --forget-pools, by the policy of a deployer', async () => {
  const stage = 'forget-old';
  const deployer = await user('deployer-of-old', policy.Statement);
  const old = await deployOld(stage);
  const lease = await old.acquire('held');
  const permit = await old.acquire('gpus', { limit: 1 });
  const parked = await park(stage, { key: 'gpus', holder: 'task', limit: 1 });
  await expect.poll(() => linesOf(stage)).toEqual(['holdfast:pool:gpus']);
  const interrupted = startDeploy(stage, ['--yes'], deployer);
  await interrupted.prints('run it again with --reset acquireConcurrency');
  await interrupted.prints('Waiting: permits of gpus are held, or callers wait for them');
  interrupted.interrupt();
  await interrupted.ended;
  expect(await parametersOf(stage)).toMatchObject(STOPPED);

  const { exitCode, output } = await deploy(stage, ['--forget-pools', '--reset', 'acquireConcurrency'], deployer);
  expect(exitCode, output).toBe(0);
  expect(output).toContain('forgets all permits and their waiters');
  expect(output).not.toContain('Waiting');
  expect(await linesOf(stage)).toEqual([]);
  await expectKept(stage, ['gpus']);
  expect(await old.heartbeat('gpus', permit.body.leaseId)).toMatchObject({ status: 412, body: { code: 'LeaseLost' } });
  expect((await old.heartbeat('held', lease.body.leaseId)).body).toMatchObject({ fence: lease.body.fence });
  const next = await old.acquire('gpus', { limit: 1 });
  expect(next.status).toBe(201);
  expect(next.body.fence).toBeGreaterThan(permit.body.fence);
  expect(await Promise.race([parked.output(), delay(1000, 'still waits')])).toBe('still waits');
});
