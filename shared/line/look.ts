import { BatchGetItemCommand, GetItemCommand } from '@aws-sdk/client-dynamodb';
import { text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import type { Item } from '../aws/dynamodb.ts';
import { reading, send } from '../aws/send.ts';
import type { LeaseDependencies } from './dependencies.ts';
import { leftToNextLook } from './executions/bound-grant.ts';
import { isTask, parseWaiter, type WaitingCall } from './waiters.ts';

/** The table and the key of the record that a call waits for. */
export interface Location<Record> {
  table: string;
  key: Item;
  parse(item: Item | undefined): Record;
}

/** What a call in line saw. `row` is absent if the call did not read its own row. */
export interface Seen<Record> {
  record: Record;
  row?: WaitingCall | 'gone';
}

type Name = Pick<WaitingCall, 'key' | 'ticket'>;

/**
 * Asks about the executions of bound holders beside a wait, one look at a time: a slow answer of AWS must not keep the call from its own grant. If the
 * call returns first, the look stops like a call that exits, and each of its writes names the version from before the question.
 */
export function looksBeside<Rec>(lock: {
  lookAtHolders?(record: Rec, isNext: boolean): Promise<unknown>;
}): (record: Rec, isNext: boolean) => void {
  let isLooking = false;
  const end = () => {
    isLooking = false;
  };
  return (record, isNext) => {
    if (isLooking || !lock.lookAtHolders) return;
    isLooking = true;
    lock.lookAtHolders(record, isNext).catch(leftToNextLook).then(end);
  };
}

/** An eventually consistent read of the record: half a read unit. @throws HoldfastError Throttled, Unavailable */
export async function pollRecord<Record>(
  { dynamodb }: LeaseDependencies,
  { table, key, parse }: Location<Record>,
  call: Call,
): Promise<Record> {
  const command = new GetItemCommand({ TableName: table, Key: key });
  const { Item: item } = await send(dynamodb, { command, operation: reading(`table ${table}`) }, call);
  return parse(item);
}

/** Reads the record as `pollRecord` does, and the row of the call by a consistent read, in one request. @throws HoldfastError Throttled, Unavailable */
export async function pollRecordAndWaiter<Record>(
  dependencies: LeaseDependencies,
  { place, name }: { place: Location<Record>; name: Name },
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
  // DynamoDB may leave out one of the two items. The next look reads it.
  if (left[table]) return { record: await pollRecord(dependencies, place, call) };
  const record = parse(found[table]?.[0]);
  return left[waitersTable] ? { record } : { record, row: rowOf(found[waitersTable]?.[0]) };
}

function rowOf(item: Item | undefined): WaitingCall | 'gone' {
  const waiter = item && parseWaiter(item);
  return waiter && !isTask(waiter) ? waiter : 'gone';
}
