import { describe, expect, it } from 'vitest';
import { GUARD } from '../../infrastructure/logical-ids.ts';
import {
  BUCKET,
  capabilityOf,
  configured,
  functions,
  isLogs,
  isOfEvents,
  isPermission,
  lambdas,
  ofType,
  resources,
  roles,
  statements,
  TABLES,
} from '../support/stack/template.ts';

describe('the tables', () => {
  it('the tables are on demand, can be restored, are encrypted, and stay when the service is removed; leases expire', () => {
    const kept = { DependsOn: [GUARD], DeletionPolicy: 'RetainExceptOnCreate', UpdateReplacePolicy: 'Retain' };
    const common = {
      BillingMode: 'PAY_PER_REQUEST',
      DeletionProtectionEnabled: true,
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

  it('the tables are existing tables if the deployment names them', async () => {
    const shared = configured;
    const targets = statements(shared.Resources.ExclusiveStateMachineRole).flatMap(({ Resource }) => Resource);
    for (const resource of ['stateMachine:nightly-*', 'execution:nightly-*:*'])
      expect(JSON.stringify(targets)).toContain(`:${resource}"`);
    expect(ofType('AWS::DynamoDB::Table', shared)).toEqual([]);
    expect(lambdas(shared)).toHaveLength(functions.length);
    const names = {
      leases: 'shared-leases',
      waiters: 'shared-waiters',
      commits: 'shared-commits',
      nameservice: 'shared-names',
    };
    for (const { Environment } of lambdas(shared))
      expect(Environment.Variables).toMatchObject({
        LEASES_TABLE: names.leases,
        WAITERS_TABLE: names.waiters,
        COMMITS_TABLE: names.commits,
        NAMESERVICE_TABLE: names.nameservice,
        BUCKET: 'shared-bucket',
      });
    for (const id of ['Bucket', 'BucketPolicy']) expect(shared.Resources).not.toHaveProperty(id);
    for (const { name, statements } of roles(shared))
      for (const { Resource } of statements.filter((one) => isPermission(one) && !isLogs(one) && !isOfEvents(one)))
        expect(
          resources(capabilityOf(name), {
            tables: names,
            bucket: 'shared-bucket',
            machines: 'jobs-*',
            durable: 'billing-*',
          }),
        ).toContainEqual([Resource].flat()[0]);
    expect(shared.Outputs.LeasesTableName?.Value).toBe(names.leases);
    expect(shared.Outputs.NameserviceTableName?.Value).toBe(names.nameservice);
    // The guard compares with the names that the stack would make up.
    const { [GUARD]: _, ...others } = shared.Resources;
    for (const own of [...Object.values(TABLES), BUCKET]) expect(JSON.stringify(others)).not.toContain(own);
  }, 60_000);
});
