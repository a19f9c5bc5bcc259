import { readFile } from 'node:fs/promises';
import {
  CreateStackCommand,
  DescribeStacksCommand,
  waitUntilStackCreateComplete,
} from '@aws-sdk/client-cloudformation';
import { CreateTableCommand, PutItemCommand } from '@aws-sdk/client-dynamodb';
import {
  AttachRolePolicyCommand,
  AttachUserPolicyCommand,
  CreateRoleCommand,
  DeleteRolePermissionsBoundaryCommand,
  GetPolicyVersionCommand,
  GetRoleCommand,
  IAMClient,
  ListAttachedRolePoliciesCommand,
  PutRolePermissionsBoundaryCommand,
  PutRolePolicyCommand,
  SimulateCustomPolicyCommand,
  UpdateAssumeRolePolicyCommand,
} from '@aws-sdk/client-iam';
import { beforeAll, describe, expect, it } from 'vitest';
import type { CloudFormationTemplate } from '../../infrastructure/cloudformation.ts';
import { evaluate } from '../../infrastructure/evaluate.ts';
import manifest from '../../package.json' with { type: 'json' };
import {
  ACCOUNT,
  allow,
  cloudFormation,
  deploy,
  dynamodb,
  environment,
  iam,
  makeBucket,
  run,
  serviceRole,
  settings,
  user,
} from './support/aws.ts';

const template: CloudFormationTemplate = JSON.parse(
  await readFile(`release/holdfast-${manifest.version}/template.json`, 'utf8'),
);

const policy = JSON.parse(await readFile('deployment/deployer-policy.json', 'utf8'));

