import { BatchGetItemCommand, GetItemCommand } from '@aws-sdk/client-dynamodb';
import { text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import type { Item } from '../aws/dynamodb.ts';
import { reading, send } from '../aws/send.ts';
import type { LeaseDependencies } from './dependencies.ts';
import { type CallTicket, isTask, parseTicket } from './waiters.ts';

/** Where the record is that a call waits for. */
export interface Place<Record> {
  table: string;
  key: Item;
  parse(item: Item | undefined): Record;
}

/** What a call in line saw. `row` is absent if it did not ask for its ticket. */
export interface Seen<Record> {
  record: Record;
  row?: CallTicket | 'gone';
}

type Name = Pick<CallTicket, 'key' | 'ticket'>;

/** An eventually consistent read of the record: half a read unit. @throws HoldfastError Throttled, Unavailable */
export async function lookAtRecord<Record>(
  { dynamodb }: LeaseDependencies,
  { table, key, parse }: Place<Record>,
  call: Call,
): Promise<Record> {
  const command = new GetItemCommand({ TableName: table, Key: key });
  const { Item: item } = await send(dynamodb, { command, operation: reading(`table ${table}`) }, call);
  return parse(item);
}

/** The same with the ticket of the call, by a consistent read, in one request. @throws HoldfastError Throttled, Unavailable */
export async function lookAtBoth<Record>(
  dependencies: LeaseDependencies,
  { place, name }: { place: Place<Record>; name: Name },
  call: Call,
): Promise<Seen<Record>> {
  const { dynamodb, waitersTable } = dependencies;
  const { table, key, parse } = place;
  const command = new BatchGetItemCommand({
    RequestItems: {
      [table]: { Keys: [key] },
      [waitersTable]: { Keys: [{ key: text(name.key), ticket: text(name.ticket) }], ConsistentRead: true },
    },
  });
  const operation = reading(`tables ${table} and ${waitersTable}`);
  const { Responses: found = {}, UnprocessedKeys: left = {} } = await send(dynamodb, { command, operation }, call);
  // DynamoDB may leave one of the two out. The next look brings it.
  if (left[table]) return { record: await lookAtRecord(dependencies, place, call) };
  const record = parse(found[table]?.[0]);
  return left[waitersTable] ? { record } : { record, row: rowOf(found[waitersTable]?.[0]) };
}

function rowOf(item: Item | undefined): CallTicket | 'gone' {
  const ticket = item && parseTicket(item);
  return ticket && !isTask(ticket) ? ticket : 'gone';
}
