import { createHash } from 'node:crypto';
import { DeleteItemCommand, QueryCommand, UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { integer, text } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import { aliased, any, conditionFields } from '../../aws/condition.ts';
import { conditionalWrite, type Item } from '../../aws/dynamodb.ts';
import { attempt, reading, toHoldfastError, writing } from '../../aws/send.ts';
import { HoldfastError } from '../../errors.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import { EXECUTION_ROW } from '../line/waiters.ts';
import { ttlAfter } from '../record/requests.ts';

// The rows of executions in the waiters table. When an execution ends, the index of that table finds the keys at which
// it may hold permits.

/** The longest call. A row that is younger may belong to a call that is about to receive its permit. */
const LONGEST_CALL_MS = 60_000;

interface ExecutionAtKey {
  key: string;
  execution: string;
}

const executionRow = ({ key, execution }: ExecutionAtKey): Item => ({
  key: text(key),
  ticket: text(`${EXECUTION_ROW}${createHash('sha256').update(execution).digest('base64url').slice(0, 16)}`),
});

/**
 * Notes that the execution may hold permits of the key (docs/protocols/executions.md#rows-of-executions). Call this
 * before the permit is granted: a permit that no index finds would keep its room for its whole ttl.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function noteExecution(
  { dynamodb, waitersTable, clock }: LeaseDependencies,
  noted: ExecutionAtKey,
  call: Call,
): Promise<void> {
  const now = clock.now();
  const command = new UpdateItemCommand({
    TableName: waitersTable,
    Key: executionRow(noted),
    UpdateExpression: 'SET #execution = :execution, #at = :now, #ttl = :ttl',
    ...conditionFields(any(aliased('attribute_not_exists(#at)'), aliased('#at < :now', { ':now': integer(now) })), {
      names: { '#execution': 'execution', '#ttl': 'ttl' },
      values: { ':execution': text(noted.execution), ':ttl': ttlAfter(now) },
    }),
  });
  await conditionalWrite(dynamodb, { command, operation: writing(`table ${waitersTable}`) }, call);
}

/**
 * Deletes the row of an execution that holds nothing any more, unless a call may have written the row again.
 * @param row `askedAt`: when the run for this execution began, before it asked AWS
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function forgetExecution(
  { dynamodb, waitersTable }: LeaseDependencies,
  { askedAt, ...noted }: ExecutionAtKey & { askedAt: number },
  call: Call,
): Promise<void> {
  const command = new DeleteItemCommand({
    TableName: waitersTable,
    Key: executionRow(noted),
    ...conditionFields(aliased('#at < :before', { ':before': integer(askedAt - LONGEST_CALL_MS) })),
  });
  await conditionalWrite(dynamodb, { command, operation: writing(`table ${waitersTable}`) }, call);
}

const INDEX = 'by-execution';

/**
 * Finds the keys at which an execution stands in line, or may hold a grant.
 * @param query `failed` is called with the error of a query. The run then continues with the keys of the other query
 * @returns the tickets of the execution by key
 */
export async function keysOf(
  dependencies: LeaseDependencies,
  { execution, failed }: { execution: string; failed(error: unknown): void },
  call: Call,
): Promise<Map<string, string[]>> {
  const queryIndex = (table: string): Promise<Item[]> =>
    readByExecution(dependencies, { table, execution }, call).catch((error) => {
      failed(error);
      return [];
    });
  // The order matters: a ticket may receive its lease between the queries. Its row is then in the first answer,
  // although the index of leases lags.
  const rows = await queryIndex(dependencies.waitersTable);
  const leases = await queryIndex(dependencies.table);
  const keys = Map.groupBy([...rows, ...leases], ({ key }) => key?.S ?? '');
  return new Map([...keys].map(([key, items]) => [key, ticketsIn(items)]));
}

const ticketsIn = (items: readonly Item[]): string[] =>
  items.flatMap(({ ticket }) => ticket?.S ?? []).filter((name) => !name.startsWith(EXECUTION_ROW));

async function readByExecution(
  { dynamodb }: LeaseDependencies,
  { table, execution }: { table: string; execution: string },
  call: Call,
): Promise<Item[]> {
  const items: Item[] = [];
  let from: Item | undefined;
  do {
    const command: QueryCommand = new QueryCommand({
      TableName: table,
      IndexName: INDEX,
      KeyConditionExpression: 'execution = :execution',
      ExpressionAttributeValues: { ':execution': text(execution) },
      ...(from && { ExclusiveStartKey: from }),
    });
    const tried = await attempt(dynamodb, { command }, call);
    if ('error' in tried) {
      if (tried.error.name !== 'ValidationException')
        throw toHoldfastError(tried.error, reading(`table ${table}`), tried.unanswered);
      const detail = `table ${table} has no index ${INDEX}, so leases and permits stay until they expire after their executions end: create the index`;
      throw new HoldfastError('Unavailable', detail, { retryAfterMs: 1000, cause: tried.error });
    }
    items.push(...(tried.output.Items ?? []));
    from = tried.output.LastEvaluatedKey;
  } while (from);
  return items;
}
