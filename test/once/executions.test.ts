import { afterAll, expect, it } from 'vitest';
import { queueWorld } from '../support/worlds/line.ts';
import { onceWorld } from '../support/worlds/once.ts';

const line = await queueWorld();
const { steps, executionEnded, clock } = line;
afterAll(() => steps.stop());
const { begin, complete, rawRow, readOnce } = await onceWorld({ table: line.table, clock });

async function run(key: string, execution: string) {
  const begun = await begin({ key, slot: '1', execution });
  if (begun.outcome !== 'run') throw new Error('expected a run');
  return begun;
}

it('the end of an execution frees its slot, and the next caller learns that the execution has ended', async () => {
  const execution = steps.newExecution();
  const { leaseId } = await run('aborted', execution);
  const before = Number((await rawRow('aborted'))?.lease_expiry?.N);
  expect(await executionEnded(execution)).toMatchObject({ freed: 1 });
  expect(Number((await rawRow('aborted'))?.lease_expiry?.N)).toBeGreaterThanOrEqual(before);
  expect(await complete({ key: 'aborted', leaseId })).toMatchObject({ completed: false, reason: 'released' });
  clock.advance(1);
  expect(await begin({ key: 'aborted', slot: '1' })).toMatchObject({
    ...{ outcome: 'run', previous: { ended: 'executionEnded' } },
  });
});

it('the end of an execution leaves a slot that the execution has completed', async () => {
  const execution = steps.newExecution();
  const { leaseId } = await run('succeeded', execution);
  await complete({ key: 'succeeded', leaseId, result: 1 });
  expect(await executionEnded(execution)).toMatchObject({ freed: 0 });
  expect(await begin({ key: 'succeeded', slot: '1' })).toMatchObject({ outcome: 'done', result: 1 });
});

it('a reader sees the execution that works', async () => {
  const execution = steps.newExecution();
  await run('shown', execution);
  expect(await readOnce({ key: 'shown' })).toMatchObject({ state: 'held', execution });
});
