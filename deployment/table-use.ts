import { type DynamoDBClient, paginateScan } from '@aws-sdk/client-dynamodb';
import type { Item } from '../shared/aws/dynamodb.ts';
import { parseRecord } from '../shared/leases/record.ts';
import { stateOf } from '../shared/leases/rules.ts';
import { isPool } from '../shared/line/kind.ts';
import { parsePool } from '../shared/permits/record.ts';
import { isInstant } from '../shared/surroundings/clock.ts';

/** A restore takes longer than this, so a restored table that callers do not use yet has no such write. In milliseconds. */
const RECENT_MS = 300_000;

/**
 * @param now epoch milliseconds
 * @returns what shows that callers use a table of leases; undefined if nothing does
 */
export async function useOf(dynamodb: DynamoDBClient, table: string, now: number): Promise<string | undefined> {
  const { held, lastWrite } = await heldIn(dynamodb, table, now);
  const isRecent = lastWrite > now - RECENT_MS;
  if (held === 0 && !isRecent) return undefined;
  const written = isRecent ? `, and the last write was at ${new Date(lastWrite).toISOString()}` : '';
  return `${held} leases or permits of ${table} are held${written}`;
}

/** What a table of leases holds. */
interface Held {
  /** The number of leases and permits. */
  held: number;
  /** The keys of these, in order. */
  keys: string[];
  /** When a lease or a permit was last granted, extended or ended, in epoch milliseconds. */
  lastWrite: number;
}

/** @param now epoch milliseconds: a lease that has expired by then is not held */
export async function heldIn(dynamodb: DynamoDBClient, table: string, now: number): Promise<Held> {
  const found: Held = { held: 0, keys: [], lastWrite: 0 };
  for await (const { Items = [] } of paginateScan({ client: dynamodb }, { TableName: table, ConsistentRead: true }))
    for (const item of Items) {
      const { isHeld, writes } = isPool(item) ? ofPool(item, now) : ofLease(item, now);
      found.held += isHeld;
      if (isHeld > 0) found.keys.push(item.key?.S ?? '');
      found.lastWrite = Math.max(found.lastWrite, ...writes.filter(isInstant));
    }
  found.keys.sort();
  return found;
}

function ofLease(item: Item, now: number) {
  const record = parseRecord(item);
  const { expiresAt = 0, ttlMs = 0, releasedAt, brokenAt } = record;
  return {
    isHeld: Number(stateOf(record, now) === 'held'),
    writes: [expiresAt - ttlMs, releasedAt ?? 0, brokenAt ?? 0],
  };
}

function ofPool(item: Item, now: number) {
  const { entries } = parsePool('', item);
  return {
    isHeld: entries.filter(({ expiresAt }) => expiresAt > now).length,
    writes: entries.map(({ expiresAt, ttlMs }) => expiresAt - ttlMs),
  };
}
