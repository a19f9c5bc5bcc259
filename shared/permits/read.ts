import { GetItemCommand } from '@aws-sdk/client-dynamodb';
import { text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { reading, send } from '../aws/send.ts';
import { DEFAULT_LIMIT } from '../fields.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import type { Location } from '../line/look.ts';
import { type PoolRecord, parsePool } from './record.ts';
import { type PoolView, poolView } from './views.ts';

interface ReadPool {
  key: string;
  /** Whether to list the tasks and callers in line. */
  waiters?: boolean | undefined;
  limit?: number | undefined;
}

/** Reads the holders of a pool, with a consistent read, and the tasks and callers in line. @throws HoldfastError Throttled, Unavailable */
export function lookUpPool(dependencies: LeaseDependencies) {
  return async ({ key, waiters, limit = DEFAULT_LIMIT }: ReadPool, call: Call): Promise<PoolView> => {
    const record = await readPool(dependencies, key, call);
    const now = dependencies.clock.now();
    const view = poolView(record, now);
    // Without the mark no call waits, unless another client dropped the mark, which the schedule puts back. But callers that have left may come back.
    if (record.mark === undefined && !(Number(record.lineUntil) > now) && !waiters) return { ...view, waiting: 0 };
    const { readWaiting } = await import('../line/listed-waiters.ts');
    const granted = new Set(record.entries.map(({ ticket }) => ticket));
    const asked = { key: key, granted, limit: waiters ? limit : 0 };
    const line = await readWaiting(dependencies, asked, call);
    return { ...view, waiting: line.waiting, ...(waiters && { waiters: line.waiters }) };
  };
}

/** For line/look.ts. */
export const locationOf = ({ table }: LeaseDependencies, key: string): Location<PoolRecord> => ({
  table: table,
  key: { key: text(key) },
  parse: (item) => parsePool(key, item),
});

/** @throws HoldfastError Throttled, Unavailable */
export async function readPool({ dynamodb, table }: LeaseDependencies, key: string, call: Call): Promise<PoolRecord> {
  const command = new GetItemCommand({ TableName: table, Key: { key: text(key) }, ConsistentRead: true });
  const { Item: item } = await send(dynamodb, { command, operation: reading(`table ${table}`) }, call);
  return parsePool(key, item);
}
