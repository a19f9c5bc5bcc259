import { afterAll, expect, it } from 'vitest';
import { lineWorld } from '../support/worlds/line.ts';
import { onceWorld } from '../support/worlds/once.ts';

const line = await lineWorld();
const { steps, executionEnded, clock } = line;
afterAll(() => steps.stop());
const { begin, run, complete, release, rawRow, readOnce } = await onceWorld({ table: line.table, clock });

it('the end of an execution frees its slot, as the next caller learns', async () => {
  const execution = steps.newExecution();
  const { leaseId } = await run({ key: 'aborted', slot: '1', execution });
  const before = Number((await rawRow('aborted'))?.lease_expiry?.N);
  expect(await executionEnded(execution)).toMatchObject({ freed: 1 });
  expect(Number((await rawRow('aborted'))?.lease_expiry?.N)).toBeGreaterThanOrEqual(before);
  expect(await complete({ key: 'aborted', leaseId })).toMatchObject({ completed: false, reason: 'unknown' });
  clock.advance(1);
  expect(await begin({ key: 'aborted', slot: '1' })).toMatchObject({
    ...{ outcome: 'run', previous: { ended: 'executionEnded' } },
  });
});

it('a redriven execution that asked again keeps its slot while the status lags', async () => {
  const execution = steps.newExecution('RUNNING');
  const request = { key: 'redriven', slot: '1', execution, requestId: 'r', ttlSeconds: 3600 };
  const first = await begin(request);
  clock.advance(10_000);
  const event = steps.end(execution);
  clock.advance(2000);
  expect(await begin(request)).toMatchObject({ outcome: 'run', repeated: true, fence: first.fence, slot: '1' });
  for (const again of [false, true]) expect(await executionEnded(execution, again, event)).toMatchObject({ freed: 0 });
  expect(await readOnce({ key: 'redriven' })).toMatchObject({ state: 'held', execution });
  clock.advance(1000);
  expect(await executionEnded(execution, false, steps.end(execution))).toMatchObject({ freed: 1 });
});

it('a request whose execution has ended may begin its slot again', async () => {
  const execution = steps.newExecution('RUNNING');
  const request = { key: 'again', slot: '1', execution, requestId: 'r', holder: 'wf' };
  const { fence } = await begin(request);
  clock.advance(1000);
  expect(await executionEnded(execution, false, steps.end(execution))).toMatchObject({ freed: 1 });
  steps.redrive(execution);
  const again = await begin(request);
  expect(again).toMatchObject({ repeated: false, previous: { holder: 'wf', fence, ended: 'executionEnded' } });
  await release({ key: 'again', leaseId: String((again as { leaseId?: string }).leaseId) });
  expect(await begin({ key: 'again', slot: '1' })).toMatchObject({
    previous: { fence: again.fence, ended: 'released' },
  });
});

it('the end of an execution leaves a slot that the execution has completed', async () => {
  const execution = steps.newExecution();
  const { leaseId } = await run({ key: 'succeeded', slot: '1', execution });
  await complete({ key: 'succeeded', leaseId, result: 1 });
  expect(await executionEnded(execution)).toMatchObject({ freed: 0 });
  expect(await begin({ key: 'succeeded', slot: '1' })).toMatchObject({ outcome: 'done', result: 1 });
});

it('a reader sees the execution that works', async () => {
  const execution = steps.newExecution();
  await run({ key: 'shown', slot: '1', execution });
  expect(await readOnce({ key: 'shown' })).toMatchObject({ state: 'held', execution });
});
