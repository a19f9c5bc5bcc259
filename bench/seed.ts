import { BatchWriteItemCommand, type DynamoDBClient, type WriteRequest } from '@aws-sdk/client-dynamodb';
import { integer, text } from '../shared/aws/attributes.ts';
import type { Item } from '../shared/aws/dynamodb.ts';
import {
  EXCLUSIVE_PATH,
  EXCLUSIVE_WEIGHT,
  HOLDFAST_LEASE_VERSION,
  nameOfRequest,
} from '../shared/locks/record/identity.ts';
import { entryItem } from '../shared/locks/record/new-entries.ts';
import { secondsAttribute } from '../shared/locks/record/requests.ts';

const BATCH = 25;
const AT_A_TIME = 8;

interface Seed {
  table: string;
  count: number;
  /** The item with this number. */
  item: (at: number) => Item;
}

/** Fills a table with many batches at a time. */
export async function seed(
  dynamodb: DynamoDBClient,
  { table, count, item }: Seed,
  progress: (done: number) => void = () => {},
): Promise<void> {
  let next = 0;
  const fill = async () => {
    while (next < count) {
      const from = next;
      next += BATCH;
      const size = Math.min(BATCH, count - from);
      let puts: WriteRequest[] = Array.from({ length: size }, (_, at) => ({ PutRequest: { Item: item(from + at) } }));
      while (puts.length > 0) {
        const { UnprocessedItems } = await dynamodb.send(
          new BatchWriteItemCommand({ RequestItems: { [table]: puts } }),
        );
        puts = UnprocessedItems?.[table] ?? [];
      }
      if ((from / BATCH) % 400 === 0) progress(from);
    }
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, fill));
}

export const seededKey = (at: number) => `seeded ${at}`;

/** A lease that expired an hour ago while it was held. */
export const abandonedLease = (at: number): Item => leaseOfAMinute(at, Date.now() - 3_660_000);

/** A lease of a minute that lives for a day, because it was granted by a clock that is ahead. */
export const livingLease = (at: number): Item => leaseOfAMinute(at, Date.now() + 86_400_000);

/** The record of a key whose shared holders have left. */
export function freeKey(key: string): Item {
  const fence = integer(Date.now() - 3_600_000);
  const expiry = integer(Math.ceil(Date.now() / 1000) + 400 * 86_400);
  return { key: text(key), lease_version: text(HOLDFAST_LEASE_VERSION), lease_expiry: expiry, fence, used: integer(0) };
}

function leaseOfAMinute(at: number, acquiredAt: number): Item {
  const holder = 'seed';
  const [ttlMs, expiresAt] = [60_000, acquiredAt + 60_000];
  const [name, weight] = [nameOfRequest({ holder, requestId: `request-${at}` }), EXCLUSIVE_WEIGHT];
  const [id, version] = [`lease-${at}`, `version-${at}`];
  return {
    ...{
      key: text(seededKey(at)),
      lease_version: text(HOLDFAST_LEASE_VERSION),
      lease_expiry: secondsAttribute(expiresAt),
    },
    ...{ fence: integer(acquiredAt), used: integer(weight) },
    [EXCLUSIVE_PATH]: entryItem({
      name,
      path: EXCLUSIVE_PATH,
      id,
      version,
      holder,
      expiresAt,
      ttlMs,
      acquiredAt,
      weight,
    }),
  };
}
