import { QueryCommand } from '@aws-sdk/client-dynamodb';
import { text } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import type { Item } from '../../aws/dynamodb.ts';
import { attempt, reading, toHoldfastError } from '../../aws/send.ts';
import { HoldfastError } from '../../errors.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import { EXECUTION_ROW } from '../waiters.ts';

const INDEX = 'by-execution';

interface Asked {
  execution: string;
  /** Receives the failure of each query. What the other query has found must not wait for a retry. */
  failed(error: unknown): void;
}

/** The keys at which an execution stands in line or may hold something, with its tickets. */
export async function keysOf(
  dependencies: LeaseDependencies,
  { execution, failed }: Asked,
  call: Call,
): Promise<Map<string, string[]>> {
  const lookUp = (table: string): Promise<Item[]> =>
    ofExecution(dependencies, { table, execution }, call).catch((error) => {
      failed(error);
      return [];
    });
  // Waiters, and the rows of the keys of which the execution may hold permits.
  const rows = await lookUp(dependencies.waitersTable);
  // A lease that was just granted to one of the tickets may not be in its index yet.
  const leases = await lookUp(dependencies.table);
  const keys = Map.groupBy([...rows, ...leases], ({ key }) => key?.S ?? '');
  return new Map([...keys].map(([key, items]) => [key, ticketsIn(items)]));
}

const ticketsIn = (items: readonly Item[]): string[] =>
  items.flatMap(({ ticket }) => ticket?.S ?? []).filter((name) => !name.startsWith(EXECUTION_ROW));

interface Index {
  table: string;
  execution: string;
}

async function ofExecution({ dynamodb }: LeaseDependencies, { table, execution }: Index, call: Call): Promise<Item[]> {
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
