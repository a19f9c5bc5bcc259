import {
  type AttributeValue,
  ConditionalCheckFailedException,
  type DeleteItemCommand,
  DynamoDBClient,
  type DynamoDBClientConfig,
  type PutItemCommand,
  type UpdateItemCommand,
} from '@aws-sdk/client-dynamodb';
import type { Call } from './call.ts';
import { type AwsRequest, attempt, toHoldfastError } from './send.ts';
import { Sha256 } from './sha256.ts';

export type Item = Record<string, AttributeValue>;

/** How often the SDK sends a request, with the first try. */
export const MAX_TRIES = 3;

/**
 * The DynamoDB client for every function. The SDK takes endpoint, region and credentials from its own environment
 * variables. Each try ends after two seconds, so that even the shortest function has time for three tries. DynamoDB
 * answers in milliseconds.
 */
export function dynamodbClient(overrides: DynamoDBClientConfig = {}): DynamoDBClient {
  const client = new DynamoDBClient({
    maxAttempts: MAX_TRIES,
    requestHandler: { connectionTimeout: 1000, requestTimeout: 2000, throwOnRequestTimeout: true },
    sha256: Sha256,
    ...overrides,
  });
  // The SDK's logger filters each request and answer even if the client does not log. Removing it saves that time.
  client.middlewareStack.remove('loggerMiddleware');
  return client;
}

/**
 * The outcome of a conditional write, which is won if the condition held. `old` is the item that did not meet the
 * condition, undefined if the item did not exist. `unanswered`: an earlier try got no answer, so the write may have
 * landed, and another writer may then have replaced it.
 */
type ConditionalOutcome =
  | { won: true; item?: Item | undefined }
  | { won: false; old?: Item | undefined; unanswered: boolean };

type ConditionalWrite = AwsRequest<PutItemCommand | UpdateItemCommand | DeleteItemCommand>;

/**
 * Sends one conditional write. If the condition fails, DynamoDB returns the item that is there, so no read is needed.
 * The command must set `ReturnValuesOnConditionCheckFailure: 'ALL_OLD'`.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function conditionalWrite(
  client: DynamoDBClient,
  { command, operation }: ConditionalWrite,
  call: Call,
): Promise<ConditionalOutcome> {
  const tried = await attempt(client, { command }, call);
  if ('output' in tried) return { won: true, item: tried.output.Attributes };
  const { error, unanswered } = tried;
  if (error instanceof ConditionalCheckFailedException) return { won: false, old: error.Item, unanswered };
  throw toHoldfastError(error, operation, unanswered);
}