it('a user with the policy of a deployer deploys, and one without a statement of it does not', async () => {
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

it('the documented statements let a deployer use a table and buckets with other names, and lift fences', async () => {
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

/** What CloudFormation calls in the deployer's name for each type of resource, and the property that has its name. */
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
    // CloudFormation calls the function of the guard in the name of the deployer.
    'Custom::HoldfastChangeGuard': {
      arn: () => arn('lambda', 'function:')('holdfast-policy-guardChanges'),
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

describe('the policy', () => {
  const region = 'eu-west-1';
  const given = { stage: 'policy', codeBucket: 'code', 'AWS::AccountId': ACCOUNT, 'AWS::Region': region };
  const { Resources } = evaluate(template, { ...given, 'AWS::Partition': 'aws' });
  /** A name as AWS would see it: of another resource, a Ref or a GetAtt stands for its own name. */
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
  // The command itself reads the commits table before a change to `native` (foreign-commits.ts), drains the pools of 0.2.0 (old-pools.ts),
  // and looks whether a stage is drained (drain.ts).
  const commits =
    ofTemplate.find(({ resource }) => resource.endsWith('-commits')) ?? expect.fail('no table of commits');
  const ofCommand = [
    ['commits', 'Scan'],
    ['leases', 'Scan'],
    ['pools', 'Scan'],
    ['waiters', 'Scan'],
    ['waiters', 'DeleteItem'],
  ] as const;
  const needs = [
    ...ofTemplate,
    ...ofCommand.map(([kind, action]) => ({
      ...commits,
      action: `dynamodb:${action}`,
      resource: commits.resource.replace(/commits$/, kind),
    })),
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

  it('the policy is needed statement by statement, and is for resources of Holdfast alone', async () => {
    const kindOf = ({ resource }: { resource: string }) => resource.replace(/holdfast-.*/, '');
    const ofOne = [...new Map(needs.map((one) => [`${one.action} ${kindOf(one)}`, one])).values()];
    for (const { Sid } of policy.Statement) {
      if (['Stack', 'Code', 'RolesOfFunctions'].includes(Sid)) continue; // exercised by the deployments themselves
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

interface Statement {
  Sid: string;
  Action: string | string[];
  Resource: string | string[];
}

describe('the template bounded-deployer.json', () => {
  const text = readFile('deployment/bounded-deployer.json', 'utf8');
  let outputs: Record<string, string>;
  beforeAll(async () => {
    const StackName = 'deployer-holdfast';
    const Capabilities = ['CAPABILITY_NAMED_IAM'] as ['CAPABILITY_NAMED_IAM'];
    await cloudFormation.send(new CreateStackCommand({ StackName, TemplateBody: await text, Capabilities }));
    const waited = { client: cloudFormation, maxWaitTime: 60, minDelay: 1, maxDelay: 1 };
    await waitUntilStackCreateComplete(waited, { StackName });
    const { Stacks: [stack] = [] } = await cloudFormation.send(new DescribeStacksCommand({ StackName }));
    outputs = Object.fromEntries((stack?.Outputs ?? []).map((one) => [one.OutputKey, String(one.OutputValue)]));
  });

  const documentOf = async (PolicyArn = '') => {
    const { PolicyVersion } = await iam.send(new GetPolicyVersionCommand({ PolicyArn, VersionId: 'v1' }));
    return JSON.parse(decodeURIComponent(String(PolicyVersion?.Document))) as { Statement: Statement[] };
  };
  /** A user with managed policies of the template alone. */
  const holder = async (name: string, ...policies: (string | undefined)[]) => {
    const credentials = await user(name, []);
    for (const PolicyArn of policies) await iam.send(new AttachUserPolicyCommand({ UserName: name, PolicyArn }));
    return credentials;
  };

  it('the bounded template lets a deployer without rights in IAM deploy by the service role, and only with the boundary', async () => {
    const deployer = await holder('bounded', outputs.DeployerPolicyArn);
    const role = `--role-arn=${outputs.ServiceRoleArn}`;
    const unbounded = await deploy('bounded', ['--yes', role], deployer);
    expect(unbounded.output).toContain('is not authorized to perform: iam:CreateRole');
    expect(unbounded.exitCode).toBe(1);
    const boundary = `--param=permissionsBoundaryArn=${outputs.BoundaryArn}`;
    const made = await deploy('bounded', ['--yes', role, boundary], deployer);
    expect(made.exitCode, made.output).toBe(0);
    const changed = await deploy('bounded', ['--yes', '--param=tracing=Active'], deployer);
    expect(changed.exitCode, changed.output).toBe(0);
    const freed = await deploy('bounded', ['--yes', '--reset=permissionsBoundaryArn'], deployer);
    expect(freed.exitCode, freed.output).toBe(1);
  });

  it('the bounded template lets the deployer pass no other role', async () => {
    const deployer = await holder('bounded-passes', outputs.DeployerPolicyArn);
    const others = await serviceRole('others-administrator', 'cloudformation.amazonaws.com');
    const refused = await deploy('bounded-passes', ['--yes', `--role-arn=${others}`], deployer);
    expect(refused.output).toContain('is not authorized to perform: iam:PassRole');
  });

  it('the bounded template lets no holder of all its policies remove a boundary, rewrite a trust, or give rights to a role without the boundary', async () => {
    const policies = [outputs.DeployerPolicyArn, outputs.ResourcesPolicyArn];
    const { accessKeyId, secretAccessKey } = await holder('bounded-rises', ...policies);
    const theirs = new IAMClient({ ...settings, credentials: { accessKeyId, secretAccessKey } });
    const everything = JSON.stringify({
      Version: '2012-10-17',
      Statement: [{ Effect: 'Allow', Action: '*', Resource: '*' }],
    });
    const trust = JSON.stringify({
      Version: '2012-10-17',
      Statement: [{ Effect: 'Allow', Principal: { AWS: `arn:aws:iam::${ACCOUNT}:root` }, Action: 'sts:AssumeRole' }],
    });
    const boundary = outputs.BoundaryArn;
    const create = (RoleName: string, PermissionsBoundary?: string) =>
      new CreateRoleCommand({ RoleName, AssumeRolePolicyDocument: trust, PermissionsBoundary });
    await iam.send(create('holdfast-unbounded'));
    const bounded = { RoleName: 'holdfast-rises' };
    await theirs.send(create(bounded.RoleName, boundary));
    await theirs.send(new PutRolePolicyCommand({ ...bounded, PolicyName: 'all', PolicyDocument: everything }));
    const unbounded = { RoleName: 'holdfast-unbounded' };
    const administrator = 'arn:aws:iam::aws:policy/AdministratorAccess';
    for (const rise of [
      () => theirs.send(create('holdfast-free')),
      () => theirs.send(create('holdfast-free', administrator)),
      () => theirs.send(create('others', boundary)),
      () => theirs.send(new DeleteRolePermissionsBoundaryCommand(bounded)),
      () => theirs.send(new PutRolePermissionsBoundaryCommand({ ...bounded, PermissionsBoundary: administrator })),
      () => theirs.send(new UpdateAssumeRolePolicyCommand({ ...bounded, PolicyDocument: trust })),
      () => theirs.send(new AttachRolePolicyCommand({ ...bounded, PolicyArn: administrator })),
      () => theirs.send(new PutRolePolicyCommand({ ...unbounded, PolicyName: 'all', PolicyDocument: everything })),
      () => theirs.send(new UpdateAssumeRolePolicyCommand({ ...unbounded, PolicyDocument: trust })),
      () =>
        theirs.send(
          new PutRolePolicyCommand({
            ...{ RoleName: 'deployer-holdfast-cloudformation', PolicyName: 'all', PolicyDocument: everything },
          }),
        ),
    ])
      await expect(rise(), String(rise)).rejects.toThrow(/not authorized to perform/);
  });

  it('the bounded template has the statements of deployer-policy.json, but for those on roles, and for another bucket with the code', async () => {
    const ofRoles = ['Roles', 'RolesOfFunctions'];
    const inBoundedBucket = (one: Statement): Statement =>
      JSON.parse(JSON.stringify(one).replaceAll('holdfast-code-', 'holdfast-bounded-code-'));
    const made = [outputs.DeployerPolicyArn, outputs.ResourcesPolicyArn].map(documentOf);
    const statements = (await Promise.all(made)).flatMap(({ Statement }) => Statement);
    for (const statement of policy.Statement.filter(({ Sid }: Statement) => !ofRoles.includes(Sid)))
      expect(statements).toContainEqual(inBoundedBucket(statement));
    const own = ['Zips', 'LookAtStorage', 'ServiceRole', 'BoundedRoles', 'BoundaryStays', 'BoundaryIsFixed'];
    const known = [...policy.Statement.map(({ Sid }: Statement) => Sid), ...own];
    expect(statements.map(({ Sid }) => Sid).filter((Sid) => !known.includes(Sid))).toEqual([]);
  });

  it('the bounded template has a boundary that allows each action of a role of the release, and no action on identities', async () => {
    const { Statement } = await documentOf(outputs.BoundaryArn);
    const bounded = Statement.flatMap(({ Action }) => Action);
    const { Resources } = template;
    const needed = Object.values(Resources)
      .filter(({ Type }) => Type === 'AWS::IAM::Role')
      .flatMap(
        ({ Properties }) =>
          JSON.stringify(Properties).match(/"(?!sts:|aws:|kms:ViaService)[a-z0-9]+:[A-Z][A-Za-z]+"/g) ?? [],
      )
      .map((action) => action.replaceAll('"', ''));
    expect(needed.length).toBeGreaterThan(100);
    expect([...new Set(needed)].filter((action) => !bounded.includes(action))).toEqual([]);
    expect(bounded.filter((action) => /^(iam|sts):|\*/.test(action))).toEqual([]);
  });

  it('the bounded template keeps within the sizes that IAM allows', async () => {
    const documents = [outputs.BoundaryArn, outputs.DeployerPolicyArn, outputs.ResourcesPolicyArn].map(documentOf);
    for (const document of [policy, ...(await Promise.all(documents))])
      expect(JSON.stringify(document).replaceAll(/\s/g, '').length).toBeLessThan(6144);
  });

  it('the bounded template puts no right of its own within reach of those that it gives', async () => {
    const { Role } = await iam.send(new GetRoleCommand({ RoleName: 'deployer-holdfast-cloudformation' }));
    const attached = await iam.send(new ListAttachedRolePoliciesCommand({ RoleName: String(Role?.RoleName) }));
    const names = [...Object.values(outputs), ...(attached.AttachedPolicies ?? []).map(({ PolicyArn }) => PolicyArn)];
    for (const name of names) expect(name).toMatch(/:(policy|role)\/deployer-holdfast-/);
  });
});

it('the policy names only resources of Holdfast, except those that AWS cannot name', () => {
  for (const { Sid, Resource } of policy.Statement)
    for (const resource of [Resource].flat())
      if (!['QueueOfAFunction', 'TagsOfTheQueueOfAFunction', 'AccessLogs', 'Api'].includes(Sid))
        expect(resource, Sid).toMatch(/holdfast-/);
});
