import { ScanCommand } from '@aws-sdk/client-dynamodb';
import { text } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import { reading, send } from '../../aws/send.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import { AFTER_ALL_ROWS, EXECUTION_ROW, parkedAtOf } from '../waiters.ts';

/** The most rows of one page. */
const MAX_PAGE = 32;

/**
 * Reads the oldest row of each key and jumps over the others, so that a long line costs no more than a short one. While the pages show one row of
 * each key, they grow, so that many short lines do not cost a request each.
 */
export async function* keysWithWaiters(
  { dynamodb, ids, waitersTable }: LeaseDependencies,
  call: Call,
): AsyncGenerator<{ key: string; parkedAt: number }> {
  const seen = new Set<string>();
  let from: string | undefined = ids.uuid(); // any place in the table will do
  let limit = 1;
  for (let rounds = 0; rounds < 2; ) {
    const command: ScanCommand = new ScanCommand({
      TableName: waitersTable,
      Limit: limit,
      ProjectionExpression: '#key, ticket',
      ExpressionAttributeNames: { '#key': 'key' },
      ...(from !== undefined && { ExclusiveStartKey: { key: text(from), ticket: text(AFTER_ALL_ROWS) } }),
    });
    const { Items: rows = [] } = await send(dynamodb, { command, operation: reading(`table ${waitersTable}`) }, call);
    const oldest = new Map(rows.map(({ key, ticket }) => [key?.S ?? '', ticket?.S ?? ''] as const).toReversed());
    limit = oldest.size === rows.length ? Math.min(2 * limit, MAX_PAGE) : Math.ceil(limit / 2);
    if (rows.length === 0) rounds++;
    from = rows.at(-1)?.key?.S;
    for (const [key, ticket] of [...oldest].toReversed()) {
      if (seen.has(key)) return;
      seen.add(key);
      // Such a key has no waiters, only the rows of executions.
      if (ticket.startsWith(EXECUTION_ROW)) continue;
      yield { key, parkedAt: parkedAtOf(ticket) };
    }
  }
}
