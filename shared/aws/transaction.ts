import {
  type CancellationReason,
  type DynamoDBClient,
  IdempotentParameterMismatchException,
  TransactionCanceledException,
  TransactionInProgressException,
  type TransactWriteItem,
  TransactWriteItemsCommand,
} from '@aws-sdk/client-dynamodb';
import { HoldfastError } from '../errors.ts';
import type { Clock } from '../surroundings/clock.ts';
import type { Ids } from '../surroundings/ids.ts';
import type { Call } from './call.ts';
import type { Item } from './dynamodb.ts';
import { attempt, type Operation, outcomeUnknown, toHoldfastError } from './send.ts';

/**
 * The outcome of a transaction. `old` has the items that failed their conditions, in the order of the transaction,
 * without those that do not exist. `tokenIsUsed`: a transaction of the last ten minutes had the same token and other
 * parameters, so DynamoDB did not test the conditions.
 */
export type TransactionOutcome = { won: true } | { won: false; tokenIsUsed: boolean; old: Item[] };

interface Transaction {
  /** Each item with a condition must set `ReturnValuesOnConditionCheckFailure: 'ALL_OLD'`. */
  items: TransactWriteItem[];
  /** At most 36 characters. The default is a new UUID. */
  token?: string | undefined;
  operation: Operation;
}

/** A transaction that conflicts with another transaction is tried 5 times in at most 375 ms. */
const FIRST_PAUSE_MS = 25;
const MAX_TRANSACTION_TRIES = 5;

/** Reasons of a cancellation that may be gone at the next try. */
const TRANSIENT = new Set(['TransactionConflict', 'ThrottlingError', 'ProvisionedThroughputExceeded']);

/**
 * Sends one transaction, and tries again if it conflicts with another transaction. If a condition fails, DynamoDB
 * returns the item that is there, so no read is needed. All tries have the same token, so DynamoDB knows the
 * transaction again if an earlier try landed and its answer was lost.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function transact(
  { dynamodb, clock, ids }: { dynamodb: DynamoDBClient; clock: Clock; ids: Ids },
  { items, token = ids.uuid(), operation }: Transaction,
  call: Call,
): Promise<TransactionOutcome> {
  const pauses = conflictPauses(ids);
  for (let unanswered = false; ; ) {
    const command = new TransactWriteItemsCommand({ TransactItems: items, ClientRequestToken: token });
    const tried = await attempt(dynamodb, { command }, call);
    if ('output' in tried) return { won: true };
    const { error } = tried;
    unanswered ||= tried.unanswered;
    if (error instanceof IdempotentParameterMismatchException) return { won: false, tokenIsUsed: true, old: [] };
    const reasons = reasonsOf(error);
    if (!reasons) throw toHoldfastError(error, operation, unanswered);
    // A failed condition is final, whatever happened to the other items.
    if (reasons.some(({ Code }) => Code === 'ConditionalCheckFailed'))
      return { won: false, tokenIsUsed: false, old: oldItems(reasons) };
    const pause = pauses.next();
    if (pause.done || !isTransient(reasons))
      throw unanswered ? outcomeUnknown(operation, error) : cancelled(reasons, operation, error);
    await clock.sleep(Math.min(pause.value, call.timeLeftMs()));
  }
}

/** Why DynamoDB cancelled the transaction. An earlier try that is still under way counts as another transaction. */
function reasonsOf(error: Error): CancellationReason[] | undefined {
  if (error instanceof TransactionInProgressException) return [{ Code: 'TransactionConflict' }];
  return error instanceof TransactionCanceledException ? (error.CancellationReasons ?? []) : undefined;
}

/** The pauses between the tries, with jitter. Each is about twice as long as the pause before. */
export function* conflictPauses(ids: Ids): Generator<number, undefined> {
  for (let tries = 1, pause = FIRST_PAUSE_MS; tries < MAX_TRANSACTION_TRIES; tries++, pause *= 2)
    yield pause * (0.5 + ids.random() / 2);
  return undefined;
}

const oldItems = (reasons: CancellationReason[]): Item[] => reasons.flatMap(({ Item: item }) => (item ? [item] : []));

function isTransient(reasons: CancellationReason[]): boolean {
  return reasons.every(({ Code: code }) => code === undefined || code === 'None' || TRANSIENT.has(code));
}

function cancelled(reasons: CancellationReason[], { resource }: Operation, cause: Error): HoldfastError {
  const codes = [...new Set(reasons.map(({ Code: code }) => code).filter((code) => code && code !== 'None'))];
  return isTransient(reasons)
    ? new HoldfastError('Throttled', `other writes to ${resource} are under way: send the call again later`, {
        retryAfterMs: 1000,
        cause,
      })
    : new HoldfastError('Unavailable', `${resource} cannot be used (${codes}): send the call again later`, {
        retryAfterMs: 1000,
        cause,
      });
}
