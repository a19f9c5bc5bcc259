import { GetItemCommand } from '@aws-sdk/client-dynamodb';
import type { Call } from '../../aws/call.ts';
import { reading, send } from '../../aws/send.ts';
import type { PoolDependencies } from './dependencies.ts';
import { keyOf, type PoolRecord, parsePool } from './record.ts';
import { type PoolView, poolView } from './views.ts';

/** Reads who holds permits of a key, with a consistent read. @throws HoldfastError Throttled, Unavailable */
export function poolReader(dependencies: PoolDependencies) {
  return async ({ key }: { key: string }, call: Call): Promise<PoolView> =>
    poolView(await readPool(dependencies, key, call), dependencies.clock.now());
}

/** @throws HoldfastError Throttled, Unavailable */
export async function readPool(
  { dynamodb, poolsTable }: PoolDependencies,
  key: string,
  call: Call,
): Promise<PoolRecord> {
  const command = new GetItemCommand({ TableName: poolsTable, Key: keyOf(key), ConsistentRead: true });
  const { Item: item } = await send(dynamodb, { command, operation: reading(`table ${poolsTable}`) }, call);
  return parsePool(key, item);
}
