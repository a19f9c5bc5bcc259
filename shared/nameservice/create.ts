import { createHash } from 'node:crypto';
import type { TransactWriteItem } from '@aws-sdk/client-dynamodb';
import type { Call } from '../aws/call.ts';
import type { Item } from '../aws/dynamodb.ts';
import { transact } from '../aws/transaction.ts';
import { invalidRequest } from '../errors.ts';
import type { Alias } from './alias.ts';
import { isAbsent, isNoRecord } from './conditions.ts';
import { type NameserviceDependencies, nameserviceTable, type Request } from './dependencies.ts';
import { type Rows, rowsOf, writeTimes } from './record.ts';
import { readRows } from './rows.ts';

/** `at` is the time of writing; `rows` is all that stands under the alias. */
type OnceOutcome = { result: 'won'; at: number } | { result: 'repeated' | 'lost'; rows: Rows };

/** Puts the items of a new alias; lost where it exists. */
export const putNew = (table: string, items: Item[]): TransactWriteItem[] =>
  items.map((item) => ({
    Put: {
      TableName: table,
      Item: item,
      ConditionExpression: item.sk?.S === 'meta' ? isNoRecord : isAbsent,
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
    },
  }));

/**
 * A transaction that a request makes once: DynamoDB remembers its token for ten minutes, and answers a repeat with
 * success and no write. A repeat must be the same to the letter, and ours differs in `updated_at_ms`; so DynamoDB calls
 * it a mismatch, and then the transaction is sent again as it would have been at the times that the standing items
 * tell. If DynamoDB takes one of those, that was this very request.
 * @param itemsAt what to write, given the time of writing
 * @param part tells the transactions of one request apart
 * @throws HoldfastError InvalidRequest (requestId stands for something else), Throttled, Unavailable, OutcomeUnknown
 */
export async function transactOnce(
  dependencies: NameserviceDependencies,
  alias: Alias,
  itemsAt: (now: number) => TransactWriteItem[],
  { request, part }: { request: Request; part: string },
  call: Call,
): Promise<OnceOutcome> {
  const { clock, table } = dependencies;
  const token = clientToken(table, request, part);
  const write = (items: TransactWriteItem[]) =>
    transact(dependencies, { items, token }, nameserviceTable(table, 'write', request), call);

  const at = clock.now();
  const items = itemsAt(at);
  const outcome = await write(items);
  if (outcome.result === 'won') return { result: 'won', at };
  // A lost condition brings its item along. Where fewer came than were asked for, the rest has to be read.
  const known = outcome.result === 'lost' && outcome.old.length === items.length;
  const rows = known ? rowsOf(outcome.old) : await readRows(dependencies, alias, call);
  if (outcome.result === 'lost') return { result: 'lost', rows };

  for (const writtenAt of writeTimes(rows)) {
    const replay = await write(itemsAt(writtenAt));
    if (replay.result === 'won') return { result: 'repeated', rows };
    if (replay.result === 'lost') return { result: 'lost', rows };
  }
  const message = 'stands for another request of the last ten minutes, or for this one before others wrote over it';
  throw invalidRequest([{ path: 'requestId', message }]);
}

/** ClientRequestToken takes 36 characters, 216 bits here. Tokens are an account's, so callers and tables are told apart. */
function clientToken(table: string, { requestId, principal = '' }: Request, part: string): string {
  const identity = JSON.stringify([table, principal, requestId, part]);
  return createHash('sha256').update(identity).digest('base64url').slice(0, 36);
}
