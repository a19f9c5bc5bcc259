import { describe, expect, it } from 'vitest';
import { repairLines } from '../../shared/locks/calls/repair.ts';
import { handOff } from '../../shared/locks/line/hand-off.ts';
import { deleteWaiter } from '../../shared/locks/line/waiters.ts';
import { readKey } from '../../shared/locks/record/requests.ts';
import { call } from '../support/emulators/aws.ts';
import { networkError } from '../support/faults/cuttable.ts';
import { resetting } from '../support/worlds/line.ts';
import { permitLineWorld } from '../support/worlds/permits-in-line.ts';

// A task is notified of its grant once, and with its whole ttl.

const world = await permitLineWorld();
const { acquire, heartbeat, release, read, park, repair, repairKey, executionEnded, grantOf } = world;
const { dependencies } = world;
/** The expiry of the exclusive holder on record. */
const expiryOn = async (key: string) => (await rawItem(key))?.h?.M?.e?.N;
const { rawItem, rows, clock, requests, steps } = world;
resetting(world);

type Send = () => Promise<unknown>;

const executionOf = (name: string) => `arn:aws:states:us-east-1:123456789012:execution:machine:${name}`;
const successes = () => steps.requests.filter(({ action }) => action === 'SendTaskSuccess').map(({ token }) => token);
/** A task is granted the lease, and another task waits behind it. The message to the first is lost or refused. */
async function granted(key: string, message: 'lost' | 'refused', more: object = {}) {
  const first = await acquire({ key });
  const notified = await park({ key, ...more });
  const next = await park({ key });
  steps.faults.SendTaskSuccess = [message];
  expect(await release(first)).toMatchObject({ released: true });
  return { notified: notified.task, next: next.task };
}

it('a lost reply of SendTaskSuccess does not move the lease of a running execution', async () => {
  const execution = executionOf('lost');
  steps.executions.set(execution, 'RUNNING');
  const { notified, next } = await granted('lost', 'lost', { execution, ttlSeconds: 3600 });
  expect([successes(), notified.state]).toEqual([[notified.token], 'succeeded']);

  clock.advance(9000);
  await repair();
  expect(successes()).toHaveLength(1); // the call that granted the lease may still send the message
  clock.advance(60_000);
  await repair();
  await repair();
  expect(successes()).toEqual([notified.token, notified.token]); // and never again
  expect(next.state).toBe('waiting');
  const { fence } = grantOf(notified);
  expect(await read('lost')).toMatchObject({ holder: 'tester', fence, waiting: 1 });
  expect(await heartbeat(grantOf(notified))).toMatchObject({ fence });

  await executionEnded(execution, false, { status: 'SUCCEEDED', stopDate: clock.now() });
  expect(next.state).toBe('succeeded');
});

it.each(['parked again', 'asked for plainly'])('a task that is tried again (%s) keeps the lease', async (how) => {
  const key = `retried ${how}`;
  const asked = { key, requestId: 'r', holder: 'h', ttlSeconds: 3600 };
  const first = await acquire({ key });
  const old = await park(asked);
  const next = await park({ key });
  old.task.state = 'timedOut'; // the state has timed out, and Step Functions tries it again
  const retried = steps.newTask();
  let leaseId: string | undefined;
  steps.onTheWay = async (_, token) => {
    if (token !== old.task.token) return;
    // The release has granted the old ticket, and is about to learn that its task is gone.
    if (how === 'parked again') await park(asked, retried);
    else ({ leaseId } = await acquire(asked));
  };
  await release(first);
  leaseId ??= grantOf(retried).leaseId;
  expect(await heartbeat({ key, leaseId })).toMatchObject({ holder: 'h' });
  expect(next.task.state).toBe('waiting');
  expect(await release({ key, leaseId })).toMatchObject({ released: true });
  expect(next.task.state).toBe('succeeded');
});

