import { expect, it } from 'vitest';
import { exitingAfter } from '../support/faults/mortal.ts';
import type { LineWorld } from './world.ts';

/** A request may be in line twice: it holds one lock, and its second waiter blocks no other. */
export async function secondWaiters(lineWorld: LineWorld) {
  const world = await lineWorld();
  const { acquire, release, breakGrant, park, grantOf, see, repair, rows, isMarked, messages } = world;
  const { steps, heldKey, newKey, timeline } = world;
  const asked = (key: string) => ({ key, holder: 'task', requestId: 'twice', ttlSeconds: 600 });

  /** Two tasks of one request wait behind a holder. */
  async function twoTasks(more: object = {}) {
    const { key, first } = await heldKey({ holder: 'first' });
    const one = await park({ ...asked(key), ...more });
    timeline.advance(1); // so that the next ticket is later
    const two = await park({ ...asked(key), ...more });
    return { key, first, one: one.task, two: two.task };
  }

  it('a request that released its grant does not receive a second from the schedule', async () => {
    const key = newKey();
    await release(await acquire(asked(key)));
    steps.faults.SendTaskFailure = ['refused'];
    const { task } = await park(asked(key));
    expect(task.state).toBe('waiting');
    await repair(key);
    expect(task).toMatchObject({ state: 'failed', error: 'LeaseLost', cause: { reason: 'released' } });
    expect([await rows(key), await see(key)]).toMatchObject([[], { holder: undefined }]);
  });

  it.each(['released', 'broken'])('a request whose grant was %s does not receive a second one', async (reason) => {
    const { key, first, one, two } = await twoTasks();
    await release(first);
    await (reason === 'broken' ? breakGrant(grantOf(one)) : release(grantOf(one)));
    await repair(key);
    expect(two).toMatchObject({ state: 'failed', error: 'LeaseLost', cause: { reason } });
    expect([await rows(key), await isMarked(key)]).toEqual([[], false]);
  });

  it.each([
    ['by the first run of the schedule from ten seconds after the grant on', 60, 10_000],
    ['once the task is overdue', 5, 5000],
  ])('the second task of a request is notified %s', async (_, parkSeconds, laterMs) => {
    const { key, first, one, two } = await twoTasks({ parkSeconds });
    await release(first);
    expect([one.state, two.state]).toEqual(['succeeded', 'waiting']);
    timeline.advance(laterMs);
    await repair(key);
    const { leaseId } = grantOf(one);
    expect(grantOf(two)).toMatchObject({ leaseId, repeated: true, remainingMs: 600_000 });
    expect(await rows(key)).toEqual([]);
  });

  it.each(['a ttl', 'bound'])('a second task by other terms is refused a grant with %s', async (terms) => {
    const bound = () => ({ bound: true, execution: steps.newExecution('RUNNING') });
    const { key, first } = await heldKey({ holder: 'first' });
    const { ttlSeconds, ...request } = asked(key);
    const [ownTerms, otherTerms] = terms === 'bound' ? [bound(), { ttlSeconds }] : [{ ttlSeconds }, bound()];
    const { task: one } = await park({ ...request, ...ownTerms });
    timeline.advance(1); // so that the next ticket is later
    const { task: two } = await park({ ...request, ...otherTerms });
    await release(first);
    timeline.advance(10_000);
    await repair(key);
    expect(two).toMatchObject({
      state: 'failed',
      error: 'InvalidRequest',
      cause: { issues: [{ path: 'requestId' }] },
    });
    expect(await see(key)).toMatchObject({ fence: grantOf(one).fence });
    expect(await rows(key)).toEqual([]);
  });

  it('an unclaimed grant is not sent to the second task', async () => {
    const { key, first } = await heldKey({ holder: 'first' });
    await exitingAfter(3, () => acquire({ ...asked(key), waitSeconds: 20 }));
    timeline.advance(1); // so that the next ticket is later
    const { task } = await park({ ...asked(key), parkSeconds: 1 });
    timeline.advance(999);
    await release(first);
    timeline.advance(1);
    await repair(key);
    expect(await see(key)).toMatchObject({ holder: 'task' });
    expect(task).toMatchObject({ state: 'failed', error: 'LeaseHeld' });
  });

  it('a hand-off to a call sends the message for a task', async () => {
    const { key, first } = await heldKey({ holder: 'first' });
    await exitingAfter(3, () => acquire({ ...asked(key), waitSeconds: 20 }));
    timeline.advance(1); // so that the next ticket is later
    await park(asked(key));
    messages.length = 0;
    await release(first);
    expect(messages).toMatchObject([{}]);
  });
}
