import { execFile } from 'node:child_process';
import { cp, glob, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import {
  CreateStackCommand,
  DescribeStacksCommand,
  waitUntilStackCreateComplete,
} from '@aws-sdk/client-cloudformation';
import { PutObjectCommand } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { pathInNamespace } from '../../contract/routes/route.ts';
import { ROUTES } from '../../contract/routes.ts';
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
  terraform: { module: Record<string, Record<string, unknown>>[] };
  commands: { operation: string; parameters: Record<string, unknown>; errors: string }[];
}

let snippets: Snippets;
beforeAll(async () => {
  const python = '.venv-ministack/bin/python';
  const { stdout } = await run(python, ['verification/deployment/support/snippets.py', 'docs/deploy.md']);
  snippets = JSON.parse(stdout);
});

/** Checks that these parameters exist, have allowed values, and include each parameter without a default. */
function expectUsable(given: Record<string, string>): void {
  for (const [name, value] of Object.entries(given)) {
    const { pattern, allowed } = PARAMETERS[name] ?? expect.fail(`there is no parameter ${name}`);
    if (pattern) expect(value, name).toMatch(new RegExp(pattern));
    if (allowed) expect(allowed, name).toContain(value);
  }
  const needed = Object.entries(PARAMETERS).filter(([, { default: usual }]) => usual === undefined);
  expect(Object.keys(given)).toEqual(expect.arrayContaining(needed.map(([name]) => name)));
}

/** Makes a name equal to a list with only that name, and lists equal in any order. */
const comparable = (resources: Evaluated['Resources'] = {}) => {
  const listed = Object.entries(resources).map(([id, { DependsOn: before = [], ...rest }]) => [
    id,
    { ...rest, DependsOn: [before].flat().toSorted() },
  ]);
  return Object.fromEntries(listed);
};

