import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { CreateTableCommand } from '@aws-sdk/client-dynamodb';
import { beforeAll, expect, it } from 'vitest';
import { readService } from '../../infrastructure/read.ts';
import { call, deploy, deployed, describeAll, dynamodb, environment, ROOT, run } from './support/aws.ts';

/** The stack of this file, in the place of the one that the page names. */
const STAGE = 'runbook';

interface Command {
  service: string;
  operation: string;
  method: string;
  parameters: Record<string, unknown>;
  errors: string;
}

let commands: Command[];
beforeAll(async () => {
  const args = ['verification/deployment/support/snippets.py', 'docs/maintenance.md'];
  const { stdout } = await promisify(execFile)('.venv-ministack/bin/python', args);
  commands = JSON.parse(stdout.replaceAll('holdfast-prod', `holdfast-${STAGE}`)).commands;
});

it('the commands of the runbook have options that the APIs find valid', () => {
  expect(commands.map(({ method }) => method)).toEqual([
    ...['describe_stacks', 'describe_stack_events', 'continue_update_rollback', 'continue_update_rollback'],
    ...['restore_table_to_point_in_time', 'describe_table'],
    ...['update_continuous_backups', 'update_table', 'update_time_to_live'],
    'update_table',
  ]);
  for (const { errors, method } of commands) expect(errors, method).toBe('');
});

it('the runbook restores a table of leases without repeating a fence', async () => {
  const before = await deployed(STAGE);
  const acquire = () =>
    call(`${before.ApiUrl}/v1/leases/acquire`, { body: { key: 'job', holder: 'worker' }, credentials: ROOT });
  const release = (leaseId: string) =>
    call(`${before.ApiUrl}/v1/leases/release`, { body: { key: 'job', leaseId }, credentials: ROOT });
  await release((await acquire()).body.leaseId);
  const isRestored = ({ parameters }: Command) => JSON.stringify(parameters).includes(`holdfast-${STAGE}-leases`);
  const [restore, ...rest] = commands.filter((one) => one.service === 'dynamodb' && isRestored(one));
  const asked = (one: Command[]) =>
    describeAll(one.map(({ service, method, parameters }) => [service, method, parameters]));
  const answers = await asked([restore as Command]);
  const since = await acquire();
  expect((await release(since.body.leaseId)).body.released).toBe(true);
  answers.push(...(await asked(rest)));
  for (const answer of answers) expect(answer).not.toHaveProperty('error');

  const table = `holdfast-${STAGE}-leases-2`;
  const lifted = await run(process.execPath, ['deployment/main.ts', 'lift-fences', '--table', table, '--yes'], {
    env: environment(),
  });
  expect(lifted.output).toMatch(/^1 fences of holdfast-runbook-leases-2 in account 000000000000, region eu-west-1/);
  const after = await deployed(STAGE, ['--param', `leasesTable=${table}`, '--allow-change', 'leasesTable']);
  expect(after.LeasesTableName).toBe(table);
  expect((await acquire()).body.fence).toBeGreaterThan(since.body.fence);
});

it('the runbook adds the index to a table of waiters', async () => {
  const planned = (...given: string[]) =>
    deploy('unindexed', ['--plan', ...given.map((parameter) => `--param=${parameter}`)]);
  const { tables } = await readService();
  const { definition } = tables.find(({ kind }) => kind === 'waiters') as (typeof tables)[number];
  const { GlobalSecondaryIndexes: _, KeySchema = [], AttributeDefinitions = [], ...rest } = definition;
  const keys = KeySchema.map(({ AttributeName }) => AttributeName);
  const table = { ...rest, TableName: 'my-waiters', KeySchema };
  const attributes = AttributeDefinitions.filter(({ AttributeName }) => keys.includes(AttributeName));
  await dynamodb.send(new CreateTableCommand({ ...table, AttributeDefinitions: attributes }));
  const refused = await planned('waitersTable=my-waiters');
  expect(refused.output).toContain(
    'waitersTable: table my-waiters lacks the index by-execution with the key execution (S), key (S)',
  );
  expect(refused.exitCode).toBe(64);
  expect(await planned('waitersTable=my-waiters', 'executionEvents=DISABLED')).toMatchObject({ exitCode: 0 });
  const [add] = commands.filter(({ parameters }) => parameters.TableName === 'my-waiters');
  const { service, method, parameters } = add as Command;
  expect((await describeAll([[service, method, parameters]]))[0]).not.toHaveProperty('error');
  expect(await planned('waitersTable=my-waiters')).toMatchObject({ exitCode: 0 });
});
