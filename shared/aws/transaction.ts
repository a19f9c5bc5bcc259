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
 * `old` holds the items that did not meet their conditions, as far as they exist, in the order of the transaction. `tokenIsUsed`: no
 * condition was tested, because the token stands for a transaction of the last ten minutes with other parameters.
 */
export type TransactionOutcome = { won: true } | { won: false; tokenIsUsed: boolean; old: Item[] };

interface Transaction {
  /** Each condition with ReturnValuesOnConditionCheckFailure: ALL_OLD. */
  items: TransactWriteItem[];
  /** At most 36 characters; made up when undefined. */
  token?: string | undefined;
  operation: Operation;
}

/** How often a transaction that conflicts with another one is tried: 5 times in up to 375 ms. */
const FIRST_PAUSE_MS = 25;
const MAX_TRANSACTION_TRIES = 5;

/** Transient reasons, which a later try may not meet. */
const TRANSIENT = new Set(['TransactionConflict', 'ThrottlingError', 'ProvisionedThroughputExceeded']);

/**
 * One transaction, and no read: it is won as a whole, or the conditions that failed bring their standing items along.
 * Where it meets another transaction it is tried again. All tries carry one token, by which DynamoDB recognises
 * one that landed without an answer.
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

/** Why it was cancelled. A try of the same token that is still under way is a transaction in the way like any other. */
function reasonsOf(error: Error): CancellationReason[] | undefined {
  if (error instanceof TransactionInProgressException) return [{ Code: 'TransactionConflict' }];
  return error instanceof TransactionCanceledException ? (error.CancellationReasons ?? []) : undefined;
}

/** Jittered, each about twice as long as the one before. */
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
