import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import type { Template } from '../support/stack/packaging.ts';
import { BUCKET, configured, lambdas, TABLES, template } from '../support/stack/template.ts';

it('a stack has as outputs the address of the API, and the names of table and functions', () => {
  const values = Object.values(template.Outputs).map(({ Value }) => JSON.stringify(Value));
  expect(template.Outputs.ApiUrl?.Value).toEqual({ 'Fn::GetAtt': ['HttpApi', 'ApiEndpoint'] });
  expect(template.Outputs.LeasesTableName?.Value).toBe(TABLES.leases);
  expect(template.Outputs.WaitersTableName?.Value).toBe(TABLES.waiters);
  expect(template.Outputs.NameserviceTableName?.Value).toBe(TABLES.nameservice);
  expect(template.Outputs.CommitsTableName?.Value).toBe(TABLES.commits);
  expect(template.Outputs.BucketName?.Value).toEqual({ 'Fn::Sub': BUCKET });
  expect(template.Outputs.FailedEventsQueueUrl?.Value).toEqual({ Ref: 'FailedEventsQueue' });
  for (const { logicalId } of lambdas()) expect(values).toContain(JSON.stringify({ Ref: logicalId }));
});

it('the file serverless.yml uses only what each framework that reads it supports', async () => {
  const withoutComments = async (file: string) => (await readFile(file, 'utf8')).replaceAll(/#.*$/gm, '');
  const code = await withoutComments('serverless.yml');
  const included = [...code.matchAll(/\$\{file\((.*?\.yml)\)/g)].map(([, file]) => withoutComments(String(file)));
  expect(included.length).toBeGreaterThan(0);
  for (const text of [code, ...(await Promise.all(included))]) expect(text).not.toMatch(/frameworkVersion|osls/);
  const topLevel = [...code.matchAll(/^(\w+):/gm)].map(([, key]) => key);
  // The keys of Serverless 3 that Serverless 4 still has and osls shares.
  const shared = ['service', 'plugins', 'params', 'custom', 'provider', 'package', 'functions', 'resources'];
  expect(topLevel.sort()).toEqual(shared.sort());
});

it('a stack reserves concurrency for acquire, heartbeat and release if a parameter says so, and for no function by default', async () => {
  const reserved = (from: Template) =>
    lambdas(from).flatMap(({ name, ReservedConcurrentExecutions: count }) =>
      count === undefined ? [] : [[name, count]],
    );
  expect(reserved(template)).toEqual([]);
  expect(reserved(configured)).toEqual([
    ['acquire', '500'],
    ['heartbeat', '20'],
    ['release', '10'],
  ]);
});
