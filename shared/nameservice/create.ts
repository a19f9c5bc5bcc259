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

/** `at` is the time of writing; `rows` holds all items under the alias. `repeated`: an earlier call with this request won. */
type IdempotentOutcome = { won: true; at: number } | { won: false; repeated: boolean; rows: ItemsByConcern };

/** What makes a transaction this call's own. */
export interface Stamp {
  /** The time of writing, in epoch milliseconds. */
  now: number;
  /** On its first item. */
  differsPerCall: Condition;
}

/** Puts the items of a new alias. Lost if the alias exists. */
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
 * A transaction that a request makes once. DynamoDB remembers the token of a transaction that succeeded for ten minutes,
 * and answers an identical repeat with success and no write. Another call differs in its stamp alone, because the token is
 * made of the rest. So a mismatch is this very request in another call. See docs/protocols/nameservice.md#create.
 * @param part names one of the transactions of a request
 * @param itemsOf what to write
 * @throws HoldfastError Throttled, OutcomeUnknown, Unavailable (also if the token is known and no such record is there)
 */
export async function transactIdempotently(
  { dependencies, alias, request, call }: AliasWrite,
  part: 'create' | 'replace',
  itemsOf: (stamp: Stamp) => TransactWriteItem[],
): Promise<IdempotentOutcome> {
  const { clock, ids, table } = dependencies;
  const at = clock.now();
  const items = itemsOf({ now: at, differsPerCall: differsPerCall(ids.uuid()) });
  const token = clientToken(table, request, part);
  const outcome = await transact(dependencies, { items, token, operation: writingTable(table, request) }, call);
  if (outcome.won) return { won: true, at };
  // Each lost condition returns its item. If not all were lost, read the rest.
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

/** ClientRequestToken takes 36 characters, 216 bits here. All callers and tables of an account share the space of tokens, so both are in it. */
export function clientToken(table: string, { requestId, principal = '', content }: WriteRequest, part: string): string {
  const identity = JSON.stringify([table, principal, requestId, content, part]);
  return createHash('sha256').update(identity).digest('base64url').slice(0, 36);
}
