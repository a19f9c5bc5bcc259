import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { beforeAll, describe, expect, inject, it } from 'vitest';
import { readService } from '../local/service.ts';
import { EVENT_SOURCE, EVENT_TYPE } from '../shared/expiry/events.ts';
import {
  created,
  namesInZip,
  npmRunPackage,
  type Packaged,
  packageWith,
  type Resource,
  readTemplate,
  type Template,
} from './support/packaging.ts';

const { functions } = await readService();
const STAGE = 'dev'; // the default of `npm run package`
const TABLES = {
  leases: `holdfast-${STAGE}-leases`,
  waiters: `holdfast-${STAGE}-waiters`,
  commits: `holdfast-${STAGE}-commits`,
  nameservice: `holdfast-${STAGE}-nameservice`,
};
const BUCKET = `holdfast-${STAGE}-\${AWS::AccountId}-\${AWS::Region}`;
const bucketArn = (name: string, objects = '') => ({ 'Fn::Sub': `arn:\${AWS::Partition}:s3:::${name}${objects}` });
/** By the folder of their functions. */
const CAPABILITIES = ['leases', 'commits', 'nameservice', 'expiry'] as const;
/** Those with a table of their own. */
const WITH_TABLE = ['leases', 'commits', 'nameservice'] as const;
type Capability = (typeof CAPABILITIES)[number];
const functionsOf = (capability: Capability) =>
  functions.filter(({ bundle }) => bundle.startsWith(`dist/${capability}/`));
const capabilityOf = (name: string): Capability =>
  CAPABILITIES.find((capability) => functionsOf(capability).some((one) => one.name === name)) ?? 'leases';
const tableArn = (name: string) => ({
  'Fn::Sub': `arn:\${AWS::Partition}:dynamodb:\${AWS::Region}:\${AWS::AccountId}:table/${name}`,
});

/** Those of leases that have an alarm of their own, for one takes ten metrics. */
const QUEUE = ['cancelWaiter', 'repairQueues', 'executionEnded'];

/** Who may call must be said, and completely. */
const REFUSED: Record<string, string>[] = [
  { AUTH: 'none' },
  { AUTH: 'jwt', JWT_AUDIENCE: 'holdfast' },
  { AUTH: 'jwt', JWT_ISSUER: 'https://issuer.example' },
];
const refusals = new Map<object, Promise<Packaged>>();

let packaged: Packaged;
let template: Template;

beforeAll(async () => {
  const offered = npmRunPackage(); // what is refused needs nothing that is built
  for (const settings of REFUSED) refusals.set(settings, packageWith([], settings));
  packaged = await offered;
  if (packaged.exitCode === 0) template = await readTemplate('.serverless');
}, 130_000);

const ofType = (type: string, from: Template = template): [string, Resource][] =>
  Object.entries(created(from)).filter(([, { Type }]) => Type === type);

const lambdas = (from?: Template) =>
  ofType('AWS::Lambda::Function', from).map(([logicalId, { Properties }]) => ({
    logicalId,
    name: String(Properties.FunctionName).replace(`holdfast-${STAGE}-`, ''),
    ...Properties,
  }));

const roles = (from?: Template) => {
  const byId = new Map(ofType('AWS::IAM::Role', from));
  return lambdas(from).map(({ name, FunctionName, Role }) => {
    const [id] = Role['Fn::GetAtt'];
    return { name, FunctionName, id, role: byId.get(id)?.Properties, statements: statements(byId.get(id)) };
  });
};

interface Statement {
  Effect: string;
  Action: string[];
  Resource: unknown;
}

const statements = (role: Resource | undefined): Statement[] =>
  role?.Properties.Policies.flatMap((policy: { PolicyDocument: { Statement: Statement[] } }) =>
    policy.PolicyDocument.Statement.map((statement) => ({ ...statement, Action: [statement.Action].flat() })),
  );

const isPermission = ({ Effect }: Statement) => Effect === 'Allow';

/** Sending to the event bus, and to the queue of events that a function failed at. */
const isOfEvents = ({ Action }: Statement) =>
  Action.every((action) => action === 'events:PutEvents' || action === 'sqs:SendMessage');

const isLogs = ({ Action }: Statement) => Action.every((action) => action.startsWith('logs:'));

describe('npm run package', () => {
  it('works without network and without credentials, and has nothing to complain of', () => {
    expect(packaged.output).toContain('Service packaged');
    expect(packaged.exitCode).toBe(0);
    expect(packaged.connections).toBe('');
    // What npm itself says depends on the machine.
    const output = packaged.output.replaceAll(/^npm .*$/gm, '');
    // A copy or a report that outlasts the gateway is finished by the function: on purpose.
    const outlasts = /^Warning: Function \((commit|report|clean)\) timeout setting \(300\) is greater than .*$/gm;
    expect(output.replace(outlasts, '')).not.toMatch(/warn|deprecat/i);
  });

  it.each(functions)('zips of $name only what its function loads', async ({ name, bundle }) => {
    const zipped = namesInZip(`.serverless/${name}.zip`);
    const built = await readdir(bundle);
    const scripts = built.filter((file) => file.endsWith('.mjs'));
    expect(scripts).toContain('index.mjs');
    expect(built).toContain('index.mjs.map');
    expect(zipped.sort()).toEqual(scripts.map((file) => join(bundle, file)).sort());
  });
});

