import { BatchGetItemCommand, GetItemCommand } from '@aws-sdk/client-dynamodb';
import { text } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import type { Item } from '../../aws/dynamodb.ts';
import { reading, send } from '../../aws/send.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import { type LeaseRecord, parseRecord } from '../record.ts';
import { type CallTicket, isTask, parseTicket } from './tickets.ts';

/** What a call in line saw. `row` is absent if it did not ask for its ticket. */
export interface Seen {
  record: LeaseRecord;
  row?: CallTicket | 'gone';
}

type Name = Pick<CallTicket, 'key' | 'ticket'>;

/** An eventually consistent read of the record: half a read unit. @throws HoldfastError Throttled, Unavailable */
export async function lookAtRecord({ dynamodb, table }: LeaseDependencies, key: string, call: Call): Promise<Seen> {
  const command = new GetItemCommand({ TableName: table, Key: { key: text(key) } });
  const { Item: item } = await send(dynamodb, { command, operation: reading(`table ${table}`) }, call);
  return { record: item ? parseRecord(item) : { key } };
}

/** The same with the ticket of the call, by a consistent read, in one request. @throws HoldfastError Throttled, Unavailable */
export async function lookAtBoth(dependencies: LeaseDependencies, { key, ticket }: Name, call: Call): Promise<Seen> {
  const { dynamodb, table, waitersTable } = dependencies;
  const command = new BatchGetItemCommand({
    RequestItems: {
      [table]: { Keys: [{ key: text(key) }] },
      [waitersTable]: { Keys: [{ key: text(key), ticket: text(ticket) }], ConsistentRead: true },
    },
  });
  const operation = reading(`tables ${table} and ${waitersTable}`);
  const { Responses: found = {}, UnprocessedKeys: left = {} } = await send(dynamodb, { command, operation }, call);
  const [item] = found[table] ?? [];
  const record = item ? parseRecord(item) : { key };
  // DynamoDB may leave one of the two out. The next look brings it.
  if (left[table]) return lookAtRecord(dependencies, key, call);
  return left[waitersTable] ? { record } : { record, row: rowOf(found[waitersTable]?.[0]) };
}

function rowOf(item: Item | undefined): CallTicket | 'gone' {
  const ticket = item && parseTicket(item);
  return ticket && !isTask(ticket) ? ticket : 'gone';
}
