import { describe, expect, it } from 'vitest';
import { dynamodbClient } from '../../shared/aws/dynamodb.ts';
import { s3Client } from '../../shared/aws/s3.ts';
import { stepFunctionsClient } from '../../shared/aws/step-functions.ts';

const region = 'us-east-1';

describe('a try that gets no answer', () => {
  it.each([
    ['DynamoDB', dynamodbClient({ region }), 2000],
    ['S3', s3Client({ region }), 5000],
    ['Step Functions', stepFunctionsClient({ region }), 3000],
  ])('of %s fails after a while, and does not only warn', async (_, client, requestTimeout) => {
    const { configProvider } = client.config.requestHandler as unknown as { configProvider: Promise<object> };
    expect(await configProvider).toMatchObject({
      connectionTimeout: 1000,
      requestTimeout,
      throwOnRequestTimeout: true,
    });
  });
});