/** Packaged once, with everything otherwise than by default. */
let other: ReturnType<typeof packageWith> | undefined;
const configured = () => {
  const settings = { AUTH: 'jwt', JWT_ISSUER: 'https://issuer.example', JWT_AUDIENCE: 'holdfast' };
  const parameters = [
    '--param=exclusiveTargets=nightly-*',
    '--param=leasesTable=shared-leases',
    '--param=waitersTable=shared-waiters',
    '--param=commitsTable=shared-commits',
    '--param=nameserviceTable=shared-names',
    '--param=bucket=shared-bucket',
    '--param=reportSchedule=rate(1 hour)',
    '--param=autoClean=true',
  ];
  other ??= packageWith(parameters, settings);
  return other;
};

describe('the tables', () => {
  it('are on demand, can be restored, are encrypted, and stay when the service goes; leases expire', () => {
    const kept = { DeletionPolicy: 'RetainExceptOnCreate', UpdateReplacePolicy: 'Retain' };
    const common = {
      BillingMode: 'PAY_PER_REQUEST',
      PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true },
      SSESpecification: { SSEEnabled: true },
    };
    const byExecution = {
      IndexName: 'by-execution',
      KeySchema: [
        { AttributeName: 'execution', KeyType: 'HASH' },
        { AttributeName: 'key', KeyType: 'RANGE' },
      ],
      Projection: { ProjectionType: 'KEYS_ONLY' },
    };
    const tables = ofType('AWS::DynamoDB::Table').filter(([id]) => id !== 'CommitsTable'); // further down
    expect(tables).toEqual([
      [
        'LeasesTable',
        {
          Type: 'AWS::DynamoDB::Table',
          Condition: 'CreateLeasesTable',
          ...kept,
          Properties: {
            ...common,
            TableName: TABLES.leases,
            AttributeDefinitions: ['key', 'execution'].map((AttributeName) => ({ AttributeName, AttributeType: 'S' })),
            KeySchema: [{ AttributeName: 'key', KeyType: 'HASH' }],
            GlobalSecondaryIndexes: [byExecution],
            TimeToLiveSpecification: { AttributeName: 'lease_expiry', Enabled: true },
          },
        },
      ],
      [
        'WaitersTable',
        {
          Type: 'AWS::DynamoDB::Table',
          Condition: 'CreateWaitersTable',
          ...kept,
          Properties: {
            ...common,
            TableName: TABLES.waiters,
            AttributeDefinitions: ['key', 'ticket', 'execution'].map((AttributeName) => ({
              AttributeName,
              AttributeType: 'S',
            })),
            KeySchema: [
              { AttributeName: 'key', KeyType: 'HASH' },
              { AttributeName: 'ticket', KeyType: 'RANGE' },
            ],
            GlobalSecondaryIndexes: [byExecution],
            TimeToLiveSpecification: { AttributeName: 'ttl', Enabled: true },
          },
        },
      ],
      [
        'NameserviceTable',
        {
          Type: 'AWS::DynamoDB::Table',
          Condition: 'CreateNameserviceTable',
          ...kept,
          Properties: {
            ...common,
            TableName: TABLES.nameservice,
            AttributeDefinitions: ['pk', 'sk', 'kind'].map((AttributeName) => ({ AttributeName, AttributeType: 'S' })),
            KeySchema: [
              { AttributeName: 'pk', KeyType: 'HASH' },
              { AttributeName: 'sk', KeyType: 'RANGE' },
            ],
            GlobalSecondaryIndexes: [
              {
                IndexName: 'gsi1-kind',
                KeySchema: [
                  { AttributeName: 'kind', KeyType: 'HASH' },
                  { AttributeName: 'pk', KeyType: 'RANGE' },
                ],
                Projection: {
                  ProjectionType: 'INCLUDE',
                  NonKeyAttributes: ['name', 'branch', 'source_type', 'dependencies', 'retracted'],
                },
              },
            ],
          },
        },
      ],
    ]);
  });

  it('are existing ones where the deployment names them', async () => {
    const shared = await configured();
    const targets = statements(created(shared.template).ExclusiveStateMachineRole).flatMap(({ Resource }) => Resource);
    for (const resource of ['stateMachine:nightly-*', 'execution:nightly-*:*'])
      expect(JSON.stringify(targets)).toContain(`:${resource}"`);
    expect(shared.output).toContain('Service packaged');
    expect(ofType('AWS::DynamoDB::Table', shared.template)).toEqual([]);
    expect(lambdas(shared.template)).toHaveLength(functions.length);
    const names = {
      leases: 'shared-leases',
      waiters: 'shared-waiters',
      commits: 'shared-commits',
      nameservice: 'shared-names',
    };
    for (const { Environment } of lambdas(shared.template))
      expect(Environment.Variables).toMatchObject({
        LEASES_TABLE: names.leases,
        WAITERS_TABLE: names.waiters,
        COMMITS_TABLE: names.commits,
        NAMESERVICE_TABLE: names.nameservice,
        BUCKET: { 'Fn::Sub': 'shared-bucket' },
      });
    for (const id of ['Bucket', 'BucketPolicy']) expect(created(shared.template)).not.toHaveProperty(id);
    for (const { name, statements } of roles(shared.template))
      for (const { Resource } of statements.filter((one) => isPermission(one) && !isLogs(one) && !isOfEvents(one)))
        expect(resources(capabilityOf(name), names, 'shared-bucket')).toContainEqual([Resource].flat()[0]);
    expect(shared.template.Outputs.LeasesTableName?.Value).toBe(names.leases);
    expect(shared.template.Outputs.NameserviceTableName?.Value).toBe(names.nameservice);
    for (const own of [...Object.values(TABLES), BUCKET])
      expect(JSON.stringify(created(shared.template))).not.toContain(own);
  }, 60_000);
});

