import {
  CreateStackCommand,
  DescribeStacksCommand,
  waitUntilStackCreateComplete,
} from '@aws-sdk/client-cloudformation';
import { beforeAll, expect, it } from 'vitest';
import { readService } from '../../infrastructure/read.ts';
import {
  ACCOUNT,
  type ApiCall,
  call,
  cloudFormation,
  deploy,
  deployed,
  describeAll,
  REGION,
  ROOT,
} from './support/aws.ts';

const STAGE = 'platform';
const DOMAIN = 'leases.example.test';
const NAMES = {
  functions: (await readService()).functions.map(({ name }) => `holdfast-${STAGE}-${name}`),
};

/** Allows what the functions do, but for writing objects: a role without this boundary could write them. */
const BOUNDARY = {
  Version: '2012-10-17',
  Statement: [
    { Effect: 'Allow', Action: '*', Resource: '*' },
    { Effect: 'Deny', Action: 's3:PutObject', Resource: '*' },
  ],
};

const OF_THE_ACCOUNT = {
  Version: '2012-10-17',
  Statement: [{ Effect: 'Allow', Principal: { AWS: `arn:aws:iam::${ACCOUNT}:root` }, Action: 'kms:*', Resource: '*' }],
};

const cidr = (third: number) => `10.0.${third}.0/24`;
const subnet = (third: number) => ({
  Type: 'AWS::EC2::Subnet',
  Properties: { VpcId: { Ref: 'Vpc' }, CidrBlock: cidr(third) },
});

/** What a platform team has before it takes Holdfast. */
const GIVEN = {
  Resources: {
    Key: { Type: 'AWS::KMS::Key', Properties: { KeyPolicy: OF_THE_ACCOUNT } },
    BucketKey: { Type: 'AWS::KMS::Key', Properties: { KeyPolicy: OF_THE_ACCOUNT } },
    Vpc: { Type: 'AWS::EC2::VPC', Properties: { CidrBlock: '10.0.0.0/16' } },
    SubnetA: subnet(1),
    SubnetB: subnet(2),
    Group: { Type: 'AWS::EC2::SecurityGroup', Properties: { GroupDescription: 'functions', VpcId: { Ref: 'Vpc' } } },
    Boundary: { Type: 'AWS::IAM::ManagedPolicy', Properties: { PolicyDocument: BOUNDARY } },
    Alarmed: { Type: 'AWS::SNS::Topic', Properties: { TopicName: 'alarmed' } },
    Noted: { Type: 'AWS::SNS::Topic', Properties: { TopicName: 'noted' } },
    Calmed: { Type: 'AWS::SNS::Topic', Properties: { TopicName: 'calmed' } },
    Zone: { Type: 'AWS::Route53::HostedZone', Properties: { Name: 'example.test' } },
    Certificate: { Type: 'AWS::CertificateManager::Certificate', Properties: { DomainName: DOMAIN } },
  },
  Outputs: {
    kmsKeyArn: { Value: { 'Fn::GetAtt': ['Key', 'Arn'] } },
    bucketKmsKeyArn: { Value: { 'Fn::GetAtt': ['BucketKey', 'Arn'] } },
    vpcSubnetIds: { Value: { 'Fn::Join': [',', [{ Ref: 'SubnetA' }, { Ref: 'SubnetB' }]] } },
    vpcSecurityGroupIds: { Value: { 'Fn::GetAtt': ['Group', 'GroupId'] } },
    permissionsBoundaryArn: { Value: { Ref: 'Boundary' } },
    alarmTopicArn: { Value: { Ref: 'Alarmed' } },
    ticketTopicArn: { Value: { Ref: 'Noted' } },
    alarmOkTopicArn: { Value: { Ref: 'Calmed' } },
    hostedZoneId: { Value: { Ref: 'Zone' } },
    certificateArn: { Value: { Ref: 'Certificate' } },
  },
};

async function given(): Promise<Record<string, string>> {
  const stack = { StackName: 'given' };
  await cloudFormation.send(
    new CreateStackCommand({ ...stack, TemplateBody: JSON.stringify(GIVEN), Capabilities: ['CAPABILITY_IAM'] }),
  );
  await waitUntilStackCreateComplete({ client: cloudFormation, maxWaitTime: 600, minDelay: 1, maxDelay: 1 }, stack);
  const { Stacks: [made] = [] } = await cloudFormation.send(new DescribeStacksCommand(stack));
  return Object.fromEntries((made?.Outputs ?? []).map(({ OutputKey, OutputValue }) => [OutputKey, OutputValue]));
}

let parameters: Record<string, string>;
let outputs: Record<string, string>;
beforeAll(async () => {
  parameters = {
    ...(await given()),
    ...{ tracing: 'Active', logFormat: 'JSON', accessLogs: 'true', throttlingRate: '50', throttlingBurst: '20' },
    ...{ domainName: DOMAIN, noncurrentVersionDays: '30', deletionProtection: 'true', dashboard: 'true' },
    ...{ acquireConcurrency: '50', heartbeatConcurrency: '5', releaseConcurrency: '6' },
    // Other tests upload the same code at the same time, each as a new version.
    ...{ alarms: 'all', codePrefix: 'platform/' },
  };
  const options = Object.entries(parameters).map(([name, value]) => `--param=${name}=${value}`);
  outputs = await deployed(STAGE, [...options, '--tag=team=platform']);
});

