import { QueryCommand } from '@aws-sdk/client-dynamodb';
import { text } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import type { Item } from '../../aws/dynamodb.ts';
import { attempt, reading, toHoldfastError } from '../../aws/send.ts';
import { HoldfastError } from '../../errors.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import { EXECUTION_ROW } from '../waiters.ts';

const INDEX = 'by-execution';

/**
 * The tickets of an execution, by the keys at which it stands in line or may hold something.
 * @throws HoldfastError Throttled, Unavailable
 */
export async function keysOf(
  dependencies: LeaseDependencies,
  execution: string,
  call: Call,
): Promise<Map<string, string[]>> {
  const { table, waitersTable } = dependencies;
  // Waiters, and the rows of the pools in which the execution may hold permits.
  const rows = await ofExecution(dependencies, { table: waitersTable, execution }, call);
  // A lease that was just granted to one of the tickets may not be in its index yet.
  const leases = await ofExecution(dependencies, { table, execution }, call);
  const keys = Map.groupBy([...rows, ...leases], ({ key }) => key?.S ?? '');
  const ticketOf = ({ ticket }: Item): string[] =>
    ticket?.S === undefined || ticket.S.startsWith(EXECUTION_ROW) ? [] : [ticket.S];
  return new Map([...keys].map(([key, found]) => [key, found.flatMap(ticketOf)]));
}

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
      const detail = `table ${table} has no index ${INDEX}: leases and permits of executions that end stay until they expire`;
      throw new HoldfastError('Unavailable', detail, { retryAfterMs: 1000, cause: tried.error });
    }
    items.push(...(tried.output.Items ?? []));
    from = tried.output.LastEvaluatedKey;
  } while (from);
  return items;
}