/** The table and the index of the nameservice's, or the table and what commits need of the bucket. */
const resources = (capability: Capability, tables = TABLES, bucket = BUCKET) =>
  ({
    leases: [
      ...[tables.leases, tables.waiters].flatMap((table) => [tableArn(table), tableArn(`${table}/index/by-execution`)]),
      '*',
      { 'Fn::Sub': `arn:\${AWS::Partition}:states:\${AWS::Region}:\${AWS::AccountId}:execution:*` },
      { 'Fn::GetAtt': ['ExecutionEndedQueue', 'Arn'] },
    ],
    commits: [
      tableArn(tables.commits),
      ...['', '/*', '/.holdfast/staging/*'].map((objects) => bucketArn(bucket, objects)),
    ],
    nameservice: [tableArn(tables.nameservice), tableArn(`${tables.nameservice}/index/gsi1-kind`)],
    expiry: [
      ...[tables.leases, tables.commits, tables.nameservice, tables.waiters].map(tableArn),
      ...['', '/.holdfast/reports/*', '/.holdfast/staging/*'].map((objects) => bucketArn(bucket, objects)),
    ],
  })[capability];

describe('the commits table and the bucket', () => {
  it('are in the format of object_store, and retained', () => {
    expect(created(template).CommitsTable).toMatchObject({
      DeletionPolicy: 'RetainExceptOnCreate',
      UpdateReplacePolicy: 'Retain',
      Properties: {
        TableName: TABLES.commits,
        BillingMode: 'PAY_PER_REQUEST',
        AttributeDefinitions: [
          { AttributeName: 'path', AttributeType: 'S' },
          { AttributeName: 'etag', AttributeType: 'S' },
        ],
        KeySchema: [
          { AttributeName: 'path', KeyType: 'HASH' },
          { AttributeName: 'etag', KeyType: 'RANGE' },
        ],
        TimeToLiveSpecification: { AttributeName: 'ttl', Enabled: true },
        PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true },
        SSESpecification: { SSEEnabled: true },
      },
    });
    expect(created(template).Bucket).toMatchObject({
      DeletionPolicy: 'RetainExceptOnCreate',
      UpdateReplacePolicy: 'Retain',
    });
  });

  it('the bucket keeps versions, is encrypted, and lets in nobody from outside or without TLS', () => {
    expect(created(template).Bucket?.Properties).toMatchObject({
      BucketName: { 'Fn::Sub': BUCKET },
      VersioningConfiguration: { Status: 'Enabled' },
      BucketEncryption: {
        ServerSideEncryptionConfiguration: [{ ServerSideEncryptionByDefault: { SSEAlgorithm: 'AES256' } }],
      },
      PublicAccessBlockConfiguration: {
        BlockPublicAcls: true,
        BlockPublicPolicy: true,
        IgnorePublicAcls: true,
        RestrictPublicBuckets: true,
      },
    });
    expect(created(template).BucketPolicy?.Properties.PolicyDocument.Statement).toEqual([
      {
        Sid: 'TlsOnly',
        Effect: 'Deny',
        Principal: '*',
        Action: 's3:*',
        Resource: [{ 'Fn::GetAtt': ['Bucket', 'Arn'] }, { 'Fn::Sub': `\${Bucket.Arn}/*` }],
        Condition: { Bool: { 'aws:SecureTransport': 'false' } },
      },
    ]);
  });

  it('what the service leaves in the bucket ends, and what callers commit does not', () => {
    const rules: { Prefix?: string; AbortIncompleteMultipartUpload?: object }[] =
      created(template).Bucket?.Properties.LifecycleConfiguration.Rules;
    for (const prefix of ['.holdfast/staging/', '.holdfast/reports/'])
      expect(rules.find(({ Prefix }) => Prefix === prefix)).toMatchObject({
        Status: 'Enabled',
        ExpirationInDays: expect.any(Number),
        NoncurrentVersionExpiration: { NoncurrentDays: 1 },
      });
    const ofEverything = rules.filter(({ Prefix }) => Prefix === undefined);
    expect(ofEverything).toEqual([
      { Id: 'unfinished-uploads', Status: 'Enabled', AbortIncompleteMultipartUpload: { DaysAfterInitiation: 1 } },
    ]);
    for (const { Prefix = '.holdfast/' } of rules) expect(Prefix).toMatch(/^\.holdfast\//);
  });
});

