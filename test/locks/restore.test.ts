import { PutItemCommand } from '@aws-sdk/client-dynamodb';
import { describe, expect, it } from 'vitest';
import { liftFences } from '../../deployment/lift-fences.ts';
import { seededIds, testSeed } from '../support/chance/seed.ts';
import { newTable } from '../support/emulators/aws.ts';
import { leaseWorld } from '../support/worlds/leases.ts';

describe.each([
  ['leases', {}],
  ['permits', { limit: 5 }],
])('a table of %s that was restored to a point in time', (_, terms) => {
  const asked = { key: 'job', ...terms };

  /** A table that is restored to a moment before its last grant, behind a service whose clock is 20 s behind. */
  async function restoredWorld() {
    const lost = await leaseWorld();
    await lost.release(await lost.acquire(asked));
    const item = await lost.rawItem('job');
    lost.clock.advance(30_000);
    const { fence: since } = await lost.acquire(asked);
    const table = await newTable('leases');
    await lost.dynamodb.send(new PutItemCommand({ TableName: table, Item: item }));
    // The ids must differ from those of the lost table, even if SEED fixes both.
    const restored = await leaseWorld({ table, ids: seededIds(testSeed() + 1) });
    const now = lost.clock.now();
    restored.clock.set(now - 20_000);
    return { restored, table, since, now };
  }

  it('a restored table repeats fences until its fences are lifted', async () => {
    const unlifted = await restoredWorld();
    expect((await unlifted.restored.acquire(asked)).fence).toBeLessThanOrEqual(unlifted.since);

    const { restored, table, since, now } = await restoredWorld();
    expect(await liftFences(restored.dynamodb, table, now)).toBe(1);
    expect((await restored.acquire(asked)).fence).toBeGreaterThan(since);
  });

  it('lifting a restored table skips records with higher fences or none', async () => {
    const { restored, table, now } = await restoredWorld();
    const others = { high: { fence: { N: String(now + 3_600_000) } }, foreign: {} };
    for (const [key, attributes] of Object.entries(others))
      await restored.dynamodb.send(new PutItemCommand({ TableName: table, Item: { key: { S: key }, ...attributes } }));
    expect(await liftFences(restored.dynamodb, table, now)).toBe(1);
    expect(await liftFences(restored.dynamodb, table, now)).toBe(0);
    for (const [key, attributes] of Object.entries(others))
      expect(await restored.rawItem(key)).toEqual({ key: { S: key }, ...attributes });
  });
});
