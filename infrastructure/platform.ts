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

/** Adds what platform teams ask for: boundaries, keys, a VPC, logs, a domain and throttling. Each has a parameter that is off, or safe, by default. */
export function applyPlatformParameters(template: CloudFormationTemplate): void {
  Object.assign(template.Conditions, CONDITIONS);
  Object.assign(template.Resources, RESOURCES, { Dashboard: dashboard(template) });
  for (const resource of Object.values(template.Resources)) applyTo(resource);
  logOperators(template);
  throttleLists(template);
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
  ThrottlesLists: equals('throttleLists', 'true'),
  DisablesEndpoint: equals('disableExecuteApiEndpoint', 'true'),
  HasHostedZone: { 'Fn::And': [isGiven('domainName'), isGiven('hostedZoneId')] },
};

/** What API Gateway logs about a request. The path shows the namespace. */
const ACCESS_LOG = {
  time: '$context.requestTime',
  requestId: '$context.requestId',
  integrationRequestId: '$context.integration.requestId', // equals the traceId in the log line of the function
  route: '$context.routeKey',
  path: '$context.path',
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

function applyTo({ Type, Properties: properties = {} }: TemplateResource): void {
  switch (Type) {
    case 'AWS::IAM::Role':
      properties.PermissionsBoundary = choose('HasBoundary', ref('permissionsBoundaryArn'), NO_VALUE);
      if (isOf('lambda', properties)) statementsOf(properties).push(...platformStatements(statementsOf(properties)));
      if (isOf('states', properties)) statementsOf(properties).push(choose('Traces', SAMPLED_TRACES, NO_VALUE));
      return;
    case 'AWS::StepFunctions::StateMachine':
      properties.TracingConfiguration = { Enabled: choose('Traces', true, false) };
      return;
    case 'AWS::ApiGatewayV2::Api':
      properties.DisableExecuteApiEndpoint = choose('DisablesEndpoint', true, false);
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

const allow = (actions: string[], resource: Json) => ({ Effect: 'Allow', Action: actions, Resource: resource });

/** DynamoDB demands these of each principal that reads or writes a table with its own key. */
const USE_TABLE_KEY = ['Encrypt', 'ReEncryptFrom', 'ReEncryptTo', 'GenerateDataKey', 'DescribeKey'].map(
  (action) => `kms:${action}`,
);

const through = (service: string, statement: Properties): Json => ({
  ...statement,
  Condition: { StringEquals: { 'kms:ViaService': sub(`${service}.\${AWS::Region}.\${AWS::URLSuffix}`) } },
});

const NETWORK_INTERFACES = [
  'CreateNetworkInterface',
  'DescribeNetworkInterfaces',
  'DescribeSubnets',
  'DeleteNetworkInterface',
  'AssignPrivateIpAddresses',
  'UnassignPrivateIpAddresses',
].map((action) => `ec2:${action}`);

/** For these actions, X-Ray and EC2 accept only `*` as the resource. */
const TRACES = allow(['xray:PutTraceSegments', 'xray:PutTelemetryRecords'], '*');
/** Step Functions must ask which executions to trace. Lambda asks for itself. */
const SAMPLED_TRACES = allow([...TRACES.Action, 'xray:GetSamplingRules', 'xray:GetSamplingTargets'], '*');

/** What a function must be allowed besides its own work, if a parameter is set. @param own the statements for that work, which are narrowed */
function platformStatements(own: Json[]): Json[] {
  const allowed = (own as Properties[]).filter(({ Effect }) => Effect === 'Allow');
  const actionsOf = ({ Action }: Properties) => [Action].flat() as string[];
  const ofBucket = allowed.filter((statement) => actionsOf(statement).some((action) => action.startsWith('s3:')));
  // After a bucket is deleted, another account may take its name. But a bucket that a parameter names may belong to another account on purpose.
  for (const statement of ofBucket)
    statement.Condition = choose(
      'CreateBucket',
      { StringEquals: { 'aws:ResourceAccount': ref('AWS::AccountId') } },
      NO_VALUE,
    );
  const may = (one: string) => allowed.flatMap(actionsOf).some((action) => action.startsWith(one));
  const [key, bucketKey] = [ref('kmsKeyArn'), ref('bucketKmsKeyArn')];
  // Lambda decrypts the environment, and SQS the messages, with the rights of the function.
  const ofKey = [
    allow(['kms:Decrypt'], key),
    ...(may('dynamodb:') ? [through('dynamodb', allow(USE_TABLE_KEY, key))] : []),
    ...(may('sqs:SendMessage') ? [through('sqs', allow(['kms:GenerateDataKey'], key))] : []),
  ];
  // An upload in parts decrypts the parts that it has written.
  const ofBucketKey = may('s3:PutObject') ? ['kms:Decrypt', 'kms:GenerateDataKey'] : ['kms:Decrypt'];
  return [
    ...ofKey.map((statement) => choose('HasKmsKey', statement, NO_VALUE)),
    ...(ofBucket.length > 0 ? [choose('HasBucketKmsKey', allow(ofBucketKey, bucketKey), NO_VALUE)] : []),
    choose('Traces', TRACES, NO_VALUE),
    choose('InVpc', allow(NETWORK_INTERFACES, '*'), NO_VALUE),
  ];
}

const isOf = (service: string, { AssumeRolePolicyDocument }: Properties): boolean =>
  JSON.stringify(AssumeRolePolicyDocument).includes(`${service}.amazonaws.com`);

function statementsOf({ Policies }: Properties): Json[] {
  const [{ PolicyDocument }] = Policies as [{ PolicyDocument: { Statement: Json[] } }];
  return PolicyDocument.Statement;
}

/**
 * The routes whose function scans up to a megabyte of a table in a call, or reads up to twenty objects of a report. The list of the
 * nameservice is not among them: it reads an index, and every reader of a ledger finds aliases on the same route.
 */
const LISTS = ['/leases', '/once', '/rates', '/commits/in-flight', '/expired'].flatMap((path) => [
  `GET /v1${path}`,
  `GET /v1/ns/{ns}${path}`,
]);

/**
 * Numbers instead of parameters, because CloudFormation does not know the types in RouteSettings and would pass a parameter on as text. If `false`, the
 * limits are set to the default quotas of an account: CloudFormation may keep settings that a template no longer has.
 */
const LIST_THROTTLE = choose(
  'ThrottlesLists',
  { ThrottlingRateLimit: 200, ThrottlingBurstLimit: 200 },
  { ThrottlingRateLimit: 10000, ThrottlingBurstLimit: 5000 },
);

/** API Gateway accepts settings only for routes that exist, so the stage must be created after them. */
function throttleLists({ Resources }: CloudFormationTemplate): void {
  const { Properties: stage = {}, ...resource } = Resources.HttpApiStage ?? {};
  stage.RouteSettings = Object.fromEntries(LISTS.map((route) => [route, LIST_THROTTLE]));
  const ids = Object.entries(Resources).flatMap(([id, { Properties = {} }]) =>
    LISTS.includes(String(Properties.RouteKey)) ? [id] : [],
  );
  if (ids.length !== LISTS.length) throw new Error('a route of LISTS is not in the template');
  Resources.HttpApiStage = { ...resource, Type: 'AWS::ApiGatewayV2::Stage', DependsOn: ids, Properties: stage };
}

/** Sends the log of a function to the log of operators, if the role of the function may write there. */
function logOperators({ Resources }: CloudFormationTemplate): void {
  for (const { Type, Properties: properties = {} } of Object.values(Resources)) {
    if (Type !== 'AWS::Lambda::Function') continue;
    const [role = ''] = Object(properties.Role)['Fn::GetAtt'] as string[];
    if (JSON.stringify(Resources[role]).includes('AuditLogGroup'))
      properties.LoggingConfig = { ...Object(properties.LoggingConfig), LogGroup: ref('AuditLogGroup') };
  }
}
