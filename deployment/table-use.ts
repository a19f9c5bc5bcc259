import { type DynamoDBClient, paginateScan } from '@aws-sdk/client-dynamodb';
import type { Item } from '../shared/aws/dynamodb.ts';
import { isBound, parseKey } from '../shared/locks/record/record.ts';
import { isInstant } from '../shared/surroundings/clock.ts';

/** A write that is more recent than this shows that callers use the restored table, because a restore takes longer. In milliseconds. */
const RECENT_MS = 300_000;

/**
 * Finds out whether callers use a table of leases. Bound leases and permits do not count: they do not expire, so a restored table still has them.
 * @param now epoch milliseconds
 * @returns what shows that callers use the table. Undefined if nothing does
 */
export async function useOf(dynamodb: DynamoDBClient, table: string, now: number): Promise<string | undefined> {
  const { unboundCount, lastWrite } = await unexpiredIn(dynamodb, table, now);
  const isRecent = lastWrite > now - RECENT_MS;
  if (unboundCount === 0 && !isRecent) return undefined;
  const written = isRecent ? `, and the last write was at ${new Date(lastWrite).toISOString()}` : '';
  return `${unboundCount} leases or permits of ${table} are held${written}`;
}

/** A bound lease or permit. */
export interface BoundHolder {
  key: string;
  holder: string;
  fence: number;
  /** The ARN of the execution with which the grant ends. */
  execution: string;
  /** Epoch milliseconds. */
  acquiredAt: number;
}

interface UnexpiredHolders {
  /** The number of leases and permits that are not bound. */
  unboundCount: number;
  /** The keys of these leases and permits, sorted. */
  keys: string[];
  /** The bound leases and permits, sorted by key. */
  bound: BoundHolder[];
  /** When a lease or a permit was last granted, extended or ended, in epoch milliseconds. */
  lastWrite: number;
}

/** @param now epoch milliseconds. A lease that has expired by then does not count */
export async function unexpiredIn(dynamodb: DynamoDBClient, table: string, now: number): Promise<UnexpiredHolders> {
  const found: UnexpiredHolders = { unboundCount: 0, keys: [], bound: [], lastWrite: 0 };
  for await (const { Items = [] } of paginateScan({ client: dynamodb }, { TableName: table, ConsistentRead: true }))
    for (const item of Items) {
      const key = item.key?.S ?? '';
      const { unboundCount, bound, writes } = useOfKey(item, now);
      found.unboundCount += unboundCount;
      if (unboundCount > 0) found.keys.push(key);
      for (const { holder, fence, execution, acquiredAt } of bound)
        found.bound.push({ key, holder, fence, execution, acquiredAt });
      found.lastWrite = Math.max(found.lastWrite, ...writes.filter(isInstant));
    }
  found.keys.sort();
  found.bound.sort((one, other) => (one.key < other.key ? -1 : 1));
  return found;
}

function useOfKey(item: Item, now: number) {
  const { entries, thirdParty, freedAt = 0 } = parseKey('', item);
  const unexpired = entries.filter(({ expiresAt }) => expiresAt > now);
  const bound = unexpired.filter(isBound);
  const others = thirdParty !== undefined && thirdParty.endsAt > now ? 1 : 0;
  return {
    unboundCount: unexpired.length - bound.length + others,
    bound,
    writes: [freedAt, ...entries.map(({ heartbeatAt }) => heartbeatAt)],
  };
}
