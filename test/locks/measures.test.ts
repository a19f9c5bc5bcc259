import { randomUUID } from 'node:crypto';
import { afterAll, expect, it } from 'vitest';
import type { Measure } from '../../shared/aws/call.ts';
import { acquire as acquireOrPark } from '../../shared/locks/calls/acquire.ts';
import { acquireInput } from '../../shared/locks/calls/inputs.ts';
import { repairLines } from '../../shared/locks/calls/repair.ts';
import { call } from '../support/emulators/aws.ts';
import { lineWorld } from '../support/worlds/line.ts';

const world = await lineWorld();
const { acquire, release, park, breakLease, clock, dependencies, steps } = world;
const { rawItem, putRaw } = world;
afterAll(() => steps.stop());

/** A call that notes what it measures. */
function measuring() {
  const noted: [Measure, number][] = [];
  return { noted, as: call({ measure: (measure, value) => void noted.push([measure, value]) }) };
}

it('a release that serves a task measures the hand-off and the wait', async () => {
  const key = randomUUID();
  const { leaseId } = await acquire({ key });
  await park({ key });
  clock.advance(5000);
  const { noted, as } = measuring();
  await release({ key, leaseId }, as);
  expect(noted).toEqual([
    ['ParkedMs', 5000],
    ['HandOffMs', 0],
  ]);
});

it('a caller in line measures the time from end to claim', async () => {
  const key = randomUUID();
  const { leaseId, fence } = await acquire({ key, ttlSeconds: 60 });
  clock.at(clock.now() + 3000, () => release({ key, leaseId }));
  const releasedAt = clock.now() + 3000;
  const { noted, as } = measuring();
  const granted = await acquire({ key, waitSeconds: 10, ttlSeconds: 60 }, as);
  expect(granted.previous).toMatchObject({ fence, ended: 'released' });
  expect(noted).toEqual([['HandOffMs', Date.parse(granted.acquiredAt) - releasedAt]]);

  clock.at(clock.now() + 1000, () => breakLease({ key, fence: granted.fence }));
  const after = measuring();
  const broken = await acquire({ key, holder: 'another', waitSeconds: 10 }, after.as);
  expect(broken.previous).toMatchObject({ ended: 'broken' });
  expect(after.noted).toMatchObject([['HandOffMs', expect.any(Number)]]);
});

it('no hand-off is measured without a waiter, or after an expiry', async () => {
  const key = randomUUID();
  const { leaseId } = await acquire({ key, ttlSeconds: 30 });
  await release({ key, leaseId });
  clock.advance(60_000);
  const free = measuring();
  await acquire({ key, ttlSeconds: 30 }, free.as);
  expect(free.noted).toEqual([]);

  const late = measuring();
  await acquire({ key, holder: 'in line', waitSeconds: 2, ttlSeconds: 5 }, late.as).catch(() => undefined);
  clock.advance(30_000);
  const expired = measuring();
  await acquire({ key, holder: 'second', waitSeconds: 5, ttlSeconds: 2 }, expired.as);
  const inLine = measuring();
  const grant = await acquire({ key, holder: 'third', waitSeconds: 20 }, inLine.as);
  expect(grant.previous).toMatchObject({ ended: 'expired' });
  expect([...late.noted, ...expired.noted, ...inLine.noted]).toEqual([]);
});

it('no hand-off is measured if the lease was free before the first waiter joined', async () => {
  const enter = acquireOrPark(dependencies);
  for (const [freeMs, handOffs] of [
    [0, [['HandOffMs', 0]]],
    [1, []],
  ] as const) {
    const key = randomUUID();
    await release(await acquire({ key }));
    await putRaw({ ...(await rawItem(key)), key: { S: key }, mark: { S: 'm' } });
    clock.advance(freeMs);
    const { noted, as } = measuring();
    await enter(acquireInput().parse({ key, holder: 'task', taskToken: steps.newTask().token }), as);
    expect(noted).toEqual([['ParkedMs', 0], ...handOffs]);
  }
});

it('a task counts as parked unless it has its lease at once', async () => {
  const key = randomUUID();
  const enter = acquireOrPark(dependencies);
  const ask = (as: ReturnType<typeof call>) =>
    enter(acquireInput().parse({ key, holder: 'task', taskToken: steps.newTask().token }), as);
  const first = measuring();
  await ask(first.as);
  expect(first.noted).toEqual([['ParkedMs', 0]]);
  const second = measuring();
  await ask(second.as);
  expect(second.noted).toEqual([['Parked', 1]]);
});

it('a task that is not notified, or notified again, does not measure a hand-off', async () => {
  const key = randomUUID();
  const { leaseId } = await acquire({ key });
  const asked = { key, holder: 'task', requestId: 'r' };
  const { task } = await park(asked);
  steps.faults.SendTaskSuccess = ['refused'];
  const refused = measuring();
  await release({ key, leaseId }, refused.as);
  expect(refused.noted).toEqual([]);
  expect(task.state).toBe('waiting');
  const again = measuring();
  const taskToken = steps.newTask().token;
  await acquireOrPark(dependencies)(acquireInput().parse({ ...asked, taskToken }), again.as);
  expect(again.noted).toEqual([]);
  expect(steps.tasks.get(taskToken)).toMatchObject({ output: { repeated: true, previous: { ended: 'released' } } });
});

it('the scheduled repair measures the line of all keys', async () => {
  const own = await lineWorld();
  try {
    const run = repairLines(own.dependencies);
    const empty = measuring();
    await run({}, empty.as);
    expect(empty.noted).toEqual([]); // CloudWatch charges for a metric with the value 0, too
    const [old, young] = [randomUUID(), randomUUID()];
    for (const key of [old, young]) await own.acquire({ key, ttlSeconds: 3600 });
    const parkedAt = own.clock.now() + 1;
    await own.park({ key: old });
    own.clock.advance(30_000);
    for (const key of [old, young]) await own.park({ key });
    own.clock.advance(30_000);
    const both = measuring();
    await run({}, both.as);
    expect(both.noted).toEqual([
      ['KeysInLine', 2],
      ['OldestTicketAgeSeconds', (own.clock.now() - parkedAt) / 1000],
    ]);
    // A run begins at a random place in the table, so either key may come last. The oldest ticket counts in both cases.
    for (const place of [old, young]) {
      const begun = measuring();
      await repairLines({ ...own.dependencies, ids: { ...own.dependencies.ids, uuid: () => place } })({}, begun.as);
      expect(begun.noted).toEqual(both.noted);
    }
    const single = measuring();
    await run({ key: old }, single.as);
    expect(single.noted).toEqual([]);
  } finally {
    own.steps.stop();
  }
});
