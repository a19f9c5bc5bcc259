import { BatchGetItemCommand, GetItemCommand } from '@aws-sdk/client-dynamodb';
import { text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import type { Item } from '../aws/dynamodb.ts';
import { reading, send } from '../aws/send.ts';
import { type PoolRecord, parsePool } from '../permits/record.ts';
import type { LeaseDependencies } from './dependencies.ts';
import { leftToNextLook } from './executions/bound-grant.ts';
import type { Lock } from './lock.ts';
import { isTask, parseWaiter, type WaitingCall } from './waiters.ts';

/** What a call in line saw. `row` is absent if the call did not read its own row. */
export interface Seen {
  record: PoolRecord;
  row?: WaitingCall | 'gone';
}

type Name = Pick<WaitingCall, 'key' | 'ticket'>;

/**
 * Asks about the executions of bound holders beside a wait, one look at a time, because a slow answer of AWS must not keep the call from its own grant. If the
 * call returns first, the look may stop at any point. That is safe, because each of its writes names the version from before the question.
 */
export function looksBeside(lock: Pick<Lock, 'lookAtHolders'>): (record: PoolRecord, isNext: boolean) => void {
  let isLooking = false;
  const end = () => {
    isLooking = false;
  };
  return (record, isNext) => {
    if (isLooking) return;
    isLooking = true;
    lock.lookAtHolders(record, isNext).catch(leftToNextLook).then(end);
  };
}

/** An eventually consistent read of a record: half a read unit. @throws HoldfastError Throttled, Unavailable */
export async function pollItem(
  { dynamodb, table }: LeaseDependencies,
  key: string,
  call: Call,
): Promise<Item | undefined> {
  const command = new GetItemCommand({ TableName: table, Key: { key: text(key) } });
  const { Item: item } = await send(dynamodb, { command, operation: reading(`table ${table}`) }, call);
  return item;
}

/** The same of the record of a key. @throws HoldfastError Throttled, Unavailable */
export const pollRecord = async (dependencies: LeaseDependencies, key: string, call: Call): Promise<PoolRecord> =>
  parsePool(key, await pollItem(dependencies, key, call));

/** Reads the record as `pollRecord` does, and the row of the call by a consistent read, in one request. @throws HoldfastError Throttled, Unavailable */
export async function pollRecordAndWaiter(
  dependencies: LeaseDependencies,
  { key, ticket }: Name,
  call: Call,
): Promise<Seen> {
  const { dynamodb, table, waitersTable } = dependencies;
  const command = new BatchGetItemCommand({
    RequestItems: {
      [table]: { Keys: [{ key: text(key) }] },
      [waitersTable]: { Keys: [{ key: text(key), ticket: text(ticket) }], ConsistentRead: true },
    },
  });
  const operation = reading(`tables ${table} and ${waitersTable}`);
  const { Responses: found = {}, UnprocessedKeys: left = {} } = await send(dynamodb, { command, operation }, call);
  // DynamoDB may leave out one of the two items. The next look reads it.
  if (left[table]) return { record: await pollRecord(dependencies, key, call) };
  const record = parsePool(key, found[table]?.[0]);
  return left[waitersTable] ? { record } : { record, row: rowOf(found[waitersTable]?.[0]) };
}

function rowOf(item: Item | undefined): WaitingCall | 'gone' {
  const waiter = item && parseWaiter(item);
  return waiter && !isTask(waiter) ? waiter : 'gone';
}