it('a schedule that sends before the granter keeps the lease for the task', async () => {
  const first = await acquire({ key: 'rotated' });
  const notified = await park({ key: 'rotated', ttlSeconds: 3600 });
  const next = await park({ key: 'rotated' });
  let late = false;
  steps.onTheWay = async (_, token) => {
    if (token !== notified.task.token || late) return;
    late = true;
    clock.advance(11_000); // the granter is slow, and the schedule notifies the task in its place
    await repair();
  };
  await release(first);
  expect(successes()).toEqual([notified.task.token, notified.task.token]);
  expect(next.task.state).toBe('waiting');
  expect(await heartbeat(grantOf(notified.task))).toMatchObject({ key: 'rotated' });
});

describe('late notices', () => {
  /** A task that was granted the lease, and could not be notified. */
  async function unnotified(key: string, more: object = {}) {
    const first = await acquire({ key });
    const { task } = await park({ key, ttlSeconds: 20, ...more });
    steps.faults.SendTaskSuccess = ['refused'];
    await release(first);
    return task;
  }
  const whole = { remainingMs: 20_000 };

  it('a task that the schedule notifies late begins with its whole ttl', async () => {
    for (const lateMs of [15_000, 20_100]) {
      const key = `late ${lateMs}`;
      const task = await unnotified(key);
      clock.advance(lateMs);
      await repair();
      expect(grantOf(task), key).toMatchObject({ remainingMs: 20_000, waitedMs: lateMs });
      expect((await rawItem(key))?.lease_expiry?.N, key).toBe(String(Math.ceil(clock.now() / 1000) + 20));
      clock.advance(19_999);
      await expect(acquire({ key, holder: 'other' })).rejects.toMatchObject({ code: 'LeaseHeld' });
    }
  });

  const answeredLate = (ms: number) => async (send: Send) => {
    const written = await send();
    clock.advance(ms);
    return written;
  };

  it('a task may begin with half a second less than its ttl', async () => {
    const first = await acquire({ key: 'half a second' });
    const { task } = await park({ key: 'half a second', ttlSeconds: 20 });
    requests.faultsOf.UpdateItem = ['none', answeredLate(500)];
    await release(first);
    expect(grantOf(task)).toMatchObject({ remainingMs: 19_500 });
  });

  describe('slow renewals', () => {
    const lost = async (send: Send) => {
      await send();
      clock.advance(2000);
      throw networkError('ECONNRESET', 'read');
    };
    const slow = async (send: Send) => {
      clock.advance(600);
      return send();
    };

    it.each([
      ['one answer', [lost]],
      ['two answers', [lost, lost]],
      ['the answers to two renewals', [lost, lost, 'none', lost]],
    ] as const)('a task begins with its whole ttl if the renewal loses %s', async (key, faults) => {
      const first = await acquire({ key });
      const { task } = await park({ key, ttlSeconds: 4 });
      requests.faultsOf.UpdateItem = ['none', slow, ...faults];
      await release(first);
      expect(grantOf(task)).toMatchObject({ remainingMs: 4000 });
      expect(await expiryOn(key)).toBe(String(clock.now() + 4000));
    });

    it('a task begins with its whole ttl although renewals of the schedule are slow', async () => {
      for (const [key, renewals] of [
        ['schedule', 1],
        ['slow schedule', 3],
      ] as const) {
        const task = await unnotified(key);
        clock.advance(15_000);
        requests.faultsOf.UpdateItem = Array(renewals).fill([lost, 'none']).flat();
        if (renewals === 3) {
          expect(await repair()).toMatchObject({ notified: 0, unanswered: 1 });
          expect([task.state, await rows(key)]).toMatchObject(['waiting', { length: 1 }]);
        }
        expect(await repair()).toMatchObject({ notified: 1, unanswered: 0 });
        expect(grantOf(task)).toMatchObject(whole);
      }
    });

    it('a task is not notified while every renewal takes too long', async () => {
      const first = await acquire({ key: 'too slow' });
      const { task } = await park({ key: 'too slow', ttlSeconds: 20 });
      requests.faultsOf.UpdateItem = ['none', slow, lost, 'none', lost, 'none', lost, 'none'];
      expect(await release(first)).toMatchObject({ released: true });
      expect([requests.faultsOf.UpdateItem, successes()]).toEqual([[], []]);
      expect(await read('too slow')).toMatchObject({ state: 'held', waiting: 0 });
      clock.advance(10_001);
      await repair();
      expect(grantOf(task)).toMatchObject(whole);
    });
  });
});

