import { randomUUID } from 'node:crypto';
import { DeleteItemCommand, PutItemCommand } from '@aws-sdk/client-dynamodb';
import { integer, text } from '../../../shared/aws/attributes.ts';
import { serve } from '../scenarios.ts';
import { client, isWon, ourPauses, table } from './peer.ts';

/** An item `key#i` for each permit. A caller tries one after the other with conditional writes, beginning at a random one, until one is free. */

const CLOCK_SKEW_MS = 500;

interface Acquiring {
  key: string;
  leaseId: string;
  ttlSeconds: number;
  limit: number;
}

async function anySlot({ key, leaseId, ttlSeconds, limit }: Acquiring): Promise<string | undefined> {
  const first = Math.floor(Math.random() * limit);
  for (let tried = 0; tried < limit; tried++) {
    const slot = `${key}#${(first + tried) % limit}`;
    if (await take(slot, leaseId, ttlSeconds)) return slot;
  }
  return undefined;
}

function take(slot: string, leaseId: string, ttlSeconds: number): Promise<boolean> {
  const now = Date.now();
  return isWon(
    client.send(
      new PutItemCommand({
        TableName: table,
        Item: { key: text(slot), lease_id: text(leaseId), expires_at: integer(now + ttlSeconds * 1000) },
        ConditionExpression: 'attribute_not_exists(lease_id) OR expires_at < :cut',
        ExpressionAttributeValues: { ':cut': integer(now - CLOCK_SKEW_MS) },
      }),
    ),
  );
}

const release = (slot: string, leaseId: string) =>
  isWon(
    client.send(
      new DeleteItemCommand({
        TableName: table,
        Key: { key: text(slot) },
        ConditionExpression: 'lease_id = :own',
        ExpressionAttributeValues: { ':own': text(leaseId) },
      }),
    ),
  );

void serve({
  caller: (ttlSeconds, limit) => ({
    acquire: async (key) => {
      const leaseId = randomUUID();
      const pause = ourPauses();
      for (;;) {
        const slot = await anySlot({ key, leaseId, ttlSeconds, limit });
        if (slot !== undefined) return { release: () => release(slot, leaseId) };
        await pause();
      }
    },
  }),
});
