import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { Timeline } from '../support/time/timeline.ts';
import { failure } from '../support/worlds/leases.ts';
import { queueWorld } from '../support/worlds/line.ts';

const world = await queueWorld();
const { acquire, heartbeat, release, breakLease, read, park, repair, grantOf, steps } = world;
const { clock, requests, rawItem, rows, precededBy, joinLine } = world;

const timeline = new Timeline();
const running = await queueWorld({ clock: timeline });
afterAll(() => Promise.all([steps.stop(), running.steps.stop()]));

beforeEach(() => {
  requests.faultsOf = {};
  steps.faults = {};
});

const brokenTask = { error: 'LeaseLost', cause: { reason: 'broken' } };
const fenceOf = async (key: string) => Number((await rawItem(key))?.fence?.N);

/** A task that receives the lease from the line, and that no message about it has reached. */
async function unnotified(key: string) {
  const first = await acquire({ key, holder: 'first' });
  const { task } = await park({ key, holder: 'task', requestId: 'r' });
  steps.faults.SendTaskSuccess = ['refused'];
  await release(first);
  steps.faults = {};
  return { task, fence: await fenceOf(key) };
}

describe('a break that waits leaves the key to the line', () => {
  it('when the holder releases it: a parked task receives the lease, and is not broken', async () => {
    const first = await acquire({ key: 'released', holder: 'worker' });
    const { task } = await park({ key: 'released', holder: 'next' });
    expect(await breakLease({ ...first, wait: true })).toMatchObject({ ended: false });
    expect(task.state).toBe('waiting');
    expect(await release(first)).toMatchObject({ released: true });
    expect(task.output).toMatchObject({ holder: 'next', previous: { holder: 'worker', ended: 'broken' } });
    clock.advance(1);
    expect(await heartbeat(grantOf(task))).toMatchObject({ holder: 'next' });
    expect(await read({ key: 'released' })).toMatchObject({ ending: false });
  });

  it('when the holder was granted the lease in front of others: the next holder receives it as broken', async () => {
    const first = await acquire({ key: 'quick', holder: 'first' });
    const [worker, next] = [
      await park({ key: 'quick', holder: 'worker' }),
      await park({ key: 'quick', holder: 'next' }),
    ];
    await release(first);
    const grant = grantOf(worker.task);
    expect(await breakLease({ ...grant, wait: true })).toMatchObject({ ended: false });
    clock.advance(1000);
    expect(await release(grant)).toMatchObject({ released: true });
    clock.advance(1);
    expect(next.task.output).toMatchObject({ previous: { holder: 'worker', ended: 'broken' } });
    expect(await heartbeat(grantOf(next.task))).toMatchObject({ holder: 'next' });
  });

  it('when its ttl ends: the message that looks at the end of the lease gives it to the parked task', async () => {
    const { fence } = await acquire({ key: 'ttl', holder: 'worker', ttlSeconds: 60 });
    const { task } = await park({ key: 'ttl', holder: 'next' });
    expect(await breakLease({ key: 'ttl', fence, wait: true })).toMatchObject({ ended: false });
    clock.advance(60_501);
    await world.repairKey('ttl', fence);
    expect(task.output).toMatchObject({ holder: 'next', previous: { holder: 'worker', ended: 'expired' } });
  });

  it('and a waiting call receives the lease at the release of the holder, or at the end of the ttl', async () => {
    for (const how of ['release', 'ttl'] as const) {
      const key = `waiting call, ${how}`;
      const first = await running.acquire({ key, holder: 'worker', ttlSeconds: 10 });
      const [at, next] = await timeline.play(
        () =>
          timeline.later(1000, async () => {
            expect(await running.breakLease({ ...first, wait: true })).toMatchObject({ ended: false });
            await timeline.sleep(1000);
            if (how === 'release') await running.release(first);
            return how === 'release' ? timeline.now() : Date.parse(first.expiresAt) + 500;
          }),
        async () => {
          const grant = await running.acquire({ key, holder: 'next', waitSeconds: 20 });
          return { ...grant, at: timeline.now() };
        },
      );
      expect(next.at - at).toBeGreaterThanOrEqual(0);
      expect(next.at - at).toBeLessThan(600);
    }
  });
});