describe.each([{}, { limit: 1 }])('the schedule, terms %o', (terms) => {
  const keyOf = (what: string) => `${what} ${JSON.stringify(terms)}`;

  it('the schedule notifies a task of its grant under a new version each time', async () => {
    const first = await acquire({ key: keyOf('each time'), ...terms });
    const { key, task } = await world.unnotified(first, { ttlSeconds: 3600, ...terms });
    const versionOn = async () =>
      Object.values((await rawItem(key)) ?? {}).flatMap(({ M: entry }) => entry?.v?.S ?? [])[0];
    const versions = [await versionOn()];
    steps.faults.SendTaskSuccess = ['refused'];
    for (const notified of [0, 1]) {
      clock.advance(10_000);
      expect(await repairKey(key)).toMatchObject({ notified, unanswered: 1 - notified });
      versions.push(await versionOn());
    }
    expect(grantOf(task).version).toBe(versions.at(-1));
    expect(new Set(versions).size).toBe(3);
  });

  it('a hand-off by an old record keeps a grant extended since', async () => {
    const key = keyOf('extended since');
    const before = await acquire({ key, ...terms });
    const { task } = await park({ key, parkSeconds: 1, ttlSeconds: 2, ...terms });
    steps.faults.SendTaskSuccess = ['lost'];
    await release(before);
    clock.advance(2600);
    const record = await readKey(dependencies, key, call());
    await heartbeat(grantOf(task));
    await handOff(dependencies, { record }, call());
    expect([task.state, await rows(key)]).toEqual(['succeeded', []]);
    expect(await heartbeat(grantOf(task))).toMatchObject({ holder: 'tester' });
  });
});

it('a run hands off one line up to ten times', async () => {
  const key = 'ten times';
  await acquire({ key, ttlSeconds: 3600 });
  await park({ key });
  // A run checks its time twice before it serves the line, and then before and within each try.
  let checks = 0;
  const timeLeftMs = () => (++checks <= 2 || (checks % 2 === 1 && checks < 100) ? 6000 : 1000);
  await repairLines(dependencies)({ key }, call({ timeLeftMs }));
  expect(checks).toBe(2 + 2 * 10);
});

it('a run notifies late tasks among the first hundred waiters of a line', async () => {
  const key = 'a hundred';
  const { task } = await world.unnotified(await acquire({ key, ttlSeconds: 3600 }), { ttlSeconds: 3600 });
  clock.advance(10_000);
  const row = (index: number) => world.callerRow(key, `caller ${index + 100}`);
  await world.putTickets(Array.from({ length: 100 }, (_, index) => row(index)));
  expect(await repairKey(key)).toMatchObject({ notified: 0 });
  await deleteWaiter(dependencies, { key, ticket: row(0).ticket.S }, call());
  expect(await repairKey(key)).toMatchObject({ notified: 1 });
  expect(grantOf(task)).toMatchObject({ holder: 'unnotified' });
});

it.each([
  [5000, 1],
  [4999, 0],
])('a run with %i ms left notifies %i more tasks', async (leftMs, tasks) => {
  const key = `notifies with ${leftMs}`;
  await world.unnotified(await acquire({ key }), {});
  clock.advance(10_000);
  let leftNow = 60_000;
  requests.faultsOf.GetItem = [
    async (send) => {
      leftNow = leftMs;
      return send();
    },
  ];
  const repaired = repairLines(dependencies)({ key }, call({ timeLeftMs: () => leftNow }));
  expect(await repaired).toMatchObject({ notified: tasks });
});
