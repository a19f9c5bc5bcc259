import { ScanCommand } from '@aws-sdk/client-dynamodb';
import { text } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import { reading, send } from '../../aws/send.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import { AFTER_ALL_TICKETS, parkedAtOf } from './tickets.ts';

/** Reads the oldest row of each key and jumps over the others, so that a long queue costs no more than a short one. */
export async function* keysWithTickets(
  { dynamodb, ids, waitersTable }: LeaseDependencies,
  call: Call,
): AsyncGenerator<{ key: string; parkedAt: number }> {
  const seen = new Set<string>();
  let from: string | undefined = ids.uuid(); // any place in the table will do
  for (let rounds = 0; rounds < 2; ) {
    const command: ScanCommand = new ScanCommand({
      TableName: waitersTable,
      Limit: 1,
      ProjectionExpression: '#key, ticket',
      ExpressionAttributeNames: { '#key': 'key' },
      ...(from !== undefined && { ExclusiveStartKey: { key: text(from), ticket: text(AFTER_ALL_TICKETS) } }),
    });
    const page = await send(dynamodb, { command, operation: reading(`table ${waitersTable}`) }, call);
    const key = page.Items?.[0]?.key?.S;
    if (key === undefined) {
      rounds++;
      from = undefined;
    } else if (seen.has(key)) return;
    else {
      seen.add(key);
      yield { key, parkedAt: parkedAtOf(page.Items?.[0]?.ticket?.S ?? '') };
      from = key;
    }
  }
}
