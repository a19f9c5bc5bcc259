import {
  type CloudFormationTemplate,
  choose,
  equals,
  isGiven,
  type Json,
  NO_VALUE,
  type Properties,
  ref,
  sub,
  type TemplateResource,
} from './cloudformation.ts';
import { dashboard } from './dashboard.ts';

/** Adds the demands of a platform team as parameters that are off, or safe, by default. */
export function platform(template: CloudFormationTemplate): void {
  Object.assign(template.Conditions, CONDITIONS);
  Object.assign(template.Resources, RESOURCES, { Dashboard: dashboard(template) });
  for (const resource of Object.values(template.Resources)) demand(resource);
  template.Outputs.ApiUrl = {
    Description: 'Where callers send their requests',
    Value: choose('HasDomain', sub(`https://\${domainName}`), { 'Fn::GetAtt': ['HttpApi', 'ApiEndpoint'] }),
  };
}

const CONDITIONS: Record<string, Json> = {
  HasBoundary: isGiven('permissionsBoundaryArn'),
  HasKmsKey: isGiven('kmsKeyArn'),
  HasBucketKmsKey: isGiven('bucketKmsKeyArn'),
  InVpc: isGiven('vpcSubnetIds'),
  Traces: equals('tracing', 'Active'),
  LogsAccess: equals('accessLogs', 'true'),
  HasDashboard: equals('dashboard', 'true'),
  NotifyOk: isGiven('alarmOkTopicArn'),
  HasDomain: isGiven('domainName'),
  HasHostedZone: { 'Fn::And': [isGiven('domainName'), isGiven('hostedZoneId')] },
};

/** What API Gateway logs about a request: its caller, its route and its outcome. */
const ACCESS_LOG = {
  time: '$context.requestTime',
  requestId: '$context.requestId',
  route: '$context.routeKey',
  status: '$context.status',
  bytes: '$context.responseLength',
  latencyMs: '$context.responseLatency',
  functionLatencyMs: '$context.integrationLatency',
  ip: '$context.identity.sourceIp',
  caller: '$context.identity.userArn',
  subject: '$context.authorizer.claims.sub',
  error: '$context.error.message',
};

const RESOURCES: Record<string, TemplateResource> = {
  AccessLogGroup: {
    Type: 'AWS::Logs::LogGroup',
    Condition: 'LogsAccess',
    Properties: { LogGroupName: sub(`/aws/apigateway/holdfast-\${stage}`), RetentionInDays: ref('logRetentionDays') },
  },
  ApiDomain: {
    Type: 'AWS::ApiGatewayV2::DomainName',
    Condition: 'HasDomain',
    Properties: {
      DomainName: ref('domainName'),
      DomainNameConfigurations: [
        { CertificateArn: ref('certificateArn'), EndpointType: 'REGIONAL', SecurityPolicy: 'TLS_1_2' },
      ],
    },
  },
  ApiDomainMapping: {
    Type: 'AWS::ApiGatewayV2::ApiMapping',
    Condition: 'HasDomain',
    Properties: { ApiId: ref('HttpApi'), DomainName: ref('ApiDomain'), Stage: ref('HttpApiStage') },
  },
  ApiDomainRecord: {
    Type: 'AWS::Route53::RecordSet',
    Condition: 'HasHostedZone',
    Properties: {
      HostedZoneId: ref('hostedZoneId'),
      Name: ref('domainName'),
      Type: 'A',
      AliasTarget: {
        DNSName: { 'Fn::GetAtt': ['ApiDomain', 'RegionalDomainName'] },
        HostedZoneId: { 'Fn::GetAtt': ['ApiDomain', 'RegionalHostedZoneId'] },
      },
    },
  },
};

const list = (name: string): Json => ({ 'Fn::Split': [',', ref(name)] });

