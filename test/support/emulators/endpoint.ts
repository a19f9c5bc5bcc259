import type { DynamoDBClientConfig } from '@aws-sdk/client-dynamodb';
import { inject } from 'vitest';

/** The DynamoDB of this worker. */
export function dynamodbEndpoint(): string {
  const endpoints = inject('dynamodbEndpoints');
  const worker = Number(process.env.VITEST_POOL_ID ?? 1);
  return endpoints[(worker - 1) % endpoints.length] as string;
}

/** The emulators want a signature, but do not check it. A real one would take longer than the answer. */
export const unsigned: NonNullable<DynamoDBClientConfig['signer']> = {
  sign: async (request) => {
    const scope = 'test/20260101/us-east-1/dynamodb/aws4_request';
    request.headers.authorization = `AWS4-HMAC-SHA256 Credential=${scope}, SignedHeaders=host, Signature=none`;
    request.headers['x-amz-date'] = '20260101T000000Z';
    return request;
  },
};