describe('functions', () => {
  it('are those of serverless.yml, on Node 24 and arm64, with logs that end', () => {
    expect(lambdas().map(({ name }) => name)).toEqual(functions.map(({ name }) => name));
    for (const { FunctionName, Runtime, Architectures, Handler, DependsOn: _, ...rest } of lambdas()) {
      expect(Runtime, FunctionName).toBe('nodejs24.x');
      expect(Architectures, FunctionName).toEqual(['arm64']);
      expect(Handler, FunctionName).toMatch(/^dist\/.*\/index\.handler$/);
      expect(FunctionName.length).toBeLessThanOrEqual(64);
      expect(rest.Environment.Variables).toMatchObject({
        LEASES_TABLE: TABLES.leases,
        NAMESERVICE_TABLE: TABLES.nameservice,
      });
      const [, group] = ofType('AWS::Logs::LogGroup').find(
        ([, { Properties }]) => Properties.LogGroupName === `/aws/lambda/${FunctionName}`,
      ) ?? ['', undefined];
      expect(group?.Properties.RetentionInDays, FunctionName).toBe(30);
    }
  });

  it('have each a role of its own, and there is no other', () => {
    const used = roles().map(({ id }) => id);
    expect(new Set(used).size).toBe(functions.length);
    expect(
      ofType('AWS::IAM::Role')
        .map(([id]) => id)
        .sort(),
    ).toEqual([...used, 'ExclusiveStateMachineRole'].sort());
    for (const { role } of roles()) {
      expect(role.ManagedPolicyArns).toEqual([]);
      expect(role.AssumeRolePolicyDocument.Statement).toEqual([
        { Effect: 'Allow', Principal: { Service: ['lambda.amazonaws.com'] }, Action: ['sts:AssumeRole'] },
      ]);
    }
    expect(ofType('AWS::IAM::Policy')).toEqual([]);
    expect(ofType('AWS::IAM::ManagedPolicy')).toEqual([]);
  });

  it('may use the tables and indexes of their capability and their own log group, commits the bucket, and reports all of it', () => {
    for (const { name, FunctionName, statements } of roles()) {
      const ownLogs = `arn:\${AWS::Partition}:logs:\${AWS::Region}:\${AWS::AccountId}:log-group:/aws/lambda/${FunctionName}:*:*`;
      for (const statement of statements.filter(isPermission)) {
        expect(statement.Action.join()).not.toContain('*');
        // The names of log streams are Lambda's own and not known before.
        const capability = capabilityOf(name);
        const [table, ...others] = resources(capability);
        if (isLogs(statement)) expect(statement.Resource).toEqual([{ 'Fn::Sub': ownLogs }]);
        else if (isOfEvents(statement)) expect(capability, name).toBe('expiry');
        else if (name === 'readNames' || capability !== 'nameservice')
          expect([table, ...others]).toContainEqual([statement.Resource].flat()[0]);
        else expect(statement.Resource).toEqual(table);
        // Only a task's token names it, and IAM does not see that.
        if (statement.Resource === '*')
          expect(['states:SendTaskSuccess', 'states:SendTaskFailure']).toEqual(
            expect.arrayContaining(statement.Action),
          );
      }
    }
  });

  it('are denied nothing but commits the writing of what is the service’s own', () => {
    const denied = roles().flatMap(({ name, statements }) =>
      statements.filter((one) => !isPermission(one)).map((statement) => ({ name, ...statement })),
    );
    expect(denied).toEqual([
      { name: 'commit', Effect: 'Deny', Action: ['s3:PutObject'], Resource: bucketArn(BUCKET, '/.holdfast/*') },
    ]);
  });

  it('may do exactly what they were seen to do in the tests before', async () => {
    const seen = inject('seenCommands');
    const noted = await readdir(seen);
    const unseen = functions.map(({ name }) => name).filter((name) => !noted.includes(name));
    expect(
      unseen,
      'functions that sent nothing: the tests that call every function must run before this one. Run the whole `npm test`',
    ).toEqual([]);
    for (const { name, statements } of roles()) {
      const commands = new Set((await readFile(join(seen, name), 'utf8')).trim().split('\n'));
      // What a function failed at, Lambda itself sends to the queue, in the function's role.
      const allowed = statements
        .filter((one) => isPermission(one) && !isLogs(one))
        .flatMap(({ Action }) => Action.filter((action) => action !== 'sqs:SendMessage'));
      const needed = new Set([...commands].flatMap(actionsOf).concat(polled(name)));
      expect([...new Set(allowed)].sort(), name).toEqual([...needed].sort());
    }
  });
});

/** What Lambda does in the name of a function, with the queue that it takes messages from. */
const polled = (name: string) =>
  name === 'executionEnded' ? ['sqs:ReceiveMessage', 'sqs:DeleteMessage', 'sqs:GetQueueAttributes'] : [];

/** `DynamoDB:PutItem` needs `dynamodb:PutItem`; a transaction needs what its parts need. */
function actionsOf(command: string): string[] {
  if (command === 'DynamoDB:TransactWriteItems')
    return ['dynamodb:PutItem', 'dynamodb:UpdateItem', 'dynamodb:ConditionCheckItem'];
  return (
    OTHER_ACTIONS[command] ?? [command.replace(/^SFN/, 'states').replace(/^\w+/, (service) => service.toLowerCase())]
  );
}

/** S3 and EventBridge have other names for what they allow than for what they do. */
const OTHER_ACTIONS: Record<string, string[]> = {
  // Without the second, nothing there is 403 and not 404.
  'S3:HeadObject': ['s3:GetObject', 's3:ListBucket'],
  // As above.
  'S3:GetObject': ['s3:GetObject', 's3:ListBucket'],
  'S3:ListObjectsV2': ['s3:ListBucket'],
  'S3:PutObject': ['s3:PutObject'],
  'S3:CopyObject': ['s3:GetObject', 's3:PutObject'],
  'S3:CreateMultipartUpload': ['s3:PutObject'],
  'S3:UploadPartCopy': ['s3:GetObject', 's3:PutObject'],
  'S3:CompleteMultipartUpload': ['s3:PutObject'],
  'S3:AbortMultipartUpload': ['s3:AbortMultipartUpload'],
  'EventBridge:PutEvents': ['events:PutEvents'],
};