function demand({ Type, Properties: properties = {} }: TemplateResource): void {
  switch (Type) {
    case 'AWS::IAM::Role':
      properties.PermissionsBoundary = choose('HasBoundary', ref('permissionsBoundaryArn'), NO_VALUE);
      if (isOfFunction(properties)) for (const statement of STATEMENTS) statementsOf(properties).push(statement);
      return;
    case 'AWS::Lambda::Function':
      Object.assign(properties, FUNCTION);
      return;
    case 'AWS::Logs::LogGroup':
      properties.KmsKeyId = choose('HasKmsKey', ref('kmsKeyArn'), NO_VALUE);
      return;
    case 'AWS::DynamoDB::Table':
      properties.SSESpecification = choose(
        'HasKmsKey',
        { SSEEnabled: true, SSEType: 'KMS', KMSMasterKeyId: ref('kmsKeyArn') },
        properties.SSESpecification ?? NO_VALUE,
      );
      return;
    case 'AWS::SQS::Queue':
      properties.KmsMasterKeyId = choose('HasKmsKey', ref('kmsKeyArn'), NO_VALUE);
      properties.SqsManagedSseEnabled = choose('HasKmsKey', NO_VALUE, true);
      return;
    case 'AWS::ApiGatewayV2::Stage':
      Object.assign(properties, API_STAGE);
      return;
    case 'AWS::CloudWatch::Alarm':
      properties.OKActions = [choose('NotifyOk', ref('alarmOkTopicArn'), NO_VALUE)];
      return;
    case 'AWS::S3::Bucket':
      if (properties.BucketName)
        properties.BucketEncryption = choose('HasBucketKmsKey', BUCKET_KEY, properties.BucketEncryption ?? NO_VALUE);
  }
}

const FUNCTION: Properties = {
  KmsKeyArn: choose('HasKmsKey', ref('kmsKeyArn'), NO_VALUE),
  TracingConfig: { Mode: ref('tracing') },
  LoggingConfig: { LogFormat: ref('logFormat') },
  VpcConfig: choose(
    'InVpc',
    { SubnetIds: list('vpcSubnetIds'), SecurityGroupIds: list('vpcSecurityGroupIds') },
    NO_VALUE,
  ),
};

const API_STAGE: Properties = {
  AccessLogSettings: choose(
    'LogsAccess',
    { DestinationArn: { 'Fn::GetAtt': ['AccessLogGroup', 'Arn'] }, Format: JSON.stringify(ACCESS_LOG) },
    NO_VALUE,
  ),
  DefaultRouteSettings: {
    DetailedMetricsEnabled: false,
    ThrottlingRateLimit: ref('throttlingRate'),
    ThrottlingBurstLimit: ref('throttlingBurst'),
  },
};

const BUCKET_KEY: Json = {
  ServerSideEncryptionConfiguration: [
    {
      ServerSideEncryptionByDefault: { SSEAlgorithm: 'aws:kms', KMSMasterKeyID: ref('bucketKmsKeyArn') },
      BucketKeyEnabled: true,
    },
  ],
};

const allow = (actions: string[], resource: Json): Json => ({ Effect: 'Allow', Action: actions, Resource: resource });

/** Through DynamoDB, SQS and Lambda a caller uses the key with its own permissions. */
const USE_KEY = ['Encrypt', 'Decrypt', 'ReEncryptFrom', 'ReEncryptTo', 'GenerateDataKey', 'DescribeKey'].map(
  (action) => `kms:${action}`,
);

const NETWORK_INTERFACES = [
  'CreateNetworkInterface',
  'DescribeNetworkInterfaces',
  'DescribeSubnets',
  'DeleteNetworkInterface',
  'AssignPrivateIpAddresses',
  'UnassignPrivateIpAddresses',
].map((action) => `ec2:${action}`);

/** What each function may do besides its own work, where a parameter needs it. */
const STATEMENTS: Json[] = [
  choose('HasKmsKey', allow(USE_KEY, ref('kmsKeyArn')), NO_VALUE),
  choose('HasBucketKmsKey', allow(['kms:Decrypt', 'kms:GenerateDataKey'], ref('bucketKmsKeyArn')), NO_VALUE),
  // Neither service has resources for these actions.
  choose('Traces', allow(['xray:PutTraceSegments', 'xray:PutTelemetryRecords'], '*'), NO_VALUE),
  choose('InVpc', allow(NETWORK_INTERFACES, '*'), NO_VALUE),
];

const isOfFunction = ({ AssumeRolePolicyDocument }: Properties): boolean =>
  JSON.stringify(AssumeRolePolicyDocument).includes('lambda.amazonaws.com');

function statementsOf({ Policies }: Properties): Json[] {
  const [{ PolicyDocument }] = Policies as [{ PolicyDocument: { Statement: Json[] } }];
  return PolicyDocument.Statement;
}
