import { GetItemCommand } from '@aws-sdk/client-dynamodb';
import { text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { reading, send } from '../aws/send.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import type { Location } from '../line/look.ts';
import { type LeaseRecord, parseRecord } from './record.ts';

/** For line/look.ts. */
export const locationOf = ({ table }: LeaseDependencies, key: string): Location<LeaseRecord> => ({
  table,
  key: { key: text(key) },
  parse: (item) => (item ? parseRecord(item) : { key }),
});

/** Strongly consistent. A key without a record is free. */
export async function readRecord(
  { dynamodb, table }: LeaseDependencies,
  key: string,
  call: Call,
): Promise<LeaseRecord> {
  const command = new GetItemCommand({ TableName: table, Key: { key: text(key) }, ConsistentRead: true });
  const { Item: item } = await send(dynamodb, { command, operation: reading(`table ${table}`) }, call);
  return item ? parseRecord(item) : { key };
}