describe('the API', () => {
  const routes = (from?: Template) =>
    ofType('AWS::ApiGatewayV2::Route', from).map(([, { Properties }]) => {
      const { RouteKey, AuthorizationType, AuthorizerId, AuthorizationScopes } = Properties;
      return { RouteKey, AuthorizationType, AuthorizerId, AuthorizationScopes };
    });
  const routeKeys = functions.flatMap(({ routes }) => routes.map(({ method, path }) => `${method} ${path}`)).sort();

  it('lets in on every route those whom IAM lets in', () => {
    expect(
      routes()
        .map(({ RouteKey }) => RouteKey)
        .sort(),
    ).toEqual(routeKeys);
    for (const { RouteKey, AuthorizationType } of routes()) expect(AuthorizationType, RouteKey).toBe('AWS_IAM');
    expect(ofType('AWS::ApiGatewayV2::Authorizer')).toEqual([]);
  });

  it('asks on every route for a JWT where AUTH=jwt, and for a scope to break a lease, cancel a ticket, or clean', async () => {
    const jwt = await configured();
    expect(jwt.output).toContain('Service packaged');
    expect(ofType('AWS::ApiGatewayV2::Authorizer', jwt.template)).toMatchObject([
      [
        'HttpApiAuthorizerCallers',
        {
          Properties: {
            AuthorizerType: 'JWT',
            IdentitySource: ['$request.header.Authorization'],
            JwtConfiguration: { Issuer: 'https://issuer.example', Audience: ['holdfast'] },
          },
        },
      ],
    ]);
    expect(
      routes(jwt.template)
        .map(({ RouteKey }) => RouteKey)
        .sort(),
    ).toEqual(routeKeys);
    for (const { RouteKey, AuthorizationType, AuthorizerId, AuthorizationScopes } of routes(jwt.template)) {
      expect(AuthorizationType, RouteKey).toBe('JWT');
      expect(AuthorizerId, RouteKey).toEqual({ Ref: 'HttpApiAuthorizerCallers' });
      const scopes: Record<string, string[]> = {
        'POST /v1/leases/break': ['holdfast/leases.break'],
        'POST /v1/leases/cancel': ['holdfast/leases.break'],
        'POST /v1/expired/clean': ['holdfast/expired.clean'],
      };
      expect(AuthorizationScopes, RouteKey).toEqual(scopes[RouteKey]);
    }
  });

  it.each(REFUSED)('is not packaged with %o', async (settings) => {
    const { exitCode, output } = (await refusals.get(settings)) as Packaged;
    expect(exitCode).toBe(1);
    const missing = { none: 'httpApi.authorizer', jwt: settings.JWT_ISSUER ? 'jwtAudience' : 'jwtIssuer' };
    expect(output).toContain('Cannot resolve variable');
    expect(output).toContain(missing[settings.AUTH as keyof typeof missing]);
  });
});

