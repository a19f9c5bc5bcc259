import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { networkInterfaces } from 'node:os';
import { CreateTableCommand, PutItemCommand } from '@aws-sdk/client-dynamodb';
import { SimulateCustomPolicyCommand } from '@aws-sdk/client-iam';
import { describe, expect, inject, it } from 'vitest';
import type { CloudFormationTemplate } from '../../infrastructure/cloudformation.ts';
import { evaluate } from '../../infrastructure/evaluate.ts';
import manifest from '../../package.json' with { type: 'json' };
import { ACCOUNT, allow, deploy, dynamodb, environment, iam, makeBucket, run, user } from './support/aws.ts';

const template: CloudFormationTemplate = JSON.parse(
  await readFile(`release/holdfast-${manifest.version}/template.json`, 'utf8'),
);

const policy = JSON.parse(await readFile('deployment/deployer-policy.json', 'utf8'));

it('a user deploys with the whole policy of a deployer, and only then', async () => {
  const deployer = await user('deployer', policy.Statement);
  const first = await deploy('deployer', ['--yes', '--tag=team=platform'], deployer);
  expect(first.exitCode, first.output).toBe(0);
  const changed = await deploy('deployer', ['--yes', '--param=memoryMb=256'], deployer);
  expect(changed.exitCode, changed.output).toBe(0);
  for (const sid of ['Stack', 'Code', 'Tables']) {
    await allow(
      'deployer',
      policy.Statement.filter((one: { Sid: string }) => one.Sid !== sid),
    );
    const refused = await deploy(`without-${sid.toLowerCase()}`, ['--yes'], deployer);
    expect(refused.exitCode, `${sid}: ${refused.output}`).not.toBe(0);
  }
});

