import { createHash } from 'node:crypto';
import type { TransactWriteItem } from '@aws-sdk/client-dynamodb';
import { all, type Condition, conditionFields } from '../aws/condition.ts';
import type { Item } from '../aws/dynamodb.ts';
import { transact } from '../aws/transaction.ts';
import { HoldfastError } from '../errors.ts';
import { readRows } from './alias-rows.ts';
import { differsPerCall, isAbsent, isKnownLayout, isNoRecord } from './conditions.ts';
import { type AliasWrite, type WriteRequest, writingTable } from './dependencies.ts';
import { type ItemsByConcern, itemsByConcern, kindOf } from './record.ts';

/**
 * `writtenAt`: in epoch milliseconds. `rows`: all items of the alias. `repeated`: an earlier call of this request won.
 */
type IdempotentOutcome = { won: true; writtenAt: number } | { won: false; repeated: boolean; rows: ItemsByConcern };

/** What differs between two calls of one request: the time, and a condition on the first item. */
export interface Stamp {
  /** Epoch milliseconds. */
  now: number;
  differsPerCall: Condition;
}

/** The writes that create an alias. They fail if the alias exists. */
export const putNew = (table: string, items: Item[], { differsPerCall }: Stamp): TransactWriteItem[] =>
  items.map((item) => ({
    Put: {
      TableName: table,
      Item: item,
      ...conditionFields(item.sk?.S === 'meta' ? all(isNoRecord, isKnownLayout, differsPerCall) : isAbsent),
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
    },
  }));

/**
 * Sends a transaction that takes effect a single time, even if its request is repeated. DynamoDB remembers the token of
 * a successful transaction for ten minutes. The token is derived from the request, so two calls of one request have the
 * same token. Their transactions differ in the stamp, and DynamoDB therefore answers the second with a mismatch: an
 * earlier call of this request has won. See docs/protocols/nameservice.md#create.
 * @param part which of the request's transactions this is
 * @throws HoldfastError Throttled, OutcomeUnknown, Unavailable (and if the token is known, but the record is not there)
 */
export async function transactIdempotently(
  { dependencies, alias, request, call }: AliasWrite,
  part: 'create' | 'replace',
  itemsOf: (stamp: Stamp) => TransactWriteItem[],
): Promise<IdempotentOutcome> {
  const { clock, ids, table } = dependencies;
  const writtenAt = clock.now();
  const items = itemsOf({ now: writtenAt, differsPerCall: differsPerCall(ids.uuid()) });
  const token = clientToken(table, request, part);
  const outcome = await transact(dependencies, { items, token, operation: writingTable(table, request) }, call);
  if (outcome.won) return { won: true, writtenAt };
  // DynamoDB returns only the items whose conditions failed. If these are not all items, they are read.
  const rows =
    outcome.old.length === items.length ? itemsByConcern(outcome.old) : await readRows(dependencies, alias, call);
  if (!outcome.tokenIsUsed) return { won: false, repeated: false, rows };
  if (kindOf(rows.meta)) return { won: false, repeated: true, rows };
  throw new HoldfastError(
    'Unavailable',
    'an earlier call with this requestId had no effect yet, or its record was removed: send the call again later, or with another requestId',
    { retryAfterMs: 1000 },
  );
}

/**
 * The token of a request. Caller and table are a part of it, because all callers and tables of an account share the
 * tokens. DynamoDB takes 36 characters.
 */
export function clientToken(table: string, { requestId, principal = '', content }: WriteRequest, part: string): string {
  const identity = JSON.stringify([table, principal, requestId, content, part]);
  return createHash('sha256').update(identity).digest('base64url').slice(0, 36);
}
