import { randomUUID } from 'node:crypto';
import { DeleteItemCommand, GetItemCommand, PutItemCommand, QueryCommand } from '@aws-sdk/client-dynamodb';
import { integer, text } from '../../../shared/aws/attributes.ts';
import type { Item } from '../../../shared/aws/dynamodb.ts';
import { serve } from '../scenarios.ts';
import { client, isWon, ourPauses, table } from './peer.ts';

/**
 * The semaphore of Consul (`consul lock -n`, api/semaphore.go) on DynamoDB: an entry for each contender, and a record with all holders, which is written
 * by compare-and-swap on its index. Consul notifies its waiters when anything under the prefix changes, but here they poll after a pause. The entry of
 * a contender is also its session, which saves a write.
 */

const LOCK = '.lock';

interface Lock {
  limit: number;
  holders: string[];
  /** Undefined if there is no record yet. */
  index: number | undefined;
}

interface Acquiring {
  key: string;
  session: string;
  limit: number;
  expiresAt: number;
}

async function acquire({ key, session, limit, expiresAt }: Acquiring): Promise<void> {
  const entry = { ...nameOf(key, session), expires_at: integer(expiresAt) };
  await client.send(new PutItemCommand({ TableName: table, Item: entry }));
  const pause = ourPauses();
  for (;;) {
    const { lock, alive } = await readAll(key, limit);
    if (lock.limit !== limit) throw new Error(`the limit is ${lock.limit}`);
    const holders = lock.holders.filter((holder) => alive.has(holder));
    if (holders.length >= limit) await pause();
    else if (await swap(key, { ...lock, holders: [...holders, session] })) return;
  }
}

async function readAll(key: string, limit: number): Promise<{ lock: Lock; alive: Set<string> }> {
  const { Items: items = [] } = await client.send(
    new QueryCommand({
      TableName: table,
      KeyConditionExpression: 'prefix = :key',
      ExpressionAttributeValues: { ':key': text(key) },
      ConsistentRead: true,
    }),
  );
  const alive = items.flatMap(({ entry, expires_at }) => (Number(expires_at?.N) > Date.now() ? [entry?.S ?? ''] : []));
  return { lock: lockOf(items.find(({ entry }) => entry?.S === LOCK)) ?? newLock(limit), alive: new Set(alive) };
}

const nameOf = (key: string, entry: string) => ({ prefix: text(key), entry: text(entry) });
const newLock = (limit: number): Lock => ({ limit, holders: [], index: undefined });
const lockOf = (item: Item | undefined): Lock | undefined =>
  item && { ...JSON.parse(item.value?.S ?? ''), index: Number(item.index?.N) };

/** @returns false if another contender was faster */
const swap = (key: string, { limit, holders, index }: Lock): Promise<boolean> =>
  isWon(
    client.send(
      new PutItemCommand({
        TableName: table,
        Item: {
          ...nameOf(key, LOCK),
          value: text(JSON.stringify({ limit, holders })),
          index: integer((index ?? 0) + 1),
        },
        ...(index === undefined
          ? { ConditionExpression: 'attribute_not_exists(entry)' }
          : {
              ConditionExpression: '#index = :seen',
              ExpressionAttributeNames: { '#index': 'index' },
              ExpressionAttributeValues: { ':seen': integer(index) },
            }),
      }),
    ),
  );

async function release(key: string, session: string): Promise<void> {
  for (;;) {
    const { Item: item } = await client.send(
      new GetItemCommand({ TableName: table, Key: nameOf(key, LOCK), ConsistentRead: true }),
    );
    const lock = lockOf(item);
    if (!lock?.holders.includes(session)) break;
    if (await swap(key, { ...lock, holders: lock.holders.filter((holder) => holder !== session) })) break;
  }
  await client.send(new DeleteItemCommand({ TableName: table, Key: nameOf(key, session) }));
}

void serve({
  caller: (ttlSeconds, limit) => ({
    acquire: async (key) => {
      const session = randomUUID();
      await acquire({ key, session, limit, expiresAt: Date.now() + ttlSeconds * 1000 });
      return { release: () => release(key, session) };
    },
  }),
});
