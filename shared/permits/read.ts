import { GetItemCommand } from '@aws-sdk/client-dynamodb';
import { text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { reading, send } from '../aws/send.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { type PoolRecord, parsePool } from './record.ts';

/** @throws HoldfastError Throttled, Unavailable */
export async function readPool({ dynamodb, table }: LeaseDependencies, key: string, call: Call): Promise<PoolRecord> {
  const command = new GetItemCommand({ TableName: table, Key: { key: text(key) }, ConsistentRead: true });
  const { Item: item } = await send(dynamodb, { command, operation: reading(`table ${table}`) }, call);
  return parsePool(key, item);
}