const each = (service: string, operation: string, parameters: object[]): Promise<Record<string, never>[]> =>
  describeAll(parameters.map((one): ApiCall => [service, operation, one]));

it('a deployment with every parameter has roles within the boundary', async () => {
  const [{ Roles }] = (await describeAll([['iam', 'list_roles', {}]])) as [{ Roles: { RoleName: string }[] }];
  const own = Roles.map(({ RoleName }) => RoleName).filter((name) => name.startsWith(`holdfast-${STAGE}-`));
  expect(own.length).toBeGreaterThan(NAMES.functions.length);
  for (const { Role } of await each(
    'iam',
    'get_role',
    own.map((RoleName) => ({ RoleName })),
  )) {
    expect(Role).toMatchObject({
      PermissionsBoundary: { PermissionsBoundaryArn: parameters.permissionsBoundaryArn },
      Tags: expect.arrayContaining([{ Key: 'team', Value: 'platform' }]),
    });
  }
  const lease = { key: 'k', holder: 'w' };
  const granted = await call(`${api()}/v1/leases/acquire`, { body: lease, credentials: ROOT });
  expect(granted).toMatchObject({ status: 201 });
  const { leaseId } = granted.body;
  const released = await call(`${api()}/v1/leases/release`, { body: { key: 'k', leaseId }, credentials: ROOT });
  expect(released).toMatchObject({ status: 200, body: { released: true } });
  const commit = { path: 'a', ifNoneMatch: '*', commitId: 'c', body: 'x' };
  // A busy emulator may answer otherwise at first.
  const refused = () => call(`${api()}/v1/commits`, { body: commit, credentials: ROOT, tries: 1 });
  await expect
    .poll(refused, { timeout: 300_000, interval: 500 })
    .toMatchObject({ status: 503, body: { detail: expect.stringMatching(/access to .* is denied/) } });
});

it('a deployment with every parameter has alarms, their topics and the dashboard', async () => {
  const [{ MetricAlarms }, { DashboardBody }] = await describeAll([
    ['cloudwatch', 'describe_alarms', { AlarmNamePrefix: `holdfast-${STAGE}-`, MaxRecords: 100 }],
    ['cloudwatch', 'get_dashboard', { DashboardName: `holdfast-${STAGE}` }],
  ]);
  expect(MetricAlarms.length).toBeGreaterThan(15);
  for (const alarm of MetricAlarms)
    expect(alarm).toMatchObject({
      AlarmActions: [alarm.EvaluationPeriods === 3 ? parameters.alarmTopicArn : parameters.ticketTopicArn],
      OKActions: [parameters.alarmOkTopicArn],
    });
  const { widgets } = JSON.parse(DashboardBody);
  expect(widgets).toHaveLength(12);
  expect(DashboardBody).toContain(`"TableName","holdfast-${STAGE}-leases"`);
  expect(DashboardBody).toContain(`"region":"${REGION}"`);
  expect(DashboardBody).not.toContain('${');
});

it('a deployment with every parameter has an API with log, throttling and domain', async () => {
  expect(outputs.ApiUrl).toBe(`https://${DOMAIN}`);
  const [{ DomainNameConfigurations }, { Items }] = await describeAll([
    ['apigatewayv2', 'get_domain_name', { DomainName: DOMAIN }],
    ['apigatewayv2', 'get_api_mappings', { DomainName: DOMAIN }],
  ]);
  expect(DomainNameConfigurations).toMatchObject([{ CertificateArn: parameters.certificateArn }]);
  expect(Items).toHaveLength(1);
  const [{ ApiId: apiId, Stage: stage }] = Items;
  const [{ AccessLogSettings, DefaultRouteSettings, RouteSettings }, { ResourceRecordSets }] = await describeAll([
    ['apigatewayv2', 'get_stage', { ApiId: apiId, StageName: stage }],
    ['route53', 'list_resource_record_sets', { HostedZoneId: parameters.hostedZoneId }],
  ]);
  expect(AccessLogSettings.DestinationArn).toContain(`:log-group:/aws/apigateway/holdfast-${STAGE}`);
  expect(JSON.parse(AccessLogSettings.Format)).toMatchObject({ status: '$context.status' });
  expect(DefaultRouteSettings).toMatchObject({ ThrottlingRateLimit: 50, ThrottlingBurstLimit: 20 });
  expect(RouteSettings['GET /v1/leases']).toMatchObject({ ThrottlingRateLimit: 200, ThrottlingBurstLimit: 200 });
  expect(ResourceRecordSets).toContainEqual(
    expect.objectContaining({ Name: `${DOMAIN}.`, Type: 'A', AliasTarget: expect.anything() }),
  );
});

it('a deployment keeps every parameter if a later one does not name them', async () => {
  const { output, exitCode } = await deploy(STAGE, ['--tag=team=platform']);
  expect(output).toContain('Nothing to change');
  expect(exitCode).toBe(0);
});

/** The stage of the API itself: no resolver knows the domain. */
const api = () => `http://${DOMAIN}`;