describe('a break that waits ends at once the grant of which no holder works', () => {
  it('because its caller has not claimed it', async () => {
    const key = 'unclaimed';
    const first = await acquire({ key, holder: 'first' });
    await joinLine(key, 'caller');
    const { task } = await park({ key, holder: 'next' });
    await release(first);
    expect(await rawItem(key)).toHaveProperty('claim_ttl_ms');
    const answer = await breakLease({ key, fence: await fenceOf(key), wait: true });
    expect(answer).toMatchObject({ ended: true, holder: 'caller', lastHeartbeatAt: null });
    expect(task.output).toMatchObject({ previous: { holder: 'first' } });
  });

  it('because its task was never notified: the task fails with LeaseLost, and the next in line has the lease', async () => {
    const key = 'unnotified';
    const { task, fence } = await unnotified(key);
    const next = await park({ key, holder: 'next' });
    expect(await breakLease({ key, fence, wait: true })).toMatchObject({ ended: true, holder: 'task' });
    expect(task).toMatchObject(brokenTask);
    expect(next.task.output).toMatchObject({ holder: 'next' });
    expect(await rows(key)).toEqual([]);
  });

  it('but waits for a task that was notified, whose ticket the call that notified it could not delete', async () => {
    const key = 'notified, with its ticket';
    const first = await acquire({ key, holder: 'first' });
    const { task } = await park({ key, holder: 'task' });
    requests.faultsOf.DeleteItem = ['throttle', 'throttle', 'throttle'];
    await release(first);
    requests.faultsOf = {};
    expect([task.state, (await rows(key)).length]).toEqual(['succeeded', 1]);
    expect(await breakLease({ key, fence: await fenceOf(key), wait: true })).toMatchObject({ ended: false });
    expect(await failure(heartbeat(grantOf(task)))).toMatchObject({ context: { reason: 'broken' } });
    expect(await release(grantOf(task))).toMatchObject({ released: true });
  });

  it('but waits for a grant that its caller claims between the look and the end', async () => {
    const key = 'claimed meanwhile';
    const first = await acquire({ key, holder: 'first' });
    const { ticket } = await joinLine(key, 'r');
    await release(first);
    const claim = () => acquire({ key, holder: 'caller', requestId: 'r', ticket, ttlSeconds: 10 });
    requests.faultsOf.UpdateItem = ['none', precededBy(claim)]; // the mark, which the claim window refuses, and the end
    expect(await breakLease({ key, fence: await fenceOf(key), wait: true })).toMatchObject({ ended: false });
  });

  it('but stays if Step Functions gives no answer: a repeat ends the grant', async () => {
    const key = 'unanswered';
    const { task, fence } = await unnotified(key);
    steps.faults.SendTaskFailure = ['refused'];
    expect(await breakLease({ key, fence, wait: true })).toMatchObject({ broken: true, ended: false });
    expect(await breakLease({ key, fence, wait: true })).toMatchObject({ ended: true });
    expect(task).toMatchObject(brokenTask);
  });
});

describe('a mark whose break died before it looked at the ticket of the grant', () => {
  it('is finished by the schedule: the task fails, the grant is not extended, and the next in line has the lease', async () => {
    const key = 'died';
    const { task, fence } = await unnotified(key);
    const next = await park({ key, holder: 'next' });
    steps.faults.SendTaskFailure = ['refused'];
    expect(await breakLease({ key, fence, wait: true })).toMatchObject({ broken: true, ended: false });
    clock.advance(10_001);
    await repair();
    expect(task).toMatchObject(brokenTask);
    expect(next.task.output).toMatchObject({ holder: 'next' });
    expect(await rows(key)).toEqual([]);
  });
});

