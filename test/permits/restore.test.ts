import { expect, it } from 'vitest';
import { liftFences } from '../../deployment/lift-fences.ts';
import { seededIds, testSeed } from '../support/chance/seed.ts';
import { poolWorld } from '../support/worlds/permits.ts';

/** The lost table, with a grant after the point in time, and the restored one. */
async function restoredWorld() {
  const lost = await poolWorld();
  await lost.acquire({ key: 'render', limit: 5 });
  const item = await lost.rawItem('render');
  lost.clock.advance(30_000);
  const { fence: since } = await lost.acquire({ key: 'render', limit: 5 });
  const restored = await poolWorld({ ids: seededIds(testSeed() + 1), clock: lost.clock });
  await restored.putRaw({ ...item });
  return { restored, since, now: lost.clock.now() };
}

it('a restored table would grant a fence again that a store has seen, and does not once its fences are lifted', async () => {
  const unlifted = await restoredWorld();
  expect((await unlifted.restored.acquire({ key: 'render', limit: 5 })).fence).toBe(unlifted.since);

  const { restored, since, now } = await restoredWorld();
  expect(await liftFences(restored.dynamodb, restored.dependencies.table, now)).toBe(1);
  expect(await liftFences(restored.dynamodb, restored.dependencies.table, now)).toBe(0);
  const again = await restored.acquire({ key: 'render', limit: 5 });
  expect(again.fence).toBeGreaterThan(since);
  expect(again.used).toBe(2);
});
