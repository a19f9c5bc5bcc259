import { describe, expect, it } from 'vitest';
import { dynamodbClient } from '../../shared/aws/dynamodb.ts';
import { s3Client } from '../../shared/aws/s3.ts';
import { stepFunctionsClient } from '../../shared/aws/step-functions.ts';

const region = 'us-east-1';

describe('the settings of a client', () => {
  it.each([
    ['DynamoDB', dynamodbClient({ region }), 2000],
    ['S3', s3Client({ region }), 5000],
    ['Step Functions', stepFunctionsClient({ region }), 3000],
  ])(
    'the settings of a client for %s end a try without an answer, and make that an error',
    async (_, client, requestTimeout) => {
      const { configProvider } = client.config.requestHandler as unknown as { configProvider: Promise<object> };
      expect(await configProvider).toMatchObject({
        connectionTimeout: 1000,
        requestTimeout,
        throwOnRequestTimeout: true,
      });
    },
  );
});
