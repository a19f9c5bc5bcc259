import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { describe, expect, inject, it } from 'vitest';
import type { Template } from '../support/stack/packaging.ts';
import {
  BUCKET,
  bucketArn,
  capabilityOf,
  configured,
  functions,
  functionsOf,
  isLogs,
  isOfEvents,
  isPermission,
  lambdas,
  resources,
  resourcesOfType,
  roles,
  type Statement,
  TABLES,
  template,
  withParameters,
} from '../support/stack/template.ts';

const AUDIT_LOG = { 'Fn::GetAtt': ['AuditLogGroup', 'Arn'] };

const USING_BUCKET = [
  ...['commit', 'stageUpload', 'readCommit', 'readInFlight', 'resetFence'],
  ...['report', 'readExpired', 'clean'],
];

describe('functions', () => {
  it('the functions are those of serverless.yml, on Node 24 and arm64, with log retention', () => {
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
      const [, group] = resourcesOfType('AWS::Logs::LogGroup').find(
        ([, { Properties }]) => Properties.LogGroupName === `/aws/lambda/${FunctionName}`,
      ) ?? ['', undefined];
      expect(group?.Properties.RetentionInDays, FunctionName).toBe('30');
    }
  });

  it('each function has its own role, and there is no other', () => {
    const used = roles().map(({ id }) => id);
    expect(new Set(used).size).toBe(functions.length);
    expect(
      resourcesOfType('AWS::IAM::Role')
        .map(([id]) => id)
        .sort(),
    ).toEqual([...used, 'ExclusiveStateMachineRole', 'ChangeCheckRole'].sort());
    for (const { role } of roles()) {
      expect(role.ManagedPolicyArns).toEqual([]);
      expect(role.AssumeRolePolicyDocument.Statement).toEqual([
        { Effect: 'Allow', Principal: { Service: ['lambda.amazonaws.com'] }, Action: ['sts:AssumeRole'] },
      ]);
    }
    expect(resourcesOfType('AWS::IAM::Policy')).toEqual([]);
    expect(resourcesOfType('AWS::IAM::ManagedPolicy')).toEqual([]);
  });

  it('the functions may use only the tables, indexes and logs of their capability', () => {
    for (const { name, FunctionName, statements } of roles()) {
      const ownLogs = `arn:\${AWS::Partition}:logs:\${AWS::Region}:\${AWS::AccountId}:log-group:/aws/lambda/${FunctionName}:*:*`;
      for (const statement of statements.filter(isPermission)) {
        expect(statement.Action.join()).not.toContain('*');
        // The names of log streams are Lambda's own and not known before.
        const capability = capabilityOf(name);
        const [table, ...others] = resources(capability);
        if (isLogs(statement)) expect([[{ 'Fn::Sub': ownLogs }], AUDIT_LOG]).toContainEqual(statement.Resource);
        else if (isOfEvents(statement)) expect(['expiry', 'leases'], name).toContain(capability);
        else if (name === 'readNames' || capability !== 'nameservice')
          expect([table, ...others]).toContainEqual([statement.Resource].flat()[0]);
        else expect(statement.Resource).toEqual(table);
        // A task is named only by its token, which IAM does not see, so these actions need all resources.
        if (statement.Resource === '*')
          expect(['states:SendTaskSuccess', 'states:SendTaskFailure', 'states:SendTaskHeartbeat']).toEqual(
            expect.arrayContaining(statement.Action),
          );
      }
    }
  });

  it('functions for operators share a log group that outlives the stack', () => {
    const { DependsOn, ...group } = Object(template.Resources.AuditLogGroup);
    expect(group).toEqual({
      Type: 'AWS::Logs::LogGroup',
      DeletionPolicy: 'RetainExceptOnCreate',
      UpdateReplacePolicy: 'Retain',
      Properties: { RetentionInDays: '30' }, // without a name: a group that stays would be in the way of the next one
    });
    const logging = lambdas().filter(({ LoggingConfig }) => LoggingConfig.LogGroup);
    for (const { LoggingConfig } of logging) expect(LoggingConfig.LogGroup).toEqual({ Ref: 'AuditLogGroup' });
    const audited = [
      ...['breakLease', 'cancelWaiter', 'capKey', 'clean', 'onceForget'],
      ...['rateForget', 'repairNames', 'resetFence', 'runNext'],
    ];
    expect(logging.map(({ name }) => name).toSorted()).toEqual(audited);
    const writing = roles().filter(({ statements }) =>
      statements.some((one) => isDeepStrictEqual(one.Resource, AUDIT_LOG)),
    );
    expect(writing.map(({ name }) => name).toSorted()).toEqual(audited);
  });

  it("the only denials keep commits from the service's own objects and reports", () => {
    const denied = roles().flatMap(({ name, statements }) =>
      statements.filter((one) => !isPermission(one)).map((statement) => ({ name, ...statement })),
    );
    const own = { Effect: 'Deny', Action: ['s3:PutObject'], Resource: bucketArn(BUCKET, '/.holdfast/*') };
    const reports = { Effect: 'Deny', Action: ['s3:GetObject'], Resource: bucketArn(BUCKET, '/.holdfast/reports/*') };
    expect(denied).toEqual([
      ...[own, reports].map((one) => ({ name: 'commit', ...one })),
      ...['readCommit', 'readInFlight'].map((name) => ({ name, ...reports })),
      ...[own, reports].map((one) => ({ name: 'resetFence', ...one })),
    ]);
  });

  it("the functions use this account's bucket unless a parameter names one", () => {
    const ofBucket = (from?: Template) =>
      roles(from).flatMap(({ name, statements }) =>
        statements
          .filter((one) => isPermission(one) && one.Action.some((action) => action.startsWith('s3:')))
          .map((statement) => ({ name, Condition: Object(statement).Condition })),
      );
    expect(new Set(ofBucket().map(({ name }) => name)).size).toBe(USING_BUCKET.length);
    for (const { name, Condition } of ofBucket())
      expect(Condition, name).toEqual({ StringEquals: { 'aws:ResourceAccount': { Ref: 'AWS::AccountId' } } });
    for (const { name, Condition } of ofBucket(configured)) expect(Condition, name).toBe(undefined);
  });

  it('the functions use the encryption keys of tables and bucket only as needed', () => {
    const arn = (id: number) => `arn:aws:kms:eu-west-1:123456789012:key/${id}`;
    const keyed = withParameters({ kmsKeyArn: arn(1), bucketKmsKeyArn: arn(2) });
    const usesOf = (statements: Statement[], resource: string) =>
      statements
        .filter((one) => one.Resource === resource)
        .flatMap((statement) => {
          const [via] = Object.values(Object(statement).Condition?.StringEquals ?? {}) as { 'Fn::Sub': string }[];
          return statement.Action.map((action) => (via ? `${action} by ${via['Fn::Sub'].split('.')[0]}` : action));
        });
    const byTable = ['Encrypt', 'ReEncryptFrom', 'ReEncryptTo', 'GenerateDataKey', 'DescribeKey'];
    for (const { name, statements } of roles(keyed)) {
      const may = (action: string) => statements.some((one) => one.Action.some((own) => own.startsWith(action)));
      expect(usesOf(statements, arn(1)), name).toEqual([
        'kms:Decrypt', // its environment
        ...(may('dynamodb:') ? byTable.map((action) => `kms:${action} by dynamodb`) : []),
        ...(may('sqs:SendMessage') ? ['kms:GenerateDataKey by sqs'] : []),
      ]);
      expect(usesOf(statements, arn(2)), name).toEqual([
        ...(USING_BUCKET.includes(name) ? ['kms:Decrypt'] : []),
        ...(['commit', 'stageUpload', 'resetFence', 'report'].includes(name) ? ['kms:GenerateDataKey'] : []),
      ]);
    }
  });

  it('the functions may do exactly what the tests have seen them do', async () => {
    const seen = inject('seenCommands');
    const noted = await readdir(seen);
    const silent = functionsOf('contract').map(({ name }) => name); // nothing is asked for the document
    expect(noted).not.toEqual(expect.arrayContaining(silent));
    const calling = roles().filter(({ name }) => !silent.includes(name));
    const unseen = calling.map(({ name }) => name).filter((name) => !noted.includes(name));
    expect(
      unseen,
      'functions that sent nothing: the tests that call every function must run before this one. Run the whole `npm test`',
    ).toEqual([]);
    for (const { statements } of roles().filter(({ name }) => silent.includes(name)))
      expect(statements.filter((one) => !isLogs(one))).toEqual([]);
    const seenOf = async (name: string) => (await readFile(join(seen, name), 'utf8')).trim().split('\n');
    const needed = calling.map(async ({ name }) => {
      const commands = await seenOf(name);
      return [name, inOrder([...commands.flatMap(actionsOf), ...polled(name)])];
    });
    const allowed = calling.map(({ name, statements }) => [name, inOrder(statements.flatMap(allowedBy))]);
    expect(Object.fromEntries(allowed)).toEqual(Object.fromEntries(await Promise.all(needed)));
  });
});

