import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, inject, it } from 'vitest';
import { readService } from '../local/service.ts';
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
const TABLES = { leases: `holdfast-${STAGE}-leases`, nameservice: `holdfast-${STAGE}-nameservice` };
/** By the folder of their functions. */
const CAPABILITIES = ['leases', 'nameservice'] as const;
type Capability = (typeof CAPABILITIES)[number];
const functionsOf = (capability: Capability) =>
  functions.filter(({ bundle }) => bundle.startsWith(`dist/${capability}/`));
const capabilityOf = (name: string): Capability =>
  CAPABILITIES.find((capability) => functionsOf(capability).some((one) => one.name === name)) ?? 'leases';
const tableArn = (name: string) => ({
  'Fn::Sub': `arn:\${AWS::Partition}:dynamodb:\${AWS::Region}:\${AWS::AccountId}:table/${name}`,
});

let packaged: Packaged;
let template: Template;

beforeAll(async () => {
  packaged = await npmRunPackage();
  if (packaged.exitCode === 0) template = await readTemplate('.serverless');
}, 90_000);

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

const isLogs = ({ Action }: Statement) => Action.every((action) => action.startsWith('logs:'));

describe('npm run package', () => {
  it('works without network and without credentials, and has nothing to complain of', () => {
    expect(packaged.output).toContain('Service packaged');
    expect(packaged.exitCode).toBe(0);
    expect(packaged.connections).toBe('');
    // What npm itself says depends on the machine.
    expect(packaged.output.replaceAll(/^npm .*$/gm, '')).not.toMatch(/warn|deprecat/i);
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

describe('the tables', () => {
  it('are on demand, can be restored, are encrypted, and stay when the service goes; leases expire', () => {
    const kept = { DeletionPolicy: 'RetainExceptOnCreate', UpdateReplacePolicy: 'Retain' };
    const common = {
      BillingMode: 'PAY_PER_REQUEST',
      PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true },
      SSESpecification: { SSEEnabled: true },
    };
    expect(ofType('AWS::DynamoDB::Table')).toEqual([
      [
        'LeasesTable',
        {
          Type: 'AWS::DynamoDB::Table',
          Condition: 'CreateLeasesTable',
          ...kept,
          Properties: {
            ...common,
            TableName: TABLES.leases,
            AttributeDefinitions: [{ AttributeName: 'key', AttributeType: 'S' }],
            KeySchema: [{ AttributeName: 'key', KeyType: 'HASH' }],
            TimeToLiveSpecification: { AttributeName: 'lease_expiry', Enabled: true },
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
    const shared = await packageWith(['--param=leasesTable=shared-leases', '--param=nameserviceTable=shared-names']);
    expect(shared.output).toContain('Service packaged');
    expect(ofType('AWS::DynamoDB::Table', shared.template)).toEqual([]);
    expect(lambdas(shared.template)).toHaveLength(functions.length);
    const names = { leases: 'shared-leases', nameservice: 'shared-names' };
    for (const { Environment } of lambdas(shared.template))
      expect(Environment.Variables).toMatchObject({ LEASES_TABLE: names.leases, NAMESERVICE_TABLE: names.nameservice });
    for (const { name, statements } of roles(shared.template))
      for (const { Resource } of statements.filter((one) => !isLogs(one)))
        expect(resources(names[capabilityOf(name)])).toContainEqual(Resource);
    expect(shared.template.Outputs.LeasesTableName?.Value).toBe(names.leases);
    expect(shared.template.Outputs.NameserviceTableName?.Value).toBe(names.nameservice);
    for (const table of Object.values(TABLES)) expect(JSON.stringify(created(shared.template))).not.toContain(table);
  });
});

/** The table, or the index of the nameservice's. */
const resources = (table: string) => [tableArn(table), tableArn(`${table}/index/gsi1-kind`)];

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
    ).toEqual(used.sort());
    for (const { role } of roles()) {
      expect(role.ManagedPolicyArns).toEqual([]);
      expect(role.AssumeRolePolicyDocument.Statement).toEqual([
        { Effect: 'Allow', Principal: { Service: ['lambda.amazonaws.com'] }, Action: ['sts:AssumeRole'] },
      ]);
    }
    expect(ofType('AWS::IAM::Policy')).toEqual([]);
    expect(ofType('AWS::IAM::ManagedPolicy')).toEqual([]);
  });

  it('may use their one table and their own log group, nothing by wildcard, and only readNames the index', () => {
    for (const { name, FunctionName, statements } of roles()) {
      const ownLogs = `arn:\${AWS::Partition}:logs:\${AWS::Region}:\${AWS::AccountId}:log-group:/aws/lambda/${FunctionName}:*:*`;
      for (const statement of statements) {
        expect(statement.Effect).toBe('Allow');
        expect(statement.Action.join()).not.toContain('*');
        // The names of log streams are Lambda's own and not known before.
        const [table, index] = resources(TABLES[capabilityOf(name)]);
        if (isLogs(statement)) expect(statement.Resource).toEqual([{ 'Fn::Sub': ownLogs }]);
        else if (name === 'readNames') expect([table, index]).toContainEqual(statement.Resource);
        else expect(statement.Resource).toEqual(table);
      }
    }
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
      const allowed = statements.filter((one) => !isLogs(one)).flatMap(({ Action }) => Action);
      const needed = new Set([...commands].flatMap(actionsOf));
      expect([...new Set(allowed)].sort(), name).toEqual([...needed].sort());
    }
  });
});

/** `DynamoDB:PutItem` needs `dynamodb:PutItem`; a transaction needs what its parts need. */
function actionsOf(command: string): string[] {
  if (command === 'DynamoDB:TransactWriteItems')
    return ['dynamodb:PutItem', 'dynamodb:UpdateItem', 'dynamodb:ConditionCheckItem'];
  return [command.replace(/^\w+/, (service) => service.toLowerCase())];
}

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

  it('asks on every route for a JWT where AUTH=jwt, and for a scope to break a lease', async () => {
    const jwt = await packageWith([], { AUTH: 'jwt', JWT_ISSUER: 'https://issuer.example', JWT_AUDIENCE: 'holdfast' });
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
      const scopes = RouteKey === 'POST /v1/leases/break' ? ['holdfast/leases.break'] : undefined;
      expect(AuthorizationScopes, RouteKey).toEqual(scopes);
    }
  });

  it.each([
    { AUTH: 'none' },
    { AUTH: 'jwt', JWT_AUDIENCE: 'holdfast' },
    { AUTH: 'jwt', JWT_ISSUER: 'https://issuer.example' },
  ])('is not packaged with %o', async (settings) => {
    const { exitCode, output } = await packageWith([], settings as Record<string, string>);
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
  const refs = (capability: Capability) => {
    const names = functionsOf(capability).map(({ name }) => name);
    return lambdas().flatMap(({ name, logicalId }) => (names.includes(name) ? [{ Ref: logicalId }] : []));
  };

  it.each([
    ['leases', 'LeaseErrorsAlarm'],
    ['nameservice', 'NameserviceErrorsAlarm'],
  ] as const)('exist for crashes of every function of %s, less the errors that tasks are told by', (capability, id) => {
    const functions = functionsOf(capability);
    const errors = metrics(id).filter(({ Namespace }) => Namespace === 'AWS/Lambda');
    expect(errors.map(({ MetricName }) => MetricName)).toEqual(functions.map(() => 'Errors'));
    expect(errors.map(({ Dimensions }) => Dimensions)).toEqual(
      refs(capability).map((Value) => [{ Name: 'FunctionName', Value }]),
    );
    const told = metrics(id).filter(({ Namespace }) => Namespace === 'Holdfast');
    expect(told.map(({ MetricName }) => MetricName)).toEqual(functions.map(() => 'TaskFailures'));
    expect(told.map(({ Dimensions }) => Dimensions)).toEqual(
      functions.map(({ name }) => [
        { Name: 'service', Value: `holdfast-${STAGE}` },
        { Name: 'function', Value: name },
      ]),
    );
  });

  it('exist for faults, for throttled functions and for throttled tables', () => {
    expect(alarms().find(({ id }) => id === 'FaultsAlarm')).toMatchObject({
      Namespace: 'Holdfast',
      MetricName: 'Faults',
      Dimensions: [{ Name: 'service', Value: `holdfast-${STAGE}` }],
    });
    const byFunction = { leases: 'LeaseThrottlesAlarm', nameservice: 'NameserviceThrottlesAlarm' };
    const byTable = { leases: 'LeasesTableThrottlesAlarm', nameservice: 'NameserviceTableThrottlesAlarm' };
    for (const capability of CAPABILITIES) {
      const throttles = metrics(byFunction[capability]);
      expect(throttles.map(({ MetricName }) => MetricName)).toEqual(functionsOf(capability).map(() => 'Throttles'));
      expect(throttles.map(({ Dimensions }) => Dimensions[0]?.Value)).toEqual(refs(capability));
      const table = [{ Name: 'TableName', Value: TABLES[capability] }];
      const index = [...table, { Name: 'GlobalSecondaryIndexName', Value: 'gsi1-kind' }];
      expect(metrics(byTable[capability]).map(({ MetricName, Dimensions }) => [MetricName, Dimensions])).toEqual(
        (capability === 'leases' ? [table] : [table, index]).flatMap((dimensions) => [
          ['ReadThrottleEvents', dimensions],
          ['WriteThrottleEvents', dimensions],
        ]),
      );
    }
  });

  it('fire at the first event, stay quiet without data, and notify only whom they are told to', async () => {
    for (const { id, ...alarm } of alarms()) {
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
    expect(computed).toHaveLength(3 * CAPABILITIES.length);
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

it('outputs where the API is, and the names of table and functions', () => {
  const values = Object.values(template.Outputs).map(({ Value }) => JSON.stringify(Value));
  expect(template.Outputs.ApiUrl?.Value).toEqual({ 'Fn::GetAtt': ['HttpApi', 'ApiEndpoint'] });
  expect(template.Outputs.LeasesTableName?.Value).toBe(TABLES.leases);
  expect(template.Outputs.NameserviceTableName?.Value).toBe(TABLES.nameservice);
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
