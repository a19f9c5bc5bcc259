import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DescribeStacksCommand } from '@aws-sdk/client-cloudformation';
import { CreateTableCommand, DescribeTableCommand, ScanCommand } from '@aws-sdk/client-dynamodb';
import { describe, expect, it } from 'vitest';
import { readService, renamed } from '../../infrastructure/read.ts';
import {
  call,
  cloudFormation,
  deploy,
  deployed,
  describeAll,
  dynamodb,
  environment,
  holdfast,
  makeBucket,
  ROOT,
  remove,
  run,
} from './support/aws.ts';

const acquire = (outputs: Record<string, string>, key: string, holder: string) =>
  call(`${outputs.ApiUrl}/v1/leases/acquire`, { body: { key, holder }, credentials: ROOT });

const exists = (stage: string) =>
  cloudFormation.send(new DescribeStacksCommand({ StackName: `holdfast-${stage}` })).then(
    () => true,
    () => false,
  );

/** Tables and a bucket of others, in the formats of the product. */
async function tablesOfOthers(prefix: string): Promise<string[]> {
  const { tables } = await readService();
  for (const table of tables)
    await dynamodb.send(new CreateTableCommand(renamed(table, `${prefix}-${table.kind}`).definition));
  await makeBucket(`${prefix}-bucket`);
  return [...tables.map(({ kind }) => `--param=${kind}Table=${prefix}-${kind}`), `--param=bucket=${prefix}-bucket`];
}

describe('named storage', () => {
  it('named tables and a named bucket are used, and kept by later deployments', async () => {
    const parameters = await tablesOfOthers('others');
    const first = await deployed('named', parameters);
    expect(await acquire(first, 'k', 'first')).toMatchObject({ status: 201 });
    expect((await dynamodb.send(new ScanCommand({ TableName: 'others-leases' }))).Items).toHaveLength(1);
    await expect(dynamodb.send(new DescribeTableCommand({ TableName: 'holdfast-named-leases' }))).rejects.toThrow();
    const commit = { path: 'a', ifNoneMatch: '*', commitId: 'c', body: 'x' };
    expect(await call(`${first.ApiUrl}/v1/commits`, { body: commit, credentials: ROOT })).toMatchObject({
      status: 201,
    });

    const again = await deployed('named', ['--param', 'memoryMb=256']);
    expect(again.LeasesTableName).toBe('others-leases');
    expect(await acquire(again, 'k', 'second')).toMatchObject({ status: 409, body: { holder: 'first' } });
  });
});

describe('unfit tables', () => {
  it('a deployment with an unfit table, or that splits a running stack, is refused', async () => {
    const parameters = await tablesOfOthers('others2');
    for (const [parameter, words] of [
      [
        'leasesTable=others2-waiters',
        'leasesTable: the key of table others2-waiters is key (S), ticket (S), and must be key (S)',
      ],
      [
        'commitsTable=others2-nameservice',
        'commitsTable: the key of table others2-nameservice is pk (S), sk (S), and must be',
      ],
    ]) {
      const { exitCode, output } = await deploy('split', [`--param=${parameter}`]);
      expect(output).toContain(words);
      expect(exitCode).toBe(64);
    }
    expect(await exists('split')).toBe(false);
    await deployed('split', parameters);
    const { exitCode, output } = await deploy('split', ['--param=leasesTable=']);
    expect(output).toMatch(/ {2}leasesTable from [\s\S]*Nothing was changed/);
    expect(exitCode).toBe(64);
  });
});

describe('removed stacks', () => {
  it('tables of a removed stack stay, and are taken over if named', async () => {
    const first = await deployed('gone');
    const granted = await acquire(first, 'kept', 'first');
    expect(granted.status).toBe(201);
    const { Table } = await dynamodb.send(new DescribeTableCommand({ TableName: 'holdfast-gone-leases' }));
    expect(Table?.DeletionProtectionEnabled).toBe(true);
    await remove('gone');

    const refused = await deploy('gone');
    expect(refused.exitCode).toBe(64);
    const advice = [...refused.output.matchAll(/--param (\S+)/g)].map(([, parameter]) => `--param=${parameter}`);
    expect(advice).toHaveLength(5);
    const second = await deployed('gone', advice);
    expect(await acquire(second, 'kept', 'second')).toMatchObject({
      status: 409,
      body: { holder: 'first', fence: granted.body.fence },
    });
  });
});

describe('drain', () => {
  it('a drain stops acquire while holders go on, and then restores the concurrency', async () => {
    const before = await deployed('drained', ['--param', 'acquireConcurrency=50']);
    const held = await acquire(before, 'held', 'first');
    const early = await holdfast(['drain', '--stage', 'drained', '--yes', '--timeout', '0']);
    expect(early.output).toContain('1 leases or permits are held (held), 0 calls or tasks wait. Acquire stays stopped');
    expect(early.exitCode).toBe(1);
    // A deployment does not end a drain.
    const deployment = await deploy('drained', ['--param', 'memoryMb=256']);
    expect(deployment.output).toContain('The deployment stays drained');
    const body = { key: 'new', holder: 'second' };
    const url = `${before.ApiUrl}/v1/leases`;
    const refused = await call(`${url}/acquire`, { body, credentials: ROOT, tries: 1 });
    expect([429, 503]).toContain(refused.status);
    const proof = { key: 'held', leaseId: held.body.leaseId };
    expect(await call(`${url}/release`, { body: proof, credentials: ROOT })).toMatchObject({
      body: { released: true },
    });
    const late = await holdfast(['drain', '--stage', 'drained', '--yes']);
    expect(late.output).toContain('holdfast-drained is drained');
    expect(late.exitCode).toBe(0);
    const set = await holdfast(['parameters', '--stage', 'drained']);
    expect(set.output.trim().split('\n')).toEqual([
      ...['acquireConcurrency 50', 'codeBucket holdfast-code-000000000000-eu-west-1', 'drained true'],
      ...['memoryMb 256', 'stage drained'],
    ]);
    expect((await holdfast(['resume', '--stage', 'drained', '--yes'])).output).toContain('runs again');
    expect((await holdfast(['resume', '--stage', 'drained', '--yes'])).output).toContain('is not drained');
    const [configuration] = await describeAll([
      ['lambda', 'get_function_concurrency', { FunctionName: 'holdfast-drained-acquire' }],
    ]);
    expect(configuration).toMatchObject({ ReservedConcurrentExecutions: 50 });
    expect(await acquire(before, 'new', 'second')).toMatchObject({ status: 201 });
  });
});

describe('region', () => {
  it('the region is that of the profile unless another place names one', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'holdfast-profile-'));
    try {
      const config = join(folder, 'config');
      const { AWS_DEFAULT_REGION: _, ...env } = environment();
      const planned = () =>
        run(process.execPath, ['deployment/main.ts', 'deploy', '--stage', 'regional', '--plan'], {
          env: { ...env, AWS_CONFIG_FILE: config, AWS_SHARED_CREDENTIALS_FILE: join(folder, 'none') },
        });
      await writeFile(config, '[default]\nregion = eu-central-1\n');
      expect((await planned()).output).toContain(
        'New stack holdfast-regional in account 000000000000, region eu-central-1',
      );
      await writeFile(config, '[default]\noutput = json\n');
      expect(await planned()).toMatchObject({
        exitCode: 64,
        output: expect.stringContaining('no region: give --region'),
      });
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });
});