describe('CDK', () => {
  const SNIPPET = /```ts\n(.*?)```/s;
  let folder: string;
  let context: object;
  /** The environment of an app that writes there. */
  const inFolder = (name: string) => ({
    ...process.env,
    ...{ CDK_OUTDIR: join(folder, name), CDK_CONTEXT_JSON: JSON.stringify(context) },
  });
  let installed: Error | undefined;
  let synthesised: CloudFormationTemplate;
  const tsc = (file: string) => {
    const options = ['--noEmit', '--strict', '--skipLibCheck', '--module', 'nodenext', '--target', 'es2022'];
    const args = [resolve('node_modules/typescript/bin/tsc'), ...options, file];
    return run(process.execPath, args, { cwd: folder });
  };

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'holdfast-cdk-'));
    const cdk = 'verification/deployment/cdk';
    const install = run('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts'], { cwd: cdk });
    installed = await install.then(
      () => undefined,
      (error: Error) => error,
    );
    if (installed) return;
    const [, snippet = ''] = SNIPPET.exec(await readFile('docs/deploy.md', 'utf8')) ?? [];
    await writeFile(join(folder, 'app.mts'), snippet);
    // Node resolves the construct's packages from its real folder.
    await cp(release, join(folder, NAME), { recursive: true });
    await symlink(resolve(cdk, 'node_modules'), join(folder, 'node_modules'));
    ({ context } = JSON.parse(await readFile(join(cdk, 'cdk.json'), 'utf8')));
    await run(process.execPath, ['app.mts'], { cwd: folder, env: inFolder('out'), maxBuffer: 2 ** 26 });
    synthesised = await readTemplate(join(folder, 'out', 'HoldfastProd.template.json'));
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  it("the construct for CDK passes CDK's validation with the flags of cdk init", async ({ skip }) => {
    if (installed) return skip(`npm has no CDK here: ${installed.message}`);
    const report = JSON.parse(await readFile(join(folder, 'out', 'validation-report.json'), 'utf8'));
    expect(report.pluginReports).toMatchObject([{ pluginName: 'CloudFormation Validate', violations: [] }]);
  });

  it('the construct for CDK synthesises the template of the release', async ({ skip }) => {
    if (installed) return skip();
    const given = { stage: 'prod', namespaces: 'team-a', codeBucket: 'assets', codePrefix: '' };
    expect(Object.keys(synthesised.Parameters ?? {})).toEqual(['BootstrapVersion']);
    expect(Object.keys(synthesised.Rules ?? {})).toEqual(expect.arrayContaining(Object.keys(template.Rules ?? {})));
    const [theirs, ours] = [evaluate(synthesised, {}), evaluate(template, given)];
    const own = Object.entries(theirs.Resources).filter(([id]) => id in ours.Resources);
    // CDK writes a literal number as a number, and a Ref of a parameter is a text.
    const asText = (value: unknown) => (/number|boolean/.test(typeof value) ? String(value) : value);
    const withoutCode = (resources: Evaluated['Resources']) =>
      JSON.parse(JSON.stringify(comparable(resources)), (key, value) => (key === 'Code' ? null : asText(value)));
    expect(withoutCode(Object.fromEntries(own))).toEqual(withoutCode(ours.Resources));
    const codes = own.flatMap(([, { Type, Properties }]) =>
      Type === 'AWS::Lambda::Function' ? [Properties?.Code] : [],
    );
    const keys = codes.flatMap((code) => Object(code).S3Key ?? []);
    expect(new Set(keys).size).toBe((await readdir(join(release, 'functions'))).length);
    for (const key of keys) expect(key).toMatch(/^[0-9a-f]{64}\.zip$/);
  });

  it('the construct for CDK grants routes of the contract, without a wildcard', async ({ skip }) => {
    if (installed) return skip();
    const { Resources } = evaluate(synthesised, {});
    const policy = Object.entries(Resources).find(([id]) => id.startsWith('WorkerDefaultPolicy'))?.[1];
    const granted = JSON.stringify(policy).match(/\$default[^"]*/g) ?? [];
    const routes = ROUTES.map((one) => `$default/${one.method}${pathInNamespace(one).replace('{ns}', 'team-a')}`);
    expect(granted.map((route) => route.split('/').at(-1))).toEqual([
      ...[
        'leases',
        'once',
        'rates',
        'acquire',
        'heartbeat',
        'release',
        'withdraw',
        'begin',
        'complete',
        'reserve',
        'settle',
      ],
    ]);
    for (const route of granted) expect(routes).toContain(route);
    const source = await readFile('deployment/cdk/index.ts', 'utf8');
    const written = [...source.matchAll(/'((?:GET|POST) [a-z/]+)'/g)].map(([, route]) => route);
    const paths = ROUTES.map(({ method, path }) => `${method} ${path.replace('/v1/', '')}`);
    expect(written.length).toBeGreaterThan(4);
    for (const route of written) expect(paths).toContain(route);
  });

  it('the construct for CDK types its parameters, and refuses a wildcard namespace', async ({ skip }) => {
    if (installed) return skip();
    const types = await run(process.execPath, ['build/cdk-types.ts']);
    expect(types.stdout).toBe(await readFile('deployment/cdk/parameters.ts', 'utf8'));
    await tsc('app.mts');
    const app = await readFile(join(folder, 'app.mts'), 'utf8');
    await writeFile(join(folder, 'wrong.mts'), app.replace("stage: 'prod'", "stage: 'prod', maxWaitSecond: 10"));
    await expect(tsc('wrong.mts')).rejects.toMatchObject({ stdout: expect.stringContaining('maxWaitSecond') });
    // A token may become a wildcard.
    for (const namespace of ["'*'", "Lazy.string({ produce: () => '*' })"]) {
      const wild = app.replace("(worker, 'team-a')", `(worker, ${namespace})`).replace('{ App', '{ Lazy, App');
      await writeFile(join(folder, 'wild.mts'), wild);
      await expect(run(process.execPath, ['wild.mts'], { cwd: folder })).rejects.toMatchObject({
        stderr: expect.stringContaining('namespace must be a literal of 1 to 32'),
      });
    }
  });

  it('the construct for CDK lets a schedule start exclusive every night', async ({ skip }) => {
    if (installed) return skip();
    const [, nightly = ''] = SNIPPET.exec(await readFile('docs/step-functions.md', 'utf8')) ?? [];
    await writeFile(join(folder, 'nightly.mts'), nightly);
    await tsc('nightly.mts');
    await run(process.execPath, ['nightly.mts'], { cwd: folder, env: inFolder('nightly'), maxBuffer: 2 ** 26 });
    const { Resources } = await readTemplate(join(folder, 'nightly', 'HoldfastProd.template.json'));
    const exclusive = { Ref: 'ExclusiveStateMachine' };
    const ofType = (type: string) => Object.values(Resources).filter(({ Type }) => Type === type);
    const targets = ofType('AWS::Scheduler::Schedule').map(({ Properties }) => Object(Properties?.Target).Arn);
    expect(targets).toContainEqual(exclusive);
    const statements = ofType('AWS::IAM::Policy').flatMap(
      ({ Properties }) => Object(Properties?.PolicyDocument).Statement,
    );
    expect(statements).toContainEqual({ Action: 'states:StartExecution', Effect: 'Allow', Resource: exclusive });
    await writeFile(join(folder, 'none.mts'), nightly.replace('exclusive()', "exclusive('team-b')"));
    await expect(run(process.execPath, ['none.mts'], { cwd: folder })).rejects.toMatchObject({
      stderr: expect.stringContaining('the parameter namespaces does not name team-b'),
    });
    const named = "{ stage: 'prod', namespaces: 'team-a,team-b',";
    const second = nightly.replace("{ stage: 'prod',", named).replace('exclusive()', "exclusive('team-b')");
    await writeFile(join(folder, 'second.mts'), second);
    await run(process.execPath, ['second.mts'], { cwd: folder, env: inFolder('second'), maxBuffer: 2 ** 26 });
    const ofTeam = await readFile(join(folder, 'second', 'HoldfastProd.template.json'), 'utf8');
    expect(ofTeam).toMatch(/"Resource": \{\s*"Ref": "Namespace2Exclusive"/);
  });

  it('the construct for CDK puts the functions into the VPC of the caller', async ({ skip }) => {
    if (installed) return skip();
    const vpc = { vpcSubnetIds: 'subnet-0123abcd,subnet-0123abce', vpcSecurityGroupIds: 'sg-0123abcd' };
    const app = await readFile(join(folder, 'app.mts'), 'utf8');
    const props = Object.entries(vpc).map(([name, value]) => `${name}: '${value}'`);
    await writeFile(join(folder, 'vpc.mts'), app.replace("stage: 'prod'", `stage: 'prod', ${props}`));
    await run(process.execPath, ['vpc.mts'], { cwd: folder, env: inFolder('vpc'), maxBuffer: 2 ** 26 });
    const { Resources } = evaluate(await readTemplate(join(folder, 'vpc', 'HoldfastProd.template.json')), {});
    expect(Resources.AcquireLambdaFunction?.Properties?.VpcConfig).toEqual({
      SubnetIds: ['subnet-0123abcd', 'subnet-0123abce'],
      SecurityGroupIds: ['sg-0123abcd'],
    });
  });
});

describe('Terraform and CloudFormation', () => {
  it('the template is what the module for Terraform deploys', async () => {
    const [[name, given = {}] = []] = snippets.terraform.module.flatMap((one) => Object.entries(one));
    expect(name).toBe('holdfast');
    expect(given.source).toBe(`./${NAME}/terraform`);
    expect(await readdir(join(release, 'terraform'))).toEqual(await readdir('deployment/terraform'));
    const variables = await readFile('deployment/terraform/variables.tf', 'utf8');
    const known = [...variables.matchAll(/^variable "(.*)"/gm)].map(([, variable]) => variable);
    for (const variable of Object.keys(given)) expect(['source', ...known]).toContain(variable);
    const parameters = given.parameters as Record<string, string>;
    expectUsable({ ...parameters, stage: String(given.stage), codeBucket: String(given.code_bucket) });
    const main = await readFile('deployment/terraform/main.tf', 'utf8');
    const fixed = Object.keys(PARAMETERS).filter((parameter) => PARAMETERS[parameter]?.fixed);
    const ofModule = /fixed = \[(.*?)\]/s.exec(main)?.[1]?.match(/\w+/g) ?? [];
    expect(ofModule.toSorted()).toEqual(fixed.filter((parameter) => parameter !== 'stage').toSorted());
    for (const table of main.match(/"(LeasesTable|WaitersTable|CommitsTable|NameserviceTable|Bucket)"/g) ?? [])
      expect(template.Resources).toHaveProperty(JSON.parse(table));
  });

  it('the template makes a stack by plain CreateStack, without a command of Holdfast', async () => {
    const [StackName, Bucket] = ['holdfast-alone', 'my-code'];
    await makeBucket(Bucket);
    const put = async (key: string, file: string) =>
      s3.send(new PutObjectCommand({ Bucket, Key: key, Body: await readFile(file) }));
    // What the two commands of the page copy.
    for await (const zip of glob(join(release, 'functions', '*.zip'))) await put(`holdfast/${basename(zip)}`, zip);
    await put('holdfast/template.json', join(release, 'template.json'));
    const parameters = { stage: 'alone', codeBucket: Bucket, codePrefix: 'holdfast/' };
    await cloudFormation.send(
      new CreateStackCommand({
        StackName,
        TemplateURL: `http://127.0.0.1:${inject('port')}/${Bucket}/holdfast/template.json`,
        Capabilities: ['CAPABILITY_NAMED_IAM'],
        Parameters: Object.entries(parameters).map(([ParameterKey, ParameterValue]) => ({
          ParameterKey,
          ParameterValue,
        })),
      }),
    );
    const made = { StackName };
    await waitUntilStackCreateComplete({ client: cloudFormation, maxWaitTime: 600, minDelay: 1, maxDelay: 1 }, made);
    const { Stacks: [deployed] = [] } = await cloudFormation.send(new DescribeStacksCommand(made));
    const api = deployed?.Outputs?.find(({ OutputKey }) => OutputKey === 'ApiUrl')?.OutputValue;
    const health = await call(`${api}/v1/health`, { method: 'GET', credentials: ROOT });
    expect(health).toMatchObject({ status: 200, body: { version: manifest.version } });
    const granted = await call(`${api}/v1/leases/acquire`, { body: { key: 'k', holder: 'w' }, credentials: ROOT });
    expect(granted).toMatchObject({ status: 201, headers: { 'holdfast-version': manifest.version } });
  });
});

describe('commands', () => {
  it('the commands of the page have options that the API finds valid', () => {
    expect(snippets.commands.map(({ operation }) => operation)).toEqual([
      ...['CreateStackSet', 'CreateStackInstances', 'DeleteStack', 'CreateStack'],
    ]);
    for (const { errors, operation } of snippets.commands) expect(errors, operation).toBe('');
    const [created, instances] = snippets.commands;
    expect(created?.parameters).toMatchObject({ Capabilities: ['CAPABILITY_NAMED_IAM'] });
    expect(instances?.parameters.StackSetName).toBe(created?.parameters.StackSetName);
    const given = created?.parameters.Parameters as { ParameterKey: string; ParameterValue: string }[];
    expectUsable(Object.fromEntries(given.map(({ ParameterKey, ParameterValue }) => [ParameterKey, ParameterValue])));
  });
});
