import { QueryCommand } from '@aws-sdk/client-dynamodb';
import { text } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import type { Item } from '../../aws/dynamodb.ts';
import { attempt, reading, toHoldfastError } from '../../aws/send.ts';
import { HoldfastError } from '../../errors.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import { lineKeyOf } from '../waiters.ts';

const INDEX = 'by-execution';

interface Asked {
  execution: string;
  /** The service calls this if the table of pools does not answer, because that must not keep a lease from being freed. */
  failed(error: unknown): void;
}

/**
 * The tickets of an execution, by the keys at which it stands in line or may hold something. The key of a pool's line stands for the pool.
 * @throws HoldfastError Throttled, Unavailable
 */
export async function keysOf(
  dependencies: LeaseDependencies,
  { execution, failed }: Asked,
  call: Call,
): Promise<Map<string, string[]>> {
  const { table, waitersTable, poolsTable } = dependencies;
  const ask = (where: string, what: string) => ofExecution(dependencies, { table: where, what, execution }, call);
  const tickets = await ask(waitersTable, 'leases');
  // A lease that was just granted to one of the tickets may not be in its index yet.
  const leases = await ask(table, 'leases');
  const pools =
    poolsTable === undefined
      ? []
      : await ask(poolsTable, 'permits').catch((error) => {
          failed(error);
          return [];
        });
  const items = [...tickets, ...leases, ...pools.map((row) => ({ key: text(lineKeyOf(row.key?.S ?? '')) }) as Item)];
  const keys = Map.groupBy(items, ({ key }) => key?.S ?? '');
  return new Map([...keys].map(([key, found]) => [key, found.flatMap(({ ticket }) => ticket?.S ?? [])]));
}

interface Index {
  table: string;
  /** What the service would not find without it. */
  what: string;
  execution: string;
}

async function ofExecution(
  { dynamodb }: LeaseDependencies,
  { table, what, execution }: Index,
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
      const detail = `table ${table} has no index ${INDEX}: ${what} of executions that end there stay until they expire`;
      throw new HoldfastError('Unavailable', detail, { retryAfterMs: 1000, cause: tried.error });
    }
    items.push(...(tried.output.Items ?? []));
    from = tried.output.LastEvaluatedKey;
  } while (from);
  return items;
}