describe('the request whose lease is ending', () => {
  it('is refused as a task: its new token fails with LeaseLost', async () => {
    const key = 'task again';
    const { fence } = await acquire({ key, holder: 'worker', requestId: 'r' });
    await breakLease({ key, fence, wait: true });
    const expiresAt = (await rawItem(key))?.expires_at;
    const { task, parked } = await park({ key, holder: 'worker', requestId: 'r' });
    expect([parked, task]).toMatchObject([false, brokenTask]);
    expect(await rawItem(key)).toMatchObject({ expires_at: expiresAt });
    expect(await rows(key)).toEqual([]);
  });

  it('is refused as a repeat that read the grant before the mark', async () => {
    const key = 'read before';
    const first = await acquire({ key, holder: 'first' });
    const { task } = await park({ key, holder: 'worker', requestId: 'r' });
    await release(first);
    const { fence, expiresAt } = grantOf(task);
    clock.advance(1000);
    requests.faultsOf.UpdateItem = [precededBy(() => breakLease({ key, fence, wait: true }))]; // the new version
    const repeat = acquire({ key, holder: 'worker', requestId: 'r' });
    expect(await failure(repeat)).toMatchObject({ code: 'LeaseLost', context: { reason: 'broken' } });
    expect(await read({ key })).toMatchObject({ expiresAt, ending: true });
  });

  it('is refused as a call in line that meets the grant of another call of the request', async () => {
    const key = 'in line';
    const first = await running.acquire({ key, holder: 'first', ttlSeconds: 60 });
    const asked = { key, holder: 'worker', requestId: 'r', ttlSeconds: 60, waitSeconds: 20 };
    const [, refused, grant] = await timeline.play(
      () => timeline.later(1000, () => running.release(first)),
      async () => {
        const claimed = await running.acquire(asked);
        await running.breakLease({ ...claimed, wait: true });
        return failure(running.acquire(asked));
      },
      () => timeline.later(5000, () => running.read({ key })),
    );
    expect(refused).toMatchObject({ code: 'LeaseLost', context: { reason: 'broken' } });
    expect(grant).toMatchObject({ holder: 'worker', ending: true });
  });
});

describe('a break of a lease whose task cannot be notified', () => {
  it('ends the lease at once, the next in line has it, and the task keeps its place as one that never had the lease', async () => {
    const key = 'cannot be notified';
    const { task, fence } = await unnotified(key);
    const next = await park({ key, holder: 'next' });
    steps.faults.SendTaskFailure = ['denied', 'denied', 'denied'];
    expect(await breakLease({ key, fence })).toMatchObject({ broken: true, ended: true });
    expect([task.state, next.task.output]).toMatchObject(['waiting', { holder: 'next' }]);
    steps.faults = {};
    await release(grantOf(next.task));
    await repair();
    expect(grantOf(task)).toMatchObject({ holder: 'task' });
    expect(await rows(key)).toEqual([]);
  });

  it('answers the same to a repeat, which sends again', async () => {
    const key = 'sent again';
    const { task, fence } = await unnotified(key);
    steps.faults.SendTaskFailure = ['denied', 'denied', 'denied'];
    expect(await breakLease({ key, fence })).toMatchObject({ broken: true, ended: true });
    steps.faults = {};
    expect(await breakLease({ key, fence })).toMatchObject({ broken: true, ended: true });
    expect(task).toMatchObject(brokenTask);
    expect(await rows(key)).toEqual([]);
  });
});

describe('a holder whose lease an operator broke, and that learns of it after a waiter has taken the key', () => {
  const broken = { code: 'LeaseLost', context: { reason: 'broken' } };

  it.each([false, true])(
    'sees the reason broken, and so after further hand-offs: a task waited, wait is %s',
    async (wait) => {
      const key = `reason ${wait}`;
      const first = await acquire({ key, holder: 'first', ttlSeconds: 2 });
      const [one, two] = [await park({ key, holder: 'one' }), await park({ key, holder: 'two' })];
      await breakLease({ key, fence: first.fence, wait });
      if (wait) clock.advance(3000);
      if (wait) await repair();
      expect(await failure(heartbeat(first))).toMatchObject(broken);
      await release(grantOf(one.task));
      expect(grantOf(two.task)).toMatchObject({ holder: 'two' });
      expect(await failure(heartbeat(first))).toMatchObject(broken);
      expect(await release(first)).toEqual({ key, released: false, reason: 'broken' });
      expect(await release(grantOf(one.task))).toMatchObject({ released: false, reason: 'taken' });
    },
  );

  it('sees it also if the waiter came after the break', async () => {
    const key = 'reason of a free lease';
    const first = await acquire({ key, holder: 'first' });
    await breakLease({ key, fence: first.fence });
    await park({ key, holder: 'next' });
    expect(await failure(heartbeat(first))).toMatchObject(broken);
  });
});
