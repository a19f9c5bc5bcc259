import { readFile } from 'node:fs/promises';
import { isDeepStrictEqual } from 'node:util';
import { describe, expect, it } from 'vitest';
import { CHANGE_CHECK } from '../../infrastructure/logical-ids.ts';
import { PARAMETERS } from '../../infrastructure/parameters.ts';
import { EVENT_SOURCE } from '../../shared/aws/event-bus.ts';
import { EVENT_TYPE } from '../../shared/expiry/announcement.ts';
import type { Template } from '../support/stack/packaging.ts';
import {
  BUCKET,
  configured,
  functions,
  functionsOf,
  lambdas,
  resourcesOfType,
  roles,
  STAGE,
  statements,
  TABLES,
  template,
  withParameters,
} from '../support/stack/template.ts';

// The rules behind the template. What it has in detail is in template.summary.txt.

describe('the tables and the bucket', () => {
  const STAYS = { DependsOn: [CHANGE_CHECK], DeletionPolicy: 'RetainExceptOnCreate', UpdateReplacePolicy: 'Retain' };

  it('the tables are on demand, restorable, encrypted and protected, and stay without the service', () => {
    const tables = resourcesOfType('AWS::DynamoDB::Table');
    expect(tables.map(([, { Properties }]) => Properties.TableName).toSorted()).toEqual(
      Object.values(TABLES).toSorted(),
    );
    for (const [id, table] of tables) {
      expect(table, id).toMatchObject(STAYS);
      expect(table.Properties, id).toMatchObject({
        BillingMode: 'PAY_PER_REQUEST',
        DeletionProtectionEnabled: true,
        PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true },
        SSESpecification: { SSEEnabled: true },
      });
    }
  });

  it('the stack uses the tables and the bucket that parameters name', () => {
    for (const type of ['AWS::DynamoDB::Table', 'AWS::S3::Bucket', 'AWS::S3::BucketPolicy'])
      expect(resourcesOfType(type, configured)).toEqual([]);
    // The change check compares with the names that the stack would make up.
    const { [CHANGE_CHECK]: _, ...others } = configured.Resources;
    for (const own of [...Object.values(TABLES), BUCKET]) expect(JSON.stringify(others)).not.toContain(own);
  });

  it('the bucket stays, keeps versions, and refuses strangers and connections without TLS', () => {
    const { Bucket, BucketPolicy } = template.Resources;
    expect(Bucket).toMatchObject(STAYS);
    const { VersioningConfiguration, PublicAccessBlockConfiguration: block } = Bucket?.Properties ?? {};
    expect(VersioningConfiguration).toEqual({ Status: 'Enabled' });
    expect(Object.values(block)).toEqual([true, true, true, true]);
    expect(BucketPolicy?.Properties.PolicyDocument.Statement).toMatchObject([
      { Effect: 'Deny', Principal: '*', Action: 's3:*', Condition: { Bool: { 'aws:SecureTransport': 'false' } } },
    ]);
  });

  it('objects of the service expire in the bucket, and commits of callers do not', () => {
    const rules: { Prefix?: string; AbortIncompleteMultipartUpload?: object }[] =
      template.Resources.Bucket?.Properties.LifecycleConfiguration.Rules;
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

describe('the state machine exclusive', () => {
  it('the state machine exclusive sends traces if the functions do', () => {
    const traced = withParameters({ tracing: 'Active', namespaces: 'team-a' });
    const machines = resourcesOfType('AWS::StepFunctions::StateMachine', traced);
    expect(machines).toHaveLength(2);
    for (const [id, { Properties }] of machines) {
      expect(Properties.TracingConfiguration, id).toEqual({ Enabled: true });
      const [role] = Properties.RoleArn['Fn::GetAtt'];
      expect(statements(traced.Resources[role]), id).toContainEqual({
        Effect: 'Allow',
        Action: ['PutTraceSegments', 'PutTelemetryRecords', 'GetSamplingRules', 'GetSamplingTargets'].map(
          (action) => `xray:${action}`,
        ),
        Resource: '*',
      });
    }
  });

  it('the state machine exclusive runs up to eight state machines by name', () => {
    const names = Array.from({ length: 8 }, (_, at) => `team-${at}-*`);
    const role = withParameters({ exclusiveTargets: names.join() }).Resources.ExclusiveStateMachineRole;
    const runs = (of: typeof role) =>
      statements(of).flatMap(({ Action, Resource }) => (Action.includes('states:StartExecution') ? Resource : []));
    expect(runs(role)).toEqual(
      names.map((name) => ({
        'Fn::Sub': `arn:\${AWS::Partition}:states:\${AWS::Region}:\${AWS::AccountId}:stateMachine:${name}`,
      })),
    );
    expect(runs(template.Resources.ExclusiveStateMachineRole)).toEqual([]);
    const pattern = new RegExp(PARAMETERS.exclusiveTargets?.pattern ?? '^$');
    for (const value of ['', '*', 'a', names.join()]) expect(value).toMatch(pattern);
    for (const value of [[...names, 'one-more'].join(), 'a,', ',a', 'a,,b', 'a, b', 'a:b'])
      expect(value).not.toMatch(pattern);
  });
});

describe('durableFunctions', () => {
  const ARNS = `arn:\${AWS::Partition}:lambda:\${AWS::Region}:\${AWS::AccountId}:function:billing-*:*`;
  /** The functions that may use an operation of durable functions, and on which resource. */
  const mayUse = (operation: string, of: Template) =>
    roles(of).flatMap(({ name, statements }) =>
      statements
        .filter(({ Action }) => Action.includes(`lambda:${operation}`))
        .map(({ Resource }) => [name, Object(Resource)['Fn::Sub']]),
    );

  it('a stack without durableFunctions has no rule or permission for durable functions', () => {
    expect(Object.keys(template.Resources).filter((id) => id.startsWith('Durable'))).toEqual([]);
    expect(JSON.stringify(template)).not.toMatch(/DurableExecution(Callback|EndedRule)|GetDurableExecution/);
  });

  it('only functions that notify waiters may complete callbacks of the named durable functions', () => {
    const serving = withParameters({ durableFunctions: 'billing-*' });
    const notifying = ['acquire', 'release', 'breakLease', 'cancelWaiter', 'capKey', 'runNext', 'withdraw'];
    const expected = [...notifying, 'repairQueues', 'executionEnded'].map((name) => [name, ARNS]);
    expect(mayUse('SendDurableExecutionCallbackSuccess', serving)).toEqual(expected);
    expect(mayUse('SendDurableExecutionCallbackFailure', serving)).toEqual(expected);
    // A refused caller asks about the execution that holds, and the report about those of bound leases.
    const asking = ['acquire', 'repairQueues', 'executionEnded', 'report', 'clean'].map((name) => [name, ARNS]);
    expect(mayUse('GetDurableExecution', serving)).toEqual(asking);
  });
});

describe('EventBridge', () => {
  const propertiesOf = (type: string) => resourcesOfType(type).map(([, { Properties }]) => Properties);
  const queueArn = (id: string) => ({ 'Fn::GetAtt': [id, 'Arn'] });
  const timeoutOf = (name: string) => Number(functions.find((one) => one.name === name)?.timeoutSeconds);

  it("the event of this deployment's report starts a clean-up, except by default", () => {
    const rule = propertiesOf('AWS::Events::Rule').find(({ EventPattern }) => EventPattern?.source[0] === EVENT_SOURCE);
    expect(rule).toMatchObject({
      EventPattern: { 'detail-type': [EVENT_TYPE], detail: { service: [`holdfast-${STAGE}`] } },
      State: 'DISABLED',
      Targets: [{ Arn: { 'Fn::GetAtt': ['CleanLambdaFunction', 'Arn'] } }],
    });
    const variables = lambdas().find(({ name }) => name === 'report')?.Environment.Variables;
    expect(variables.SERVICE_NAME).toBe(`holdfast-${STAGE}`);
  });

  it('only the report puts events, and the repair if events are ENABLED', () => {
    const putting = (of: Template) =>
      roles(of)
        .filter(({ statements }) => statements.some(({ Action }) => Action.includes('events:PutEvents')))
        .map(({ name }) => name);
    expect(putting(template)).toEqual(['report']);
    const enabled = withParameters({ events: 'ENABLED', waiterOverdueSeconds: '600' });
    expect(putting(enabled)).toEqual(['repairQueues', 'report']);
    const variables = lambdas(enabled).find(({ name }) => name === 'repairQueues')?.Environment.Variables;
    expect(variables).toMatchObject({ EVENTS: 'ENABLED', WAITER_OVERDUE_SECONDS: '600' });
  });

  it('Lambda retries only the report and the clean-up, and keeps what fails twice', () => {
    const queue = queueArn('FailedEventsQueue');
    const invoked = propertiesOf('AWS::Lambda::EventInvokeConfig').map((one) => [one.FunctionName.Ref, one]);
    // The next run of a schedule or queue does the same work, so a late run is dropped rather than piled up.
    const dropped = { MaximumRetryAttempts: 0, MaximumEventAgeInSeconds: 60 };
    const kept = { MaximumRetryAttempts: 1, DestinationConfig: { OnFailure: { Destination: queue } } };
    expect(Object.fromEntries(invoked)).toMatchObject({
      RepairQueuesLambdaFunction: dropped,
      ExecutionEndedLambdaFunction: { MaximumRetryAttempts: 0 },
      ReportLambdaFunction: kept,
      CleanLambdaFunction: kept,
    });
    const senders = roles().filter(({ statements }) =>
      statements.some(({ Resource }) => isDeepStrictEqual(Resource, queue)),
    );
    expect(senders.map(({ name }) => name).toSorted()).toEqual(['clean', 'report']);
  });

  it('the event of an execution comes again after the longest call that grants leases', () => {
    const { DelaySeconds, VisibilityTimeout } = template.Resources.ExecutionEndedQueue?.Properties ?? {};
    const granting = functionsOf('leases').map(({ timeoutSeconds }) => timeoutSeconds);
    expect(DelaySeconds).toBeGreaterThanOrEqual(Math.max(...granting) + 30);
    expect(VisibilityTimeout).toBe(6 * timeoutOf('executionEnded'));
  });

  it('the repair of lines starts each minute, and ends before the next', () => {
    const everyMinute = propertiesOf('AWS::Events::Rule').filter(
      ({ ScheduleExpression }) => ScheduleExpression === 'rate(1 minute)',
    );
    expect(everyMinute).toMatchObject([
      { State: 'ENABLED', Targets: [{ Arn: { 'Fn::GetAtt': ['RepairQueuesLambdaFunction', 'Arn'] }, Input: '{}' }] },
    ]);
    expect(timeoutOf('repairQueues')).toBeLessThan(60);
  });

  it('the functions that hand off leases may send a message to the repair', () => {
    const senders = roles().filter(({ statements }) =>
      statements.some(({ Resource }) => isDeepStrictEqual(Resource, queueArn('RepairQueue'))),
    );
    const handingOn = ['acquire', 'release', 'breakLease', 'capKey', 'withdraw', 'repairQueues', 'executionEnded'];
    expect(senders.map(({ name }) => name)).toEqual(expect.arrayContaining(handingOn));
  });
});

it('a stack has the name of each function as an output', () => {
  const values = Object.values(template.Outputs).map(({ Value }) => JSON.stringify(Value));
  for (const { logicalId } of lambdas()) expect(values).toContain(JSON.stringify({ Ref: logicalId }));
});

it('the file serverless.yml uses only what each framework that reads it supports', async () => {
  const withoutComments = async (file: string) => (await readFile(file, 'utf8')).replaceAll(/#.*$/gm, '');
  const code = await withoutComments('serverless.yml');
  const included = [...code.matchAll(/\$\{file\((.*?\.yml)\)/g)].map(([, file]) => withoutComments(String(file)));
  expect(included.length).toBeGreaterThan(0);
  for (const text of [code, ...(await Promise.all(included))]) expect(text).not.toMatch(/frameworkVersion|osls/);
  const topLevel = [...code.matchAll(/^(\w+):/gm)].map(([, key]) => key);
  // The top-level names that Serverless 3, Serverless 4 and osls have in common.
  const shared = ['service', 'plugins', 'params', 'custom', 'provider', 'package', 'functions', 'resources'];
  expect(topLevel.sort()).toEqual(shared.sort());
});
