import { describe, expect, it } from 'vitest';
import { BUCKET, TABLES, template } from '../support/stack/template.ts';

describe('the commits table and the bucket', () => {
  it('the commits table and the bucket are in the format of object_store, and retained', () => {
    expect(template.Resources.CommitsTable).toMatchObject({
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
    expect(template.Resources.Bucket).toMatchObject({
      DeletionPolicy: 'RetainExceptOnCreate',
      UpdateReplacePolicy: 'Retain',
    });
  });

  it('the bucket keeps versions, is encrypted, and lets in nobody from outside or without TLS', () => {
    expect(template.Resources.Bucket?.Properties).toMatchObject({
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
    expect(template.Resources.BucketPolicy?.Properties.PolicyDocument.Statement).toEqual([
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