const inOrder = (actions: string[]) => [...new Set(actions)].sort();

/** Each action with its table or index, as the tests note them: `dynamodb:Query leases/index/by-execution`. */
function allowedBy(statement: Statement): string[] {
  if (!isPermission(statement) || isLogs(statement)) return [];
  const places = [statement.Resource].flat().map(placeOf);
  // Lambda itself sends failed events to the queue, with the role of the function.
  const actions = statement.Action.filter((action) => action !== 'sqs:SendMessage');
  return actions.flatMap((action) => places.map((place) => action + place));
}

/** The actions of Lambda in the name of a function, on the queue that Lambda reads for it. */
const polled = (name: string) =>
  ['executionEnded', 'repairQueues'].includes(name)
    ? ['sqs:ReceiveMessage', 'sqs:DeleteMessage', 'sqs:GetQueueAttributes']
    : [];

/** Empty where the resource is neither a table nor an index. */
function placeOf(resource: unknown): string {
  const [, table, index = ''] = /:table\/([^/]+)(.*)$/.exec(String(Object(resource)['Fn::Sub'])) ?? [];
  const [kind] = Object.entries(TABLES).find(([, name]) => name === table) ?? [];
  return kind === undefined ? '' : ` ${kind}${index}`;
}

/** `DynamoDB:PutItem leases` needs `dynamodb:PutItem` of the leases table. A transaction is noted by its parts. */
function actionsOf(command: string): string[] {
  return (
    OTHER_ACTIONS[command] ?? [command.replace(/^SFN/, 'states').replace(/^\w+/, (service) => service.toLowerCase())]
  );
}

/** S3 and EventBridge have other names for what they allow than for what they do. */
const OTHER_ACTIONS: Record<string, string[]> = {
  // Without s3:ListBucket, S3 answers 403 and not 404 for a missing object.
  'S3:HeadObject': ['s3:GetObject', 's3:ListBucket'],
  'S3:GetObject': ['s3:GetObject', 's3:ListBucket'],
  'S3:ListObjectsV2': ['s3:ListBucket'],
  'S3:PutObject': ['s3:PutObject'],
  'S3:CopyObject': ['s3:GetObject', 's3:PutObject'],
  'S3:CreateMultipartUpload': ['s3:PutObject'],
  'S3:UploadPart': ['s3:PutObject'],
  'S3:UploadPartCopy': ['s3:GetObject', 's3:PutObject'],
  'S3:CompleteMultipartUpload': ['s3:PutObject'],
  'S3:AbortMultipartUpload': ['s3:AbortMultipartUpload'],
  'EventBridge:PutEvents': ['events:PutEvents'],
};
