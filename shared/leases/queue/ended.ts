import { QueryCommand } from '@aws-sdk/client-dynamodb';
import type { Call } from '../../aws/call.ts';
import type { Item } from '../../aws/dynamodb.ts';
import { attempt, toHoldfastError } from '../../aws/send.ts';
import { HoldfastError } from '../../errors.ts';
import { type LeaseDependencies, leaseTable } from '../dependencies.ts';
import type { ExecutionEndedInput } from '../inputs.ts';
import { text } from '../record.ts';
import { releaseHeldBy } from './dead.ts';
import { describeExecution } from './delivery.ts';
import { deleteTicket } from './tickets.ts';

export interface ExecutionEnded {
  execution: string;
  /** Tickets that were taken out of their queues. */
  tickets: number;
  /** Leases that ended here. */
  freed: number;
  /** Leases that stay because the execution's target works under them, or may be about to. */
  kept: number;
}

const INDEX = 'by-execution';

/**
 * Takes an execution that has ended out of all queues, and frees its leases. It is told twice: at the end, and `again` a
 * while later, when whatever the execution had under way has written what it would. An execution that was redriven and runs
 * keeps what it has.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export function executionEnder(dependencies: LeaseDependencies) {
  return async ({ execution, again }: ExecutionEndedInput, call: Call): Promise<ExecutionEnded> => {
    const tickets = await ofExecution(dependencies, dependencies.waitersTable, execution, call);
    const leases = await ofExecution(dependencies, dependencies.table, execution, call);
    const ended: ExecutionEnded = { execution, tickets: 0, freed: 0, kept: 0 };
    // A lease that was just granted to one of the tickets may not be in its index yet.
    const keys = new Set([...tickets, ...leases].map(({ key }) => key?.S ?? ''));
    if (keys.size === 0 || (await goesOn(dependencies, execution, again, call))) return ended;
    for (const { key, ticket } of tickets) {
      await deleteTicket(dependencies, { key: key?.S ?? '', ticket: ticket?.S ?? '' }, call);
      ended.tickets++;
    }
    for (const key of keys) {
      const { fate } = await releaseHeldBy(dependencies, key, execution, again, call);
      if (fate === 'freed') ended.freed++;
      else if (fate !== 'other') ended.kept++;
    }
    return ended;
  };
}

/**
 * Right after its end an execution may still be shown as running, and is believed to have ended. One that was redriven may as well
 * run indeed, where the event is a late duplicate of an earlier end: the second pass will tell.
 */
async function goesOn(
  dependencies: LeaseDependencies,
  execution: string,
  again: boolean,
  call: Call,
): Promise<boolean> {
  const { state, redriven } = await describeExecution(dependencies, execution, call);
  return state === 'running' && (again || redriven);
}

async function ofExecution(
  dependencies: LeaseDependencies,
  table: string,
  execution: string,
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
    const tried = await attempt(dependencies.dynamodb, command, call);
    if ('error' in tried) {
      if (tried.error.name !== 'ValidationException')
        throw toHoldfastError(tried.error, leaseTable(table, 'read'), tried.unanswered);
      const detail = `table ${table} has no index ${INDEX}: leases of executions that end there stay until they expire`;
      throw new HoldfastError('Unavailable', detail, { retryAfterMs: 1000 }, { cause: tried.error });
    }
    items.push(...(tried.output.Items ?? []));
    from = tried.output.LastEvaluatedKey;
  } while (from);
  return items;
}
