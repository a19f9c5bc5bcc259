import { GetItemCommand } from '@aws-sdk/client-dynamodb';
import type { Call } from '../../aws/call.ts';
import { send } from '../../aws/send.ts';
import { type LeaseDependencies, leaseTable } from '../dependencies.ts';
import { type LeaseRecord, parseRecord, text } from '../record.ts';

/** Strongly consistent; a key that nobody has is free. */
export async function readRecord(
  { dynamodb, table }: LeaseDependencies,
  key: string,
  call: Call,
): Promise<LeaseRecord> {
  const command = new GetItemCommand({ TableName: table, Key: { key: text(key) }, ConsistentRead: true });
  const { Item: item } = await send(dynamodb, command, leaseTable(table, 'read'), call);
  return item ? parseRecord(item) : { key };
}
