import { expect, it } from 'vitest';
import { call } from '../support/emulators/aws.ts';
import { exitingAfter } from '../support/faults/mortal.ts';
import type { LineWorld } from './world.ts';

const WINDOW_MS = 2000;
const MARGIN_MS = 500;
/** When a steady call first polls the record, and how often it polls after that. */
const POLL_MS = 25;

/** What a call in line does by what it sees of the record and of its own waiter. */
export async function polls(lineWorld: LineWorld) {
  const world = await lineWorld();
  const { acquire, release, cancel, executionEnded, park, repair, rows, exitInLine } = world;
  const { requests, steps, newKey, timeline, steady, refusedAfter, precededBy, answeredLate } = world;
  const { now, later } = timeline;

  const asked = (key: string) => ({ key, holder: 'b', requestId: 'r', ttlSeconds: 10 });
  const lost = (reason: string) => ({ code: 'LeaseLost', context: { reason } });
  const played = async <T>(waits: () => Promise<T>) => (await timeline.play(waits))[0];
  /** The lock is held for a second already, so that the first poll is the same for both locks. */
  const held = async () => {
    const first = await acquire({ key: newKey(), holder: 'first', ttlSeconds: 60 });
    timeline.advance(1000);
    return first;
  };
  const cancelFirst = async (key: string) => cancel(key, (await rows(key))[0]?.ticket?.S ?? '');
  let executions = 0;
  const endedExecution = () => {
    const execution = `arn:aws:states:us-east-1:123456789012:execution:machine:polls-${executions++}`;
    steps.executions.set(execution, 'FAILED');
    return execution;
  };
  /** A release without the time to read the line. */
  const releaseOnly = (grant: { key: string; leaseId: string }) => release(grant, call({ timeLeftMs: () => 1999 }));
  /** Something happens right before the first poll of a call that comes now. */
  const beforeFirstPoll = (what: () => Promise<unknown>) => {
    requests.faultsOf.GetItem = [precededBy(what)];
  };
  /** `what` happens right after the first poll of a call. The answer to that poll arrives `ms` after it was sent. */
  const afterFirstPoll = (ms: number, what: () => Promise<unknown> = async () => {}) => {
    requests.faultsOf.GetItem = [
      async (send) => {
        const seen = await send();
        const until = now() + ms;
        await what();
        timeline.advance(until - now());
        return seen;
      },
    ];
  };

  const PAUSED_MS = WINDOW_MS + 1;
  const AT = POLL_MS + PAUSED_MS;

  it.each([
    [WINDOW_MS, POLL_MS + WINDOW_MS + POLL_MS],
    [PAUSED_MS, AT],
  ])('a call without a waiter leaves after %i ms of pause, at %i ms', async (ms, at) => {
    const { key } = await held();
    const execution = endedExecution();
    afterFirstPoll(ms, async () => {
      await park({ key, holder: 'behind' });
      await executionEnded(execution);
    });
    const refused = await played(() => refusedAfter(key, { execution }));
    const context = { holder: 'first', retryWith: { requestId: 'r' } };
    expect(refused).toMatchObject({ code: 'LeaseHeld', afterMs: at, context });
    expect(refused.context.retryWith).not.toHaveProperty('ticket');
  });

  it('a call whose waiter is in line waits on after a pause', async () => {
    const first = await held();
    afterFirstPoll(PAUSED_MS);
    const [granted] = await timeline.play(
      () => steady(first.key),
      () => later(AT + 10, () => release(first)),
    );
    expect(granted).toMatchObject({ holder: 'b', repeated: false, waitedMs: AT + POLL_MS });
  });

  it('a call that was cancelled during a pause deletes only its own row', async () => {
    const { key } = await held();
    afterFirstPoll(PAUSED_MS, async () => {
      await park({ key, holder: 'behind' });
      await cancelFirst(key);
    });
    expect(await played(() => refusedAfter(key))).toMatchObject({ ...lost('cancelled'), afterMs: AT });
    expect((await rows(key)).map(({ holder }) => holder?.S)).toEqual(['behind']);
  });

  it.each([
    ['that it has not claimed, and that is over', async () => {}],
    // The first try, and the claim.
    ['that an exited call of its request claimed', (key: string) => exitingAfter(2, () => acquire(asked(key)))],
  ])('a cancelled call with a grant %s hands off at once', async (_, claim) => {
    const first = await held();
    const { key } = first;
    const behind = steps.newTask();
    afterFirstPoll(PAUSED_MS, async () => {
      await park({ key, holder: 'behind' }, behind);
      await release(first);
      await cancelFirst(key);
      await claim(key);
    });
    expect(await played(() => refusedAfter(key))).toMatchObject({ ...lost('cancelled'), afterMs: AT });
    expect(behind.output).toMatchObject({ holder: 'behind' });
  });

  it('a call has at once the grant of a duplicate call', async () => {
    const first = await held();
    const { key } = first;
    const others: { leaseId: string }[] = [];
    afterFirstPoll(PAUSED_MS, async () => {
      await release(first);
      others.push(await acquire(asked(key)));
      requests.sent = [];
    });
    const granted = await played(() => steady(key));
    expect(granted).toMatchObject({ repeated: true, leaseId: others[0]?.leaseId, waitedMs: AT });
    // Its ticket, the record, the answer, its ticket.
    expect(requests.sent).toEqual(['GetItem', 'GetItem', 'UpdateItem', 'DeleteItem']);
  });

  it('a call stays in line if DynamoDB leaves its ticket out of an answer', async () => {
    const first = await held();
    const { result, asked: polls } = await world.leavingOut(world.dependencies.waitersTable, () =>
      timeline.play(
        () => steady(first.key),
        () => later(1010, () => release(first)),
      ),
    );
    expect(result[0]).toMatchObject({ holder: 'b', waitedMs: 1025 });
    expect(polls).toHaveLength(1);
  });

  it('a call reads its own waiter every second', async () => {
    const { key } = await held();
    requests.faultsOf.GetItem = [answeredLate(950)];
    const [refused, cancelled] = await timeline.play(
      () => refusedAfter(key),
      () =>
        later(510, async () => {
          await park({ key, holder: 'behind' });
          return cancelFirst(key);
        }),
    );
    expect(cancelled).toMatchObject({ cancelled: true });
    expect(refused).toMatchObject({ ...lost('cancelled'), afterMs: 1000 });
    expect(await cancel(key, 'none')).toMatchObject({ cancelled: false, reason: 'unknown' });
  });

  it.each([
    ['between two polls', [answeredLate(10)]],
    ['with a poll', []],
  ])('a call leaves in the moment of its deadline, %s', async (_, faults) => {
    const { key } = await held();
    requests.faultsOf.GetItem = [...faults];
    const refused = await played(() => refusedAfter(key, { waitSeconds: 1 }));
    expect(refused).toMatchObject({ code: 'LeaseHeld', context: { holder: 'first', place: 1 }, afterMs: 1000 });
  });

  it('a call receives LeaseLost if a duplicate has released the grant', async () => {
    const first = await held();
    const { key } = first;
    await exitInLine(asked(key));
    let left = 0;
    beforeFirstPoll(async () => {
      await release(first);
      await releaseOnly(await acquire(asked(key)));
      left = (await rows(key)).length;
    });
    expect(await played(() => refusedAfter(key))).toMatchObject(lost('released'));
    expect([left, await rows(key)]).toEqual([1, []]);
  });

  it('a call claims its grant in the moment in which the grant window ends', async () => {
    const first = await held();
    const from = now();
    requests.faultsOf.GetItem = [
      async (send) => {
        await release(first);
        const seen = await send();
        timeline.advance(from + POLL_MS + WINDOW_MS - now());
        return seen;
      },
    ];
    const granted = await played(() => steady(first.key));
    expect(granted).toMatchObject({ repeated: false, waitedMs: POLL_MS + WINDOW_MS, remainingMs: 10_000 });
  });

  it('a call claims its grant after the grant window though another waits', async () => {
    const first = await held();
    const { key } = first;
    afterFirstPoll(WINDOW_MS + MARGIN_MS + 1, async () => {
      await park({ key, holder: 'behind' });
      await release(first);
    });
    const granted = await played(() => steady(key, { waitSeconds: 1 }));
    expect(granted).toMatchObject({ holder: 'b', repeated: false, remainingMs: 10_000 });
    expect(await world.see(key)).toMatchObject({ holder: 'b', waiting: 1 });
  });

  it('a call hands off a free lock before it leaves', async () => {
    const first = await held();
    const [refused, , { task }] = await timeline.play(
      () => refusedAfter(first.key, { waitSeconds: 1 }),
      () => later(990, () => releaseOnly(first)),
      () => later(10, () => park({ key: first.key, holder: 'behind' })),
    );
    expect(refused).toMatchObject({ code: 'LeaseHeld', context: { holder: 'behind' } });
    expect(task.output).toMatchObject({ holder: 'behind' });
  });

  it('a call hands off the lock that its request has just released', async () => {
    const first = await held();
    const { key } = first;
    const [refused, { task }] = await timeline.play(
      () => {
        afterFirstPoll(1000, () => release(first));
        const ends = precededBy(async () => releaseOnly(await acquire(asked(key))));
        requests.faultsOf.GetItem?.push('none', ends); // its waiter, and the record
        return refusedAfter(key, { waitSeconds: 1 });
      },
      () => later(10, () => park({ key, holder: 'behind' })),
    );
    expect(refused).toMatchObject(lost('released'));
    expect(task.state).toBe('succeeded');
  });

  it('a call has the lock that it hands off to its request', async () => {
    const first = await held();
    await exitInLine(asked(first.key));
    afterFirstPoll(1000);
    const ends = precededBy(() => releaseOnly(first));
    requests.faultsOf.GetItem?.push('none', ends); // its waiter, and the record
    const granted = await played(() => steady(first.key, { waitSeconds: 1 }));
    expect(granted).toMatchObject({ holder: 'b', repeated: false });
  });

  it('a call takes the lock, and ends the unnotified task before', async () => {
    const first = await held();
    const ofTask = { key: first.key, holder: 'task', requestId: 'of task' };
    const { task } = await park(ofTask);
    steps.faults.SendTaskSuccess = ['refused', 'refused', 'refused'];
    await release(first);
    steps.faults = {};
    timeline.advance(1); // so that the next ticket is later
    const states: string[] = [];
    beforeFirstPoll(async () => {
      await releaseOnly(await acquire(ofTask));
      states.push(task.state);
    });
    expect(await played(() => steady(first.key))).toMatchObject({ holder: 'b' });
    expect(states).toEqual(['waiting']);
    expect(task).toMatchObject({ state: 'failed', error: 'LeaseLost' });
  });

  it('a call that puts the mark back claims its grant at once', async () => {
    const first = await held();
    const { key } = first;
    const granted = async () => {
      await repair(key);
      await release(first);
    };
    requests.faultsOf.GetItem = [
      async (send) => {
        await world.removeMark(key);
        requests.faultsOf.UpdateItem = [precededBy(granted)];
        return send();
      },
    ];
    expect(await played(() => steady(key))).toMatchObject({
      ...{ holder: 'b', repeated: false, waitedMs: POLL_MS, remainingMs: 10_000 },
    });
  });

  it('a call that puts the mark back takes a free lock', async () => {
    const first = await held();
    const [granted] = await timeline.play(
      () => steady(first.key),
      () =>
        later(510, async () => {
          await world.removeMark(first.key);
          await release(first);
        }),
    );
    expect(granted).toMatchObject({ holder: 'b', waitedMs: 525 }); // at its next poll
  });

  it('a task is granted the lock after a caller that came between its marks', async () => {
    const key = newKey();
    const again = asked(key);
    await acquire({ ...again, ttlSeconds: 2 });
    timeline.advance(2600); // the margin is over too
    const others: Awaited<ReturnType<typeof acquire>>[] = [];
    const takesOver = precededBy(async () => void others.push(await acquire({ key, holder: 'other', ttlSeconds: 60 })));
    requests.faultsOf.UpdateItem = ['none', takesOver]; // the first mark, and the second
    const { task, parked } = await park(again);
    expect([parked, task.state, await world.isMarked(key)]).toEqual([true, 'waiting', true]);
    for (const other of others) await release(other);
    expect(world.grantOf(task)).toMatchObject({ holder: 'b', repeated: false });
  });
}
