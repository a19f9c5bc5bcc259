import { expect, it } from 'vitest';
import type { Task } from '../support/emulators/step-functions.ts';
import { Timeline } from '../support/time/timeline.ts';
import { lineWorld, resetting } from '../support/worlds/line.ts';

// The write of a hand-off landed, but its answer was lost: what the release, break, withdrawal or run of the schedule then answers.

const timeline = new Timeline();
const { sleep } = timeline;
const world = await lineWorld({ clock: timeline });
const { acquire, release, breakLease, withdraw, read, park, repair, repairKey } = world;
const { grantOf, requests, steps, precededBy, lostAfter } = world;
type Grant = Awaited<ReturnType<typeof acquire>>;
resetting(world);

let keys = 0;
const newKey = () => `landed ${keys++}`;
const own = { holder: 'first', requestId: 'r' };
const first = () => acquire({ key: newKey(), ...own });
const ENDS = ['released', 'broken', 'cancelled'] as const;
const isDone = { cancelled: true };

const endOf = (how: (typeof ENDS)[number], grant: Grant): Promise<{ key: string }> =>
  how === 'released' ? release(grant) : how === 'broken' ? breakLease(grant) : withdraw({ key: grant.key, ...own });
/** The plain end of the lease is refused, because the key has a line. The hand-off then lands, but its answer is lost. */
const unanswered = (how: (typeof ENDS)[number], grant: Grant, meanwhile: () => Promise<unknown>) => {
  requests.faultsOf.UpdateItem = ['none', lostAfter(meanwhile)];
  return endOf(how, grant);
};
/** The schedule notifies a task of its grant, and the task releases it. */
async function served(task: Task) {
  timeline.advance(11_000);
  await repair();
  await release(grantOf(task));
}

it.each(ENDS)('a hand-off without an answer counts if its caller has claimed since: %s', async (how) => {
  const held = await first();
  const { key } = held;
  const [next, answer] = await timeline.play(
    () => acquire({ key, holder: 'next', waitSeconds: 20 }),
    () => sleep(1000).then(() => unanswered(how, held, () => sleep(500))),
  );
  const ended = how === 'cancelled' ? 'released' : how;
  expect(answer).toMatchObject({ key, [how]: true });
  expect(next).toMatchObject({ holder: 'next', previous: { holder: 'first', ended } });
  expect(await read({ key })).toMatchObject({ holder: 'next', fence: next.fence });
});

it.each(ENDS)('the record remembers that a grant was %s after an unanswered hand-off', async (how) => {
  const held = await first();
  const { key } = held;
  const { task } = await park({ key, holder: 'task' });
  const answer = await unanswered(how, held, async () => {
    await served(task);
    await acquire({ key, holder: 'last' });
  });
  expect(answer).toMatchObject({ key, [how]: true });
  expect(grantOf(task)).toMatchObject({
    previous: { holder: 'first', ended: how === 'cancelled' ? 'released' : how },
  });
  expect(await read({ key })).toMatchObject({ holder: 'last' });
});

it('a release has an unknown outcome if the record has forgotten the grant', async () => {
  const held = await first();
  const { key } = held;
  const { task } = await park({ key, holder: 'task' });
  const answer = await unanswered('released', held, async () => {
    await served(task);
    for (let nth = 0; nth < 9; nth++) await release(await acquire({ key, holder: `h${nth}`, limit: 2 }));
  });
  expect(answer).toEqual({ key, released: false, reason: 'unknown' });
});

const expired = async () => (await acquire({ key: newKey(), ttlSeconds: 2 })).key;

it('the schedule counts a hand-off without an answer as granted', async () => {
  const key = await expired();
  const { task } = await park({ key });
  timeline.advance(3000);
  requests.faultsOf.UpdateItem = [lostAfter(() => served(task))];
  expect(await repairKey(key)).toMatchObject({ granted: 1 });
});

it('a task whose own hand-off had no answer is not parked', async () => {
  const key = await expired();
  timeline.advance(3000);
  const task = steps.newTask();
  requests.faultsOf.UpdateItem = ['none', lostAfter(() => served(task))]; // the mark, and the transfer
  expect(await park({ key }, task)).toMatchObject({ parked: false });
  expect(task.state).toBe('succeeded');
});

it('the schedule counts a hand-off that another call continued', async () => {
  const [key, execution] = [await expired(), steps.newExecution()];
  const gone = await park({ key, execution });
  timeline.advance(1);
  const next = await park({ key });
  gone.task.state = 'timedOut';
  timeline.advance(3000);
  const ended: unknown[] = [];
  requests.faultsOf.UpdateItem = ['none', precededBy(async () => ended.push(await world.executionEnded(execution)))];
  expect(await repairKey(key)).toMatchObject({ granted: 1 });
  expect(ended).toMatchObject([{ freed: 1 }]);
  expect(next.task.state).toBe('succeeded');
});

it.each(['before', 'after'])('a withdrawal of an unnotified task is done if others act %s its write', async (when) => {
  const [held, asked] = [await acquire({ key: newKey() }), { holder: 'task', requestId: 'r' }];
  const { key } = held;
  const { task } = await park({ key, ...asked });
  steps.faults.SendTaskSuccess = ['refused'];
  await release(held);
  const others = async () => {
    if (when === 'before') await breakLease({ key, fence: Number((await world.rawItem(key))?.fence?.N) });
    await acquire({ key, holder: 'other' });
  };
  // The first write flags the waiter, the second ends its grant: only the second meets the fault.
  requests.faultsOf.UpdateItem = ['none', when === 'before' ? precededBy(others) : lostAfter(others)];
  expect(await withdraw({ key, ...asked })).toMatchObject(isDone);
  expect(task).toMatchObject({ state: 'failed', error: 'LeaseLost', cause: { reason: 'cancelled' } });
  expect(await read({ key })).toMatchObject({ state: 'held', holder: 'other' });
});