it('the documented statements allow tables and buckets with other names, and lifted fences', async () => {
  const [, written = ''] = /```json\n(\[\n[^`]*)```/.exec(await readFile('docs/deploy.md', 'utf8')) ?? [];
  const statements: { Sid: string }[] = JSON.parse(written);
  for (const TableName of ['my-leases', 'holdfast-prod-leases-2'])
    await dynamodb.send(
      new CreateTableCommand({
        TableName,
        BillingMode: 'PAY_PER_REQUEST',
        AttributeDefinitions: [{ AttributeName: 'key', AttributeType: 'S' }],
        KeySchema: [{ AttributeName: 'key', KeyType: 'HASH' }],
      }),
    );
  for (const bucket of ['my-bucket', 'my-code']) await makeBucket(bucket);
  const options = ['--param=leasesTable=my-leases', '--param=bucket=my-bucket', '--param=codeBucket=my-code'];
  const deployer = await user('deployer-of-named', [...policy.Statement, ...statements]);
  const { exitCode, output } = await deploy('renamed', ['--plan', ...options], deployer);
  expect(exitCode, output).toBe(0);
  const lift = (table: string) =>
    run(process.execPath, ['deployment/main.ts', 'lift-fences', '--table', table], { env: environment(deployer) });
  await dynamodb.send(
    new PutItemCommand({ TableName: 'holdfast-prod-leases-2', Item: { key: { S: 'k' }, fence: { N: '1' } } }),
  );
  expect(await lift('holdfast-prod-leases-2')).toMatchObject({
    exitCode: 0,
    output: expect.stringContaining('1 fences'),
  });
  for (const { Sid } of statements) {
    await allow('deployer-of-named', [...policy.Statement, ...statements.filter((one) => one.Sid !== Sid)]);
    const refused =
      Sid === 'LiftFences'
        ? await lift('holdfast-prod-leases-2')
        : await deploy('renamed', ['--plan', ...options], deployer);
    expect(refused.exitCode, `${Sid}: ${refused.output}`).not.toBe(0);
  }
});

/** The actions that CloudFormation calls in the deployer's name for each type of resource, and the property with the name of the resource. */
const RIGHTS: Record<string, { name?: string; arn(name: string): string; actions: string[] }> = (() => {
  const arn = (service: string, kind: string) => (name: string) =>
    `arn:aws:${service}:eu-west-1:${ACCOUNT}:${kind}${name}`;
  const actions = (service: string, names: string) => names.split(' ').map((name) => `${service}:${name}`);
  const ofFunction = (names: string) => ({
    name: 'FunctionName',
    arn: arn('lambda', 'function:'),
    actions: actions('lambda', names),
  });
  const ofBucket = { arn: (name: string) => `arn:aws:s3:::${name || 'holdfast-policy'}` };
  const ofApi = {
    arn: () => 'arn:aws:apigateway:eu-west-1::/apis/a1b2c3',
    actions: actions('apigateway', 'GET POST PATCH DELETE TagResource'),
  };
  return {
    'AWS::ApiGatewayV2::Api': ofApi,
    'AWS::ApiGatewayV2::Integration': ofApi,
    'AWS::ApiGatewayV2::Route': ofApi,
    'AWS::ApiGatewayV2::Stage': {
      arn: () => '*',
      actions: actions(
        'logs',
        'CreateLogDelivery GetLogDelivery UpdateLogDelivery DeleteLogDelivery ListLogDeliveries PutResourcePolicy DescribeResourcePolicies DescribeLogGroups',
      ),
    },
    'AWS::CloudWatch::Alarm': {
      name: 'AlarmName',
      arn: arn('cloudwatch', 'alarm:'),
      actions: actions('cloudwatch', 'PutMetricAlarm DescribeAlarms DeleteAlarms TagResource UntagResource'),
    },
    'AWS::CloudWatch::Dashboard': {
      name: 'DashboardName',
      arn: (name) => `arn:aws:cloudwatch::${ACCOUNT}:dashboard/${name}`,
      actions: actions('cloudwatch', 'PutDashboard GetDashboard DeleteDashboards'),
    },
    // CloudFormation calls the function of the change check in the name of the deployer.
    'Custom::HoldfastChangeCheck': {
      arn: () => arn('lambda', 'function:')('holdfast-policy-checkChanges'),
      actions: ['lambda:InvokeFunction'],
    },
    'AWS::DynamoDB::Table': {
      name: 'TableName',
      arn: arn('dynamodb', 'table/'),
      actions: actions(
        'dynamodb',
        'CreateTable DescribeTable UpdateTable DeleteTable UpdateTimeToLive DescribeTimeToLive UpdateContinuousBackups DescribeContinuousBackups TagResource UntagResource ListTagsOfResource',
      ),
    },
    'AWS::Events::Rule': {
      name: 'Name',
      arn: arn('events', 'rule/'),
      actions: actions(
        'events',
        'PutRule DescribeRule DeleteRule PutTargets RemoveTargets ListTargetsByRule TagResource UntagResource',
      ),
    },
    'AWS::IAM::Role': {
      name: 'RoleName',
      arn: (name) => `arn:aws:iam::${ACCOUNT}:role/${name}`,
      actions: actions(
        'iam',
        'CreateRole GetRole DeleteRole PutRolePolicy GetRolePolicy DeleteRolePolicy UpdateAssumeRolePolicy TagRole UntagRole PutRolePermissionsBoundary DeleteRolePermissionsBoundary',
      ),
    },
    'AWS::Lambda::Alias': ofFunction('CreateAlias GetAlias UpdateAlias DeleteAlias'),
    'AWS::Lambda::EventInvokeConfig': ofFunction(
      'PutFunctionEventInvokeConfig GetFunctionEventInvokeConfig UpdateFunctionEventInvokeConfig DeleteFunctionEventInvokeConfig',
    ),
    'AWS::Lambda::EventSourceMapping': {
      arn: () => `arn:aws:lambda:eu-west-1:${ACCOUNT}:event-source-mapping:a1b2c3`,
      actions: actions(
        'lambda',
        'CreateEventSourceMapping GetEventSourceMapping UpdateEventSourceMapping DeleteEventSourceMapping TagResource UntagResource ListTags',
      ),
    },
    'AWS::Lambda::Function': ofFunction(
      'CreateFunction GetFunction GetFunctionConfiguration UpdateFunctionCode UpdateFunctionConfiguration DeleteFunction PutFunctionConcurrency DeleteFunctionConcurrency TagResource UntagResource',
    ),
    'AWS::Lambda::Permission': ofFunction('AddPermission GetPolicy RemovePermission'),
    'AWS::Logs::LogGroup': {
      name: 'LogGroupName',
      arn: arn('logs', 'log-group:'),
      actions: actions(
        'logs',
        'CreateLogGroup DeleteLogGroup PutRetentionPolicy TagResource UntagResource ListTagsForResource',
      ),
    },
    'AWS::S3::Bucket': {
      ...ofBucket,
      actions: actions(
        's3',
        'CreateBucket DeleteBucket PutBucketVersioning PutEncryptionConfiguration PutLifecycleConfiguration PutBucketPublicAccessBlock PutBucketOwnershipControls PutBucketTagging',
      ),
    },
    'AWS::S3::BucketPolicy': {
      ...ofBucket,
      actions: actions('s3', 'PutBucketPolicy GetBucketPolicy DeleteBucketPolicy'),
    },
    'AWS::SQS::Queue': {
      name: 'QueueName',
      arn: arn('sqs', ''),
      actions: actions('sqs', 'CreateQueue GetQueueAttributes SetQueueAttributes DeleteQueue TagQueue UntagQueue'),
    },
    'AWS::SQS::QueuePolicy': { name: 'QueueName', arn: arn('sqs', ''), actions: actions('sqs', 'SetQueueAttributes') },
    'AWS::StepFunctions::StateMachine': {
      name: 'StateMachineName',
      arn: arn('states', 'stateMachine:'),
      actions: actions(
        'states',
        'CreateStateMachine DescribeStateMachine UpdateStateMachine DeleteStateMachine TagResource UntagResource',
      ),
    },
  };
})();

describe('policy', () => {
  const region = 'eu-west-1';
  const given = { stage: 'policy', codeBucket: 'code', 'AWS::AccountId': ACCOUNT, 'AWS::Region': region };
  const { Resources } = evaluate(template, { ...given, 'AWS::Partition': 'aws' });
  /** A name as AWS sees it. A Ref or a GetAtt of another resource stands for that resource's name. */
  const textOf = (value: unknown): string => {
    const { Ref: id, 'Fn::GetAtt': attribute, 'Fn::Join': joined } = Object(value);
    if (joined) return joined[1].map(textOf).join(joined[0]);
    const { Type = '', Properties = {} } = Resources[id ?? attribute?.[0]] ?? {};
    return Type ? textOf(Properties[RIGHTS[Type]?.name ?? '']) : String(value);
  };
  /** What is done to each resource of the template, by its ARN. */
  const ofTemplate = Object.entries(Resources).flatMap(([id, { Type, Properties = {} }]) => {
    const rule = RIGHTS[Type] ?? expect.fail(`what a deployer needs for ${Type} is not listed here`);
    const name = rule.name === undefined ? '' : textOf(Properties[rule.name] ?? `holdfast-policy-${id}-1ABC`);
    return rule.actions.map((action) => ({ id, action, resource: rule.arn(name) }));
  });
  // The command itself reads the commits table before a change to `native` (third-party-commits.ts), checks whether a stage is drained (drain.ts),
  // and compares the held calls with the concurrency of the account (held-calls.ts).
  const commits =
    ofTemplate.find(({ resource }) => resource.endsWith('-commits')) ?? expect.fail('no table of commits');
  const ofCommand = [
    ['commits', 'Scan'],
    ['leases', 'Scan'],
    ['waiters', 'Scan'],
  ] as const;
  const needs = [
    ...ofTemplate,
    ...ofCommand.map(([kind, action]) => ({
      ...commits,
      action: `dynamodb:${action}`,
      resource: commits.resource.replace(/commits$/, kind),
    })),
    { id: 'account', action: 'lambda:GetAccountSettings', resource: '*' },
  ];

  const decisions = async (statements: object[], asked: typeof needs) => {
    const PolicyInputList = [JSON.stringify({ Version: '2012-10-17', Statement: statements })];
    const denied: string[] = [];
    for (const resource of new Set(asked.map((one) => one.resource))) {
      const actions = new Set(asked.filter((one) => one.resource === resource).map(({ action }) => action));
      const simulated = await iam.send(
        new SimulateCustomPolicyCommand({ PolicyInputList, ActionNames: [...actions], ResourceArns: [resource] }),
      );
      for (const { EvalActionName, EvalDecision } of simulated.EvaluationResults ?? [])
        if (EvalDecision !== 'allowed') denied.push(`${EvalActionName} on ${resource}`);
    }
    return denied;
  };

  it('the policy lets CloudFormation make, change, read and delete each resource of the template', async () => {
    expect(needs.length).toBeGreaterThan(500);
    expect(await decisions(policy.Statement, needs)).toEqual([]);
  });

  it('the policy needs each statement, and covers only resources of Holdfast', async () => {
    const kindOf = ({ resource }: { resource: string }) => resource.replace(/holdfast-.*/, '');
    const ofOne = [...new Map(needs.map((one) => [`${one.action} ${kindOf(one)}`, one])).values()];
    for (const { Sid } of policy.Statement) {
      if (['Stack', 'Code', 'RolesOfFunctions'].includes(Sid)) continue; // the deployments themselves exercise these
      const others = policy.Statement.filter((one: { Sid: string }) => one.Sid !== Sid);
      expect(await decisions(others, ofOne), Sid).not.toEqual([]);
    }
    const ofOthers = ofOne
      .filter(({ resource }) => resource.includes('holdfast-'))
      .map((one) => ({ ...one, resource: one.resource.replace('holdfast-', 'others-') }));
    expect(await decisions(policy.Statement, ofOthers)).toHaveLength(
      new Set(ofOthers.map(({ action, resource }) => action + resource)).size,
    );
  });
});

it('the policy names only resources of Holdfast, except those that AWS cannot name', () => {
  for (const { Sid, Resource } of policy.Statement)
    for (const resource of [Resource].flat())
      if (!['Concurrency', 'QueueOfAFunction', 'TagsOfTheQueueOfAFunction', 'AccessLogs', 'Api'].includes(Sid))
        expect(resource, Sid).toMatch(/holdfast-/);
});

it('the emulator of these tests answers only on this machine', async () => {
  const addresses = Object.values(networkInterfaces()).flatMap((all = []) => all.filter(({ internal }) => !internal));
  for (const { address } of addresses.filter(({ family }) => family === 'IPv4'))
    for (const port of [inject('port'), 8883])
      await expect(once(connect({ host: address, port }), 'connect'), `${address} ${port}`).rejects.toThrow();
});