describe('alarms', () => {
  interface Query {
    Id: string;
    Expression?: string;
    ReturnData?: boolean;
    MetricStat?: { Metric: { Namespace: string; MetricName: string; Dimensions: { Name: string; Value: unknown }[] } };
  }
  const alarms = () => ofType('AWS::CloudWatch::Alarm').map(([id, { Properties }]) => ({ id, ...Properties }));
  const queries = (id: string): Query[] => alarms().find((alarm) => alarm.id === id)?.Metrics ?? [];
  const metrics = (id: string) => queries(id).flatMap(({ MetricStat }) => MetricStat?.Metric ?? []);
  const refs = (capability: Capability, watched = functionsOf(capability)) => {
    const names = watched.map(({ name }) => name);
    return lambdas().flatMap(({ name, logicalId }) => (names.includes(name) ? [{ Ref: logicalId }] : []));
  };

  it.each([
    ['leases', 'LeaseErrorsAlarm', (name: string) => !QUEUE.includes(name)],
    ['leases', 'QueueErrorsAlarm', (name: string) => QUEUE.includes(name)],
    ['commits', 'CommitErrorsAlarm', () => true],
    ['nameservice', 'NameserviceErrorsAlarm', () => true],
    ['expiry', 'ExpiryErrorsAlarm', () => true],
  ] as const)(
    'exist for crashes of every function of %s, less the errors that tasks are told by: %s',
    (capability, id, isWatched) => {
      const functions = functionsOf(capability).filter(({ name }) => isWatched(name));
      const errors = metrics(id).filter(({ Namespace }) => Namespace === 'AWS/Lambda');
      expect(errors.map(({ MetricName }) => MetricName)).toEqual(functions.map(() => 'Errors'));
      expect(errors.map(({ Dimensions }) => Dimensions)).toEqual(
        refs(capability, functions).map((Value) => [{ Name: 'FunctionName', Value }]),
      );
      const told = metrics(id).filter(({ Namespace }) => Namespace === 'Holdfast');
      expect(told.map(({ MetricName }) => MetricName)).toEqual(functions.map(() => 'TaskFailures'));
      expect(told.map(({ Dimensions }) => Dimensions)).toEqual(
        functions.map(({ name }) => [
          { Name: 'service', Value: `holdfast-${STAGE}` },
          { Name: 'function', Value: name },
        ]),
      );
    },
  );

  it('exist for faults, for throttled functions and for throttled tables', () => {
    expect(alarms().find(({ id }) => id === 'FaultsAlarm')).toMatchObject({
      Namespace: 'Holdfast',
      MetricName: 'Faults',
      Dimensions: [{ Name: 'service', Value: `holdfast-${STAGE}` }],
    });
    const throttledOf = (id: string) => metrics(id).map(({ MetricName, Dimensions }) => [MetricName, Dimensions]);
    const readAndWrite = (dimensions: object) => [
      ['ReadThrottleEvents', dimensions],
      ['WriteThrottleEvents', dimensions],
    ];
    const byFunction = {
      leases: 'LeaseThrottlesAlarm',
      commits: 'CommitThrottlesAlarm',
      nameservice: 'NameserviceThrottlesAlarm',
      expiry: 'ExpiryThrottlesAlarm',
    };
    const byTable = {
      leases: 'LeasesTableThrottlesAlarm',
      commits: 'CommitsTableThrottlesAlarm',
      nameservice: 'NameserviceTableThrottlesAlarm',
    };
    for (const capability of CAPABILITIES) {
      const throttles = metrics(byFunction[capability]);
      expect(throttles.map(({ MetricName }) => MetricName)).toEqual(functionsOf(capability).map(() => 'Throttles'));
      expect(throttles.map(({ Dimensions }) => Dimensions[0]?.Value)).toEqual(refs(capability));
    }
    for (const capability of WITH_TABLE) {
      const table = [{ Name: 'TableName', Value: TABLES[capability] }];
      const Value = capability === 'nameservice' ? 'gsi1-kind' : 'by-execution';
      const index = [...table, { Name: 'GlobalSecondaryIndexName', Value }];
      expect(throttledOf(byTable[capability])).toEqual(
        (capability === 'commits' ? [table] : [table, index]).flatMap(readAndWrite),
      );
    }
    const waiters = [{ Name: 'TableName', Value: TABLES.waiters }];
    const index = [...waiters, { Name: 'GlobalSecondaryIndexName', Value: 'by-execution' }];
    expect(throttledOf('WaitersTableThrottlesAlarm')).toEqual([waiters, index].flatMap(readAndWrite));
  });

  it('fire at the first event, stay quiet without data, and notify only whom they are told to', async () => {
    for (const { id, ...alarm } of alarms()) {
      if (id !== 'ReportOverdueAlarm')
        expect(alarm, id).toMatchObject({
          Threshold: 0,
          ComparisonOperator: 'GreaterThanThreshold',
          TreatMissingData: 'notBreaching',
          EvaluationPeriods: 1,
        });
      expect(alarm.AlarmActions, id).toEqual([{ 'Fn::If': ['NotifyAlarms', '', { Ref: 'AWS::NoValue' }] }]);
    }
    expect(template.Conditions.NotifyAlarms).toEqual({ 'Fn::Not': [{ 'Fn::Equals': ['', ''] }] });
  });

  it('compute only with metrics that they declare, within the limits of CloudWatch', () => {
    const computed = alarms().filter(({ Metrics }) => Metrics);
    expect(computed).toHaveLength(2 * CAPABILITIES.length + WITH_TABLE.length + 2); // the queue's functions and table
    for (const { id } of computed) {
      const ids = queries(id).map((query) => query.Id);
      expect(new Set(ids).size, id).toBe(ids.length);
      for (const one of ids) expect(one).toMatch(/^[a-z]\w*$/);
      expect(
        queries(id).filter(({ ReturnData }) => ReturnData !== false),
        id,
      ).toHaveLength(1);
      // An alarm on metric math takes at most ten metrics.
      expect(metrics(id).length, id).toBeLessThanOrEqual(10);
      const inputs = queries(id).flatMap((query) => (query.MetricStat ? [query.Id] : []));
      const { Expression: expression = '' } = queries(id).find(({ ReturnData }) => ReturnData !== false) ?? {};
      const groups = [...expression.matchAll(/METRICS\("(\w+)"\)/g)].map(([, group]) => String(group));
      // METRICS("errors") stands for the metrics whose ids contain `errors`.
      const used = groups.flatMap((group) => inputs.filter((input) => input.includes(group)));
      expect(used.sort(), expression).toEqual(inputs.sort());
      const outside = expression.replaceAll(/METRICS\("\w+"\)/g, '').match(/[A-Za-z]\w*/g) ?? [];
      for (const word of outside) expect(['SUM', 'FILL'], expression).toContain(word);
    }
  });
});

