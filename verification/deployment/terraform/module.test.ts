import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import manifest from '../../../package.json' with { type: 'json' };
import { ACCOUNT, call, environment, makeBucket, REGION, type Run, run, user } from '../support/aws.ts';

// Terraform itself, with the provider of AWS, against the emulator.

const STAGE = 'terraform';
const release = resolve('release', `holdfast-${manifest.version}`);
let folder: string;

const terraform = (...args: string[]): Promise<Run> => {
  const mirrored = process.env.TERRAFORM_PLUGINS && { TF_CLI_CONFIG_FILE: join(folder, 'mirror.tfrc') };
  const env = { ...environment(), HOME: folder, TF_IN_AUTOMATION: '1', CHECKPOINT_DISABLE: '1', ...mirrored };
  return run('terraform', [...args, '-no-color'], { cwd: folder, env });
};

/** @param module further arguments of the module @param from the folder of the release */
async function configure(module: string, from = release): Promise<void> {
  const endpoints = ['cloudformation', 's3', 'sts'].map((one) => `${one} = "http://127.0.0.1:${inject('port')}"`);
  await writeFile(
    join(folder, 'main.tf'),
    `provider "aws" {
      region            = "${REGION}"
      s3_use_path_style = true
      skip_metadata_api_check = true
      endpoints {
        ${endpoints.join('\n')}
      }
    }
    module "holdfast" {
      source      = "${resolve('deployment/terraform')}"
      release     = "${from}"
      stage       = "${STAGE}"
      code_bucket = "terraform-code"
      ${module}
    }
    output "endpoint" {
      value = module.holdfast.endpoint
    }
    output "worker_resources" {
      value = module.holdfast.worker_resources
    }
    `,
  );
}

const applied = async (module: string) => {
  await configure(module);
  const { exitCode, output } = await terraform('apply', '-auto-approve', '-input=false');
  expect(exitCode, output).toBe(0);
  const shown = await terraform('output', '-json');
  return JSON.parse(shown.output);
};
const planned = async (module: string) => {
  await configure(module);
  return terraform('plan', '-input=false');
};

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdfast-terraform-'));
  const path = process.env.TERRAFORM_PLUGINS;
  await writeFile(
    join(folder, 'mirror.tfrc'),
    `provider_installation {\n filesystem_mirror {\n path = "${path}"\n }\n}\n`,
  );
  await makeBucket('terraform-code');
  await configure('');
  const { exitCode, output } = await terraform('init', '-input=false');
  expect(exitCode, output).toBe(0);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const TEAM = 'parameters = { namespaces = "team-a" }';

it('the module for Terraform is valid, and formatted', async () => {
  expect(await terraform('validate')).toMatchObject({ exitCode: 0 });
  expect(await terraform('fmt', '-check', '-recursive', resolve('deployment/terraform'))).toMatchObject({
    exitCode: 0,
  });
});

it('the module for Terraform lets a worker acquire only in its namespace', async () => {
  const { endpoint, worker_resources: resources } = await applied(TEAM);
  const Resource = resources.value['team-a'].map((one: string) => one.replace(/:\d{12}:/, `:${ACCOUNT}:`));
  const credentials = await user('terraform-worker', [{ Effect: 'Allow', Action: 'execute-api:Invoke', Resource }]);
  const acquire = (team: string) =>
    call(`${endpoint.value}/v1/ns/${team}/leases/acquire`, { body: { key: 'k', holder: 'w' }, credentials });
  expect(await acquire('team-a')).toMatchObject({ status: 201 });
  expect(await acquire('team-b')).toMatchObject({ status: 403 });
  expect((await planned(TEAM)).output).toContain('No changes');
});

it('the stack policy of the Terraform module protects the tables and the bucket', async () => {
  const { values } = JSON.parse((await terraform('show', '-json')).output);
  const resources: { type: string; values: { policy_body: string } }[] = values.root_module.child_modules[0].resources;
  const stack = resources.find(({ type }) => type === 'aws_cloudformation_stack');
  const { Statement } = JSON.parse(stack?.values.policy_body ?? '');
  const stores = ['LeasesTable', 'WaitersTable', 'CommitsTable', 'NameserviceTable', 'Bucket'];
  expect(Statement).toContainEqual({
    ...{ Effect: 'Deny', Principal: '*', Action: ['Update:Delete', 'Update:Replace'] },
    Resource: stores.map((id) => `LogicalResourceId/${id}`),
  });
});

it('the module for Terraform refuses a plan that would move callers to another table', async () => {
  const { exitCode, output } = await planned('parameters = { namespaces = "team-a", leasesTable = "other" }');
  expect(output).toContain('Instance cannot be destroyed');
  expect(exitCode).toBe(1);
});

it('the module for Terraform refuses a parameter that the release does not have', async () => {
  const unknown = await planned('parameters = { maxWaitSecond = "10" }');
  expect(unknown.output).toContain('The release does not have the parameters maxWaitSecond.');
  expect(unknown).toMatchObject({ exitCode: 1 });
  const stage = await planned('parameters = { stage = "other" }');
  expect(stage.output).toContain('Set stage and code_bucket as variables of the module.');
});

it('the module for Terraform sees a new release by the content of its template', async () => {
  const next = join(folder, 'next');
  await cp(release, next, { recursive: true });
  const template = await readFile(join(next, 'template.json'), 'utf8');
  await writeFile(join(next, 'template.json'), template.replace('"Description": "', '"Description": "Next: '));
  await configure(TEAM, next);
  const { exitCode, output } = await terraform('apply', '-auto-approve', '-input=false');
  expect(exitCode, output).toBe(0);
  expect(output).toMatch(/module\.holdfast\.aws_cloudformation_stack\.this will be updated in-place/);
});
