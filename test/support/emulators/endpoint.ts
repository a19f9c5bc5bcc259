import { inject } from 'vitest';

/** The DynamoDB of this worker. */
export function dynamodbEndpoint(): string {
  const endpoints = inject('dynamodbEndpoints');
  const worker = Number(process.env.VITEST_POOL_ID ?? 1);
  return endpoints[(worker - 1) % endpoints.length] as string;
}