describe('the state machine exclusive', () => {
  const arn = (service: string, resource: string) => ({
    'Fn::Sub': `arn:\${AWS::Partition}:${service}:\${AWS::Region}:\${AWS::AccountId}:${resource}`,
  });
  const functionArn = (id: string) => ({ 'Fn::GetAtt': [id, 'Arn'] });

  // The framework drops what is null, `"ResultPath": null` too: the file has none.
  it('is a Standard workflow of this file, over our functions, and logs nothing', async () => {
    expect(created(template).ExclusiveStateMachine?.Properties).toEqual({
      StateMachineName: `holdfast-${STAGE}-exclusive`,
      StateMachineType: 'STANDARD',
      RoleArn: functionArn('ExclusiveStateMachineRole'),
      Definition: JSON.parse(await readFile('functions/leases/exclusive.asl.json', 'utf8')),
      DefinitionSubstitutions: {
        Partition: { Ref: 'AWS::Partition' },
        AcquireFunctionArn: functionArn('AcquireLambdaFunction'),
        ReleaseFunctionArn: functionArn('ReleaseLambdaFunction'),
      },
      LoggingConfiguration: { Level: 'OFF', IncludeExecutionData: false },
    });
    expect(template.Outputs.ExclusiveStateMachineArn?.Value).toEqual({ Ref: 'ExclusiveStateMachine' });
  });

  it('may invoke two functions, and run any state machine of the account and region', () => {
    const role = created(template).ExclusiveStateMachineRole;
    expect(role?.Properties.AssumeRolePolicyDocument.Statement).toEqual([
      {
        Effect: 'Allow',
        Principal: { Service: ['states.amazonaws.com'] },
        Action: ['sts:AssumeRole'],
        Condition: { StringEquals: { 'aws:SourceAccount': { Ref: 'AWS::AccountId' } } },
      },
    ]);
    expect(statements(role)).toEqual([
      {
        Effect: 'Allow',
        Action: ['lambda:InvokeFunction'],
        Resource: [functionArn('AcquireLambdaFunction'), functionArn('ReleaseLambdaFunction')],
      },
      { Effect: 'Allow', Action: ['states:StartExecution'], Resource: arn('states', 'stateMachine:*') },
      {
        Effect: 'Allow',
        Action: ['states:DescribeExecution', 'states:StopExecution'],
        Resource: arn('states', 'execution:*:*'),
      },
      {
        Effect: 'Allow',
        Action: ['events:PutTargets', 'events:PutRule', 'events:DescribeRule'],
        Resource: arn('events', 'rule/StepFunctionsGetEventsForStepFunctionsExecutionRule'),
      },
    ]);
  });
});

describe('what EventBridge starts', () => {
  const ref = (name: string) => ({ 'Fn::GetAtt': [lambdas().find((one) => one.name === name)?.logicalId, 'Arn'] });
  /** Those that the queue needs are told of below. */
  const rules = (from?: Template) =>
    ofType('AWS::Events::Rule', from)
      .map(([, { Properties }]) => Properties)
      .filter(({ Targets: [{ Arn }] }) => ['report', 'clean'].some((name) => isDeepStrictEqual(Arn, ref(name))));

  it('is the report every fifteen minutes, or as the deployment says', async () => {
    const scheduled = rules().filter(({ ScheduleExpression }) => ScheduleExpression);
    expect(scheduled).toMatchObject([
      { ScheduleExpression: 'rate(15 minutes)', State: 'ENABLED', Targets: [{ Arn: ref('report') }] },
    ]);
    const otherwise = await configured();
    expect(rules(otherwise.template).map(({ ScheduleExpression, State }) => [ScheduleExpression, State])).toEqual([
      ['rate(1 hour)', 'ENABLED'],
      [undefined, 'ENABLED'],
    ]);
  });

  it('is the clean-up by the event of a report of this deployment, which is off by default', () => {
    expect(rules().filter(({ EventPattern }) => EventPattern)).toMatchObject([
      {
        EventPattern: {
          source: [EVENT_SOURCE],
          'detail-type': [EVENT_TYPE],
          detail: { service: [`holdfast-${STAGE}`] },
        },
        State: 'DISABLED',
        Targets: [{ Arn: ref('clean') }],
      },
    ]);
    const variables = lambdas().find(({ name }) => name === 'report')?.Environment.Variables;
    expect(variables.POWERTOOLS_SERVICE_NAME).toBe(`holdfast-${STAGE}`);
  });

  it('may start it, and what it fails at twice is kept, with an alarm', () => {
    const started = ['report', 'clean'];
    const permissions = ofType('AWS::Lambda::Permission').map(([, { Properties }]) => Properties);
    const mayStart = permissions.filter(({ Principal }) => Principal === 'events.amazonaws.com');
    const startable = mayStart.map(({ FunctionName }) => FunctionName);
    expect(startable).toEqual(expect.arrayContaining(started.map(ref)));
    const queue = { 'Fn::GetAtt': ['FailedEventsQueue', 'Arn'] };
    const kept = ofType('AWS::Lambda::EventInvokeConfig').map(([, { Properties }]) => Properties);
    expect(kept).toEqual(
      started.map((name) => ({
        FunctionName: { Ref: lambdas().find((one) => one.name === name)?.logicalId },
        Qualifier: '$LATEST',
        MaximumRetryAttempts: 1,
        MaximumEventAgeInSeconds: 600,
        DestinationConfig: { OnFailure: { Destination: queue } },
      })),
    );
    for (const { name, statements } of roles()) {
      const sends = statements.filter(({ Action }) => Action.includes('sqs:SendMessage'));
      expect(
        sends.map(({ Resource }) => Resource),
        name,
      ).toEqual(started.includes(name) ? [queue] : []);
    }
    expect(created(template).FailedEventsQueue).toMatchObject({
      Type: 'AWS::SQS::Queue',
      Properties: { SqsManagedSseEnabled: true, MessageRetentionPeriod: 14 * 86_400 },
    });
    expect(created(template).FailedEventsAlarm?.Properties).toMatchObject({
      Namespace: 'AWS/SQS',
      MetricName: 'ApproximateNumberOfMessagesVisible',
      Dimensions: [{ Name: 'QueueName', Value: { 'Fn::GetAtt': ['FailedEventsQueue', 'QueueName'] } }],
    });
  });

  it('is watched for abandoned leases, and for a report that does not come', () => {
    const service = { Name: 'service', Value: `holdfast-${STAGE}` };
    expect(created(template).AbandonedLeasesAlarm?.Properties).toMatchObject({
      MetricName: 'ExpiredRecords',
      Dimensions: [service, { Name: 'kind', Value: 'abandonedLease' }],
    });
    expect(created(template).ReportOverdueAlarm?.Properties).toMatchObject({
      MetricName: 'ReportCompleted',
      Dimensions: [service],
      Statistic: 'Sum',
      Period: 3600,
      EvaluationPeriods: 1,
      Threshold: 1,
      ComparisonOperator: 'LessThanThreshold',
      TreatMissingData: 'breaching',
    });
  });
});

