import { BatchGetItemCommand, type KeysAndAttributes } from '@aws-sdk/client-dynamodb';
import { text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import type { Item } from '../aws/dynamodb.ts';
import { send } from '../aws/send.ts';
import { HoldfastError } from '../errors.ts';
import { type NameserviceDependencies, readingTable } from './dependencies.ts';
import { CONCERNS } from './items.ts';
import { type ItemsByConcern, itemsByConcern } from './record.ts';

/** The most keys that DynamoDB accepts in one request. */
const KEYS_PER_REQUEST = 100;
/** Fast enough for a page of 1,000 aliases, and slow enough to leave capacity of the table to other callers. */
const REQUESTS_AT_ONCE = 4;
/** The keys that DynamoDB has not read are requested five more times, after about 50, 100, 200, 400 and 800 ms. */
const FIRST_BATCH_PAUSE_MS = 50;
const MAX_RETRIES = 5;

/**
 * Reads the items of many aliases, strongly consistent. Keys that DynamoDB leaves unprocessed are requested again.
 * @param pks the partition keys
 * @throws HoldfastError Throttled, Unavailable
 */
export async function readMany(
  dependencies: NameserviceDependencies,
  pks: string[],
  call: Call,
): Promise<Map<string, ItemsByConcern>> {
  const keys = pks.flatMap((pk) => CONCERNS.map((concern) => ({ pk: text(pk), sk: text(concern) })));
  const batches: Item[][] = [];
  for (let from = 0; from < keys.length; from += KEYS_PER_REQUEST)
    batches.push(keys.slice(from, from + KEYS_PER_REQUEST));

  const items: Item[] = [];
  const work = batches.values();
  // After a failure the other readers stop. The call waits for them, so that no request is under way after its answer.
  const stop = new AbortController();
  const failures: unknown[] = [];
  const stoppable = { ...call, signal: AbortSignal.any([call.signal, stop.signal]) };
  const reader = async () => {
    try {
      for (const batch of work) {
        if (failures.length > 0) return;
        items.push(...(await readBatch(dependencies, batch, stoppable)));
      }
    } catch (error) {
      failures.push(error);
      stop.abort();
    }
  };
  await Promise.all(Array.from({ length: REQUESTS_AT_ONCE }, reader));
  // The first failure is the cause. The other readers fail because they were stopped.
  if (failures.length > 0) throw failures[0];
  const byAlias = Map.groupBy(items, ({ pk }) => pk?.S ?? '');
  return new Map([...byAlias].map(([pk, ofAlias]) => [pk, itemsByConcern(ofAlias)]));
}

async function readBatch(
  { dynamodb, clock, ids, table }: NameserviceDependencies,
  keys: Item[],
  call: Call,
): Promise<Item[]> {
  const items: Item[] = [];
  let wanted: KeysAndAttributes = { Keys: keys, ConsistentRead: true };
  for (let retries = 0; ; retries++) {
    const command = new BatchGetItemCommand({ RequestItems: { [table]: wanted } });
    const output = await send(dynamodb, { command, operation: readingTable(table) }, call);
    items.push(...(output.Responses?.[table] ?? []));
    const left = output.UnprocessedKeys?.[table];
    if (!left?.Keys?.length) return items;
    if (retries === MAX_RETRIES)
      throw new HoldfastError('Throttled', `table ${table} throttles requests: send the call again later`, {
        retryAfterMs: 1000,
      });
    wanted = left;
    const pause = FIRST_BATCH_PAUSE_MS * 2 ** retries * (0.5 + ids.random() / 2);
    await clock.sleep(Math.min(pause, call.timeLeftMs()), call.signal);
  }
}
