import { execFile } from 'node:child_process';
import { glob, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import {
  CreateStackCommand,
  DescribeStacksCommand,
  waitUntilStackCreateComplete,
} from '@aws-sdk/client-cloudformation';
import { PutObjectCommand } from '@aws-sdk/client-s3';
import { beforeAll, describe, expect, inject, it } from 'vitest';
import type { CloudFormationTemplate } from '../../infrastructure/cloudformation.ts';
import { type Evaluated, evaluate } from '../../infrastructure/evaluate.ts';
import { PARAMETERS } from '../../infrastructure/parameters.ts';
import manifest from '../../package.json' with { type: 'json' };
import { call, cloudFormation, makeBucket, ROOT, s3 } from './support/aws.ts';

const run = promisify(execFile);
const NAME = `holdfast-${manifest.version}`;
const release = resolve('release', NAME);
const readTemplate = async (file: string): Promise<CloudFormationTemplate> => JSON.parse(await readFile(file, 'utf8'));
const template = await readTemplate(join(release, 'template.json'));

interface Snippets {
  terraform: { resource: Record<string, Record<string, Terraform>>[] };
  commands: { operation: string; parameters: Record<string, unknown>; errors: string }[];
}

interface Terraform {
  name: string;
  template_url: string;
  capabilities: string[];
  parameters: Record<string, string>;
  tags: Record<string, string>;
}

let snippets: Snippets;
beforeAll(async () => {
  const python = '.venv-ministack/bin/python';
  const { stdout } = await run(python, ['verification/deployment/support/snippets.py', 'docs/deploy.md']);
  snippets = JSON.parse(stdout);
});

/** Such parameters must be there, be allowed, and leave out none that has no default. */
function expectUsable(given: Record<string, string>): void {
  for (const [name, value] of Object.entries(given)) {
    const { pattern, allowed } = PARAMETERS[name] ?? expect.fail(`there is no parameter ${name}`);
    if (pattern) expect(value, name).toMatch(new RegExp(pattern));
    if (allowed) expect(allowed, name).toContain(value);
  }
  const needed = Object.entries(PARAMETERS).filter(([, { default: usual }]) => usual === undefined);
  expect(Object.keys(given)).toEqual(expect.arrayContaining(needed.map(([name]) => name)));
}

/** One name and a list of it are the same, in any order. */
const comparable = (resources: Evaluated['Resources'] = {}) => {
  const listed = Object.entries(resources).map(([id, { DependsOn: before = [], ...rest }]) => [
    id,
    { ...rest, DependsOn: [before].flat().toSorted() },
  ]);
  return Object.fromEntries(listed);
};

describe('the snippet for CDK', () => {
  it('synthesises the template of the release, with its parameters filled in', async ({ skip }) => {
    const folder = await mkdtemp(join(tmpdir(), 'holdfast-cdk-'));
    try {
      const installed = await run('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts'], {
        cwd: 'verification/deployment/cdk',
      }).catch((error: Error) => error);
      if (installed instanceof Error) return skip(`npm has no CDK here: ${installed.message}`);
      const [, snippet = ''] = (await readFile('docs/deploy.md', 'utf8')).match(/```ts\n(.*?)```/s) ?? [];
      await writeFile(join(folder, 'app.mjs'), snippet);
      await symlink(release, join(folder, NAME));
      await symlink(resolve('verification/deployment/cdk/node_modules'), join(folder, 'node_modules'));
      const env = { ...process.env, CDK_OUTDIR: join(folder, 'out'), CDK_DISABLE_VERSION_CHECK: '1' };
      await run(process.execPath, ['app.mjs'], { cwd: folder, env, maxBuffer: 2 ** 26 });
      const synthesised = await readTemplate(join(folder, 'out', 'holdfast-prod.template.json'));

      const filledIn = { stage: 'prod', codeBucket: 'my-code', codePrefix: 'holdfast/' };
      expectUsable(filledIn);
      const left = Object.keys(template.Parameters ?? {}).filter((name) => !(name in filledIn));
      expect(Object.keys(synthesised.Parameters ?? {}).toSorted()).toEqual([...left, 'BootstrapVersion'].toSorted());
      expect(Object.keys(synthesised.Rules ?? {})).toEqual(expect.arrayContaining(Object.keys(template.Rules ?? {})));
      for (const further of [
        {},
        { namespaces: 'team-a,,team-c', auth: 'jwt', leasesTable: 'mine', dashboard: 'false' },
      ]) {
        const [theirs, ours] = [synthesised, template].map((one) => evaluate(one, { ...filledIn, ...further }));
        expect(comparable(theirs?.Resources)).toEqual(comparable(ours?.Resources));
        const { Api: api, ...outputs } = Object(theirs?.Outputs);
        expect(outputs).toEqual(ours?.Outputs);
        expect(api.Value).toEqual(Object(ours?.Outputs).ApiUrl.Value);
      }
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });
});

describe('the snippet for Terraform', () => {
  const stack = () => Object.values(snippets.terraform.resource[0]?.aws_cloudformation_stack ?? {})[0] as Terraform;

  it('is HCL that names arguments of the resource, and parameters that the template takes', () => {
    expect(Object.keys(snippets.terraform.resource[0] ?? {})).toEqual(['aws_cloudformation_stack']);
    const known = ['name', 'template_url', 'capabilities', 'parameters', 'tags'];
    expect(Object.keys(stack()).toSorted()).toEqual(known.toSorted());
    expect(stack().capabilities).toEqual(['CAPABILITY_NAMED_IAM']);
    expectUsable(stack().parameters);
  });

  it('deploys by the request that Terraform sends: no command of ours has a part in it', async () => {
    const { name, template_url: url, capabilities, parameters, tags } = stack();
    const { hostname, pathname } = new URL(url);
    const [bucket = ''] = hostname.split('.');
    expect(bucket).toBe(parameters.codeBucket);
    await makeBucket(bucket);
    const put = async (key: string, file: string) =>
      s3.send(new PutObjectCommand({ Bucket: bucket, Key: key, Body: await readFile(file) }));
    // What the two commands before the snippet copy.
    for await (const zip of glob(join(release, 'functions', '*.zip'))) await put(`holdfast/${basename(zip)}`, zip);
    await put('holdfast/template.json', join(release, 'template.json'));
    await cloudFormation.send(
      new CreateStackCommand({
        StackName: name,
        TemplateURL: `http://127.0.0.1:${inject('port')}/${bucket}${pathname}`,
        Capabilities: capabilities as ['CAPABILITY_NAMED_IAM'],
        Parameters: Object.entries(parameters).map(([ParameterKey, ParameterValue]) => ({
          ParameterKey,
          ParameterValue,
        })),
        Tags: Object.entries(tags).map(([Key, Value]) => ({ Key, Value })),
      }),
    );
    const made = { StackName: name };
    await waitUntilStackCreateComplete({ client: cloudFormation, maxWaitTime: 600, minDelay: 1, maxDelay: 1 }, made);
    const { Stacks: [deployed] = [] } = await cloudFormation.send(new DescribeStacksCommand(made));
    const api = deployed?.Outputs?.find(({ OutputKey }) => OutputKey === 'ApiUrl')?.OutputValue;
    const health = await call(`${api}/v1/health`, { method: 'GET', credentials: ROOT });
    expect(health).toMatchObject({ status: 200, body: { version: manifest.version } });
    const granted = await call(`${api}/v1/leases/acquire`, { body: { key: 'k', holder: 'w' }, credentials: ROOT });
    expect(granted).toMatchObject({ status: 201, headers: { 'holdfast-version': manifest.version } });
  });
});

describe('the commands for StackSets', () => {
  it('have options that the API knows and finds valid, and parameters that the template takes', () => {
    expect(snippets.commands.map(({ operation }) => operation)).toEqual(['CreateStackSet', 'CreateStackInstances']);
    for (const { errors, operation } of snippets.commands) expect(errors, operation).toBe('');
    const [created, instances] = snippets.commands;
    expect(created?.parameters).toMatchObject({ Capabilities: ['CAPABILITY_NAMED_IAM'] });
    expect(instances?.parameters.StackSetName).toBe(created?.parameters.StackSetName);
    const given = created?.parameters.Parameters as { ParameterKey: string; ParameterValue: string }[];
    expectUsable(Object.fromEntries(given.map(({ ParameterKey, ParameterValue }) => [ParameterKey, ParameterValue])));
  });
});