describe('the end of an execution', () => {
  const resource = (id: string) => created(template)[id]?.Properties;
  const queue = { 'Fn::GetAtt': ['ExecutionEndedQueue', 'Arn'] };

  it('is told to the function at once, and by the queue once more', () => {
    const { EventPattern, State, Targets } = resource('ExecutionEndedRule');
    expect(State).toBe('ENABLED');
    expect(EventPattern).toEqual({
      source: ['aws.states'],
      'detail-type': ['Step Functions Execution Status Change'],
      detail: { status: ['SUCCEEDED', 'FAILED', 'TIMED_OUT', 'ABORTED'] },
    });
    const InputPathsMap = { execution: '$.detail.executionArn' };
    expect(Targets).toEqual([
      {
        Id: 'at-once',
        Arn: { 'Fn::GetAtt': ['ExecutionEndedLambdaFunction', 'Arn'] },
        InputTransformer: { InputPathsMap, InputTemplate: '{"execution": <execution>}' },
      },
      {
        Id: 'again',
        Arn: queue,
        InputTransformer: { InputPathsMap, InputTemplate: '{"execution": <execution>, "again": true}' },
      },
    ]);
    expect(resource('ExecutionEndedRulePermission')).toMatchObject({
      FunctionName: { Ref: 'ExecutionEndedLambdaFunction' },
      Principal: 'events.amazonaws.com',
      SourceArn: { 'Fn::GetAtt': ['ExecutionEndedRule', 'Arn'] },
    });
    expect(resource('ExecutionEndedQueuePolicy').PolicyDocument.Statement).toEqual([
      {
        Effect: 'Allow',
        Principal: { Service: 'events.amazonaws.com' },
        Action: 'sqs:SendMessage',
        Resource: queue,
        Condition: { ArnEquals: { 'aws:SourceArn': { 'Fn::GetAtt': ['ExecutionEndedRule', 'Arn'] } } },
      },
    ]);
    const [[, mapping] = ['', undefined]] = ofType('AWS::Lambda::EventSourceMapping');
    expect(mapping?.Properties).toMatchObject({
      EventSourceArn: queue,
      FunctionName: { 'Fn::GetAtt': ['ExecutionEndedLambdaFunction', 'Arn'] },
      FunctionResponseTypes: ['ReportBatchItemFailures'],
    });
  });

  it('comes again later than any call that can grant a lease may take, and gives up with an alarm', () => {
    const granting = functionsOf('leases').map(({ timeoutSeconds }) => timeoutSeconds);
    const { DelaySeconds, VisibilityTimeout, RedrivePolicy } = resource('ExecutionEndedQueue');
    expect(DelaySeconds).toBeGreaterThanOrEqual(Math.max(...granting) + 30);
    expect(VisibilityTimeout).toBe(6 * Number(functions.find(({ name }) => name === 'executionEnded')?.timeoutSeconds));
    expect(RedrivePolicy).toEqual({
      deadLetterTargetArn: { 'Fn::GetAtt': ['ExecutionEndedDeadLetters', 'Arn'] },
      maxReceiveCount: 5,
    });
    expect(resource('ExecutionEndedDeadLettersAlarm')).toMatchObject({
      Namespace: 'AWS/SQS',
      MetricName: 'ApproximateNumberOfMessagesVisible',
      Dimensions: [{ Name: 'QueueName', Value: { 'Fn::GetAtt': ['ExecutionEndedDeadLetters', 'QueueName'] } }],
    });
  });

  it('and queues that need repair: each minute, by a call that is over before the next', () => {
    const rules = ofType('AWS::Events::Rule').map(([, { Properties }]) => Properties);
    const [repair, ...others] = rules.filter(({ ScheduleExpression }) => ScheduleExpression === 'rate(1 minute)');
    expect(others).toEqual([]);
    expect(repair).toMatchObject({
      State: 'ENABLED',
      Targets: [{ Arn: { 'Fn::GetAtt': ['RepairQueuesLambdaFunction', 'Arn'] }, Input: '{}' }],
    });
    expect(functions.find(({ name }) => name === 'repairQueues')?.timeoutSeconds).toBeLessThan(60);
  });
});

it('outputs where the API is, and the names of table and functions', () => {
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

it('says in serverless.yml nothing that only one of the frameworks that read it knows', async () => {
  const text = await readFile('serverless.yml', 'utf8');
  const code = text.replaceAll(/#.*$/gm, '');
  expect(code).not.toMatch(/frameworkVersion|osls/);
  const topLevel = [...code.matchAll(/^(\w+):/gm)].map(([, key]) => key);
  // The keys of Serverless 3 that Serverless 4 still has and osls shares.
  const shared = ['service', 'plugins', 'params', 'custom', 'provider', 'package', 'functions', 'resources'];
  expect(topLevel.sort()).toEqual(shared.sort());
});
