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

/** How often a request is sent before its failure is the answer: the first time, and again. */
export const MAX_TRIES = 3;

/**
 * The client of every function. Endpoint, region and credentials come from the SDK's own environment variables.
 * A try is cut after two seconds (DynamoDB answers in milliseconds), which leaves the shortest function time for all three tries.
 */
export function dynamodbClient(overrides: DynamoDBClientConfig = {}): DynamoDBClient {
  const client = new DynamoDBClient({
    maxAttempts: MAX_TRIES,
    requestHandler: { connectionTimeout: 1000, requestTimeout: 2000, throwOnRequestTimeout: true },
    sha256: Sha256,
    ...overrides,
  });
  // It filters request and answer for a log, at every call, even if the client has no logger.
  client.middlewareStack.remove('loggerMiddleware');
  return client;
}

/**
 * The outcome of a conditional write: whether it was `won`, as in every type of an outcome here. `old` is the item that did not meet the condition; undefined if there was none. `unanswered`: an earlier try of
 * the SDK's got no answer, so the write may have landed before others wrote over it.
 */
type ConditionalOutcome =
  | { won: true; item?: Item | undefined }
  | { won: false; old?: Item | undefined; unanswered: boolean };

type ConditionalWrite = AwsRequest<PutItemCommand | UpdateItemCommand | DeleteItemCommand>;

/**
 * One conditional write, and no read: a lost condition brings the standing item along
 * (ReturnValuesOnConditionCheckFailure: ALL_OLD must be set on the command).
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
