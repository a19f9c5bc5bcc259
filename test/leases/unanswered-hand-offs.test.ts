import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { withdrawOwnRequest } from '../../shared/locks/withdraw.ts';
import { call } from '../support/emulators/aws.ts';
import type { Task } from '../support/emulators/step-functions.ts';
import { dyingAfter } from '../support/faults/mortal.ts';
import { networkError } from '../support/faults/network.ts';
import { Timeline } from '../support/time/timeline.ts';
import { failure } from '../support/worlds/leases.ts';
import { queueWorld } from '../support/worlds/line.ts';

const timeline = new Timeline();
const { sleep } = timeline;
const world = await queueWorld({ clock: timeline });
const { acquire, release, breakLease, withdraw, read, park, cancel, repair, repairKey } = world;
const { grantOf, requests, steps, precededBy, lostAfter } = world;
type Grant = Awaited<ReturnType<typeof acquire>>;
afterAll(() => steps.stop());
beforeEach(() => {
  requests.faultsOf = {};
  steps.faults = {};
});

let keys = 0;
const newKey = () => `landed ${keys++}`;
const ENDS = ['released', 'broken'] as const;

/** Ends the lease. Its own end is refused for those in line, and the transfer lands without an answer: then `meanwhile` happens, and the SDK tries again. */
function endOf(
  how: (typeof ENDS)[number],
  grant: Parameters<typeof release>[0] & { fence: number },
  meanwhile: () => Promise<unknown>,
) {
  requests.faultsOf.UpdateItem = [(send) => send(), lostAfter(() => meanwhile())];
  return how === 'released' ? release(grant) : breakLease(grant);
}

describe('a hand-off that landed without an answer', () => {
  it.each(ENDS)('to a caller that has claimed it since: the lease was %s', async (how) => {
    const key = newKey();
    const first = await acquire({ key, holder: 'first' });
    const [next, answer] = await timeline.play(
      () => acquire({ key, holder: 'next', waitSeconds: 20 }),
      async () => {
        await sleep(1000);
        return endOf(how, first, () => sleep(500));
      },
    );
    expect(answer).toMatchObject({ key, [how]: true });
    expect(next).toMatchObject({ holder: 'next', previous: { holder: 'first', ended: how } });
    expect(await read({ key })).toMatchObject({ holder: 'next', fence: next.fence });
  });

  it.each(ENDS)('to a task that the schedule has notified since: the lease was %s', async (how) => {
    const key = newKey();
    const first = await acquire({ key, holder: 'first' });
    const { task } = await park({ key, holder: 'task' });
    const answer = await endOf(how, first, async () => {
      timeline.advance(11_000);
      await repair();
      await release(grantOf(task));
    });
    expect(answer).toMatchObject({ key, [how]: true });
    expect(grantOf(task)).toMatchObject({ previous: { holder: 'first', ended: how } });
  });

  it.each(ENDS)('and was followed by another holder: nobody knows whether the lease was %s', async (how) => {
    const key = newKey();
    const first = await acquire({ key, holder: 'first' });
    const { task } = await park({ key, holder: 'task' });
    const answer = endOf(how, first, async () => {
      timeline.advance(11_000);
      await repair();
      await release(grantOf(task));
      await acquire({ key, holder: 'last' });
    });
    if (how === 'released') expect(await answer).toEqual({ key, released: false, reason: 'unknown' });
    else await expect(answer).rejects.toMatchObject({ code: 'OutcomeUnknown', context: { key } });
  });

  it('to a caller, by a withdrawal: the request is withdrawn', async () => {
    const key = newKey();
    await acquire({ key, holder: 'first', requestId: 'r' });
    const [next, answer] = await timeline.play(
      () => acquire({ key, holder: 'next', waitSeconds: 20 }),
      async () => {
        await sleep(1000);
        requests.faultsOf.UpdateItem = [(send) => send(), lostAfter(() => sleep(500))];
        return withdraw({ key, requestId: 'r', holder: 'first' });
      },
    );
    expect(answer).toMatchObject({ cancelled: true });
    expect(next).toMatchObject({ holder: 'next' });
  });
});

it('a release that hands on at once, landed without an answer, and another holds the lease by now: nobody knows', async () => {
  const key = newKey();
  const first = await acquire({ key, holder: 'first' });
  const parked = [];
  for (const holder of ['one', 'two']) {
    timeline.advance(1);
    parked.push((await park({ key, holder })).task);
  }
  const [one, two] = parked as [Task, Task];
  await release(first);
  timeline.advance(1);
  requests.faultsOf.UpdateItem = [
    lostAfter(async () => {
      timeline.advance(11_000);
      await repair();
      await release(grantOf(two));
      await acquire({ key, holder: 'last' });
    }),
  ];
  expect(grantOf(one).leaseId).toContain('+');
  expect(await release(grantOf(one))).toEqual({ key, released: false, reason: 'unknown' });
});

describe('a hand-off that landed without an answer, where the holder before had died', () => {
  /** Lands a write without an answer, after which the task is told by the schedule and gives the lease back. */
  const toldMeanwhile = (task: ReturnType<typeof steps.newTask>) => async (send: () => Promise<unknown>) => {
    await send();
    timeline.advance(11_000);
    await repair();
    await release(grantOf(task));
    throw networkError('ECONNRESET', 'read');
  };

  it('by the schedule: it is counted as granted', async () => {
    const key = newKey();
    await acquire({ key, ttlSeconds: 2 });
    const { task } = await park({ key });
    timeline.advance(3000);
    requests.faultsOf.UpdateItem = [toldMeanwhile(task)];
    expect(await repairKey(key)).toMatchObject({ granted: 1 });
  });

  it('by the task itself: it has had the lease, and is not parked', async () => {
    const key = newKey();
    await acquire({ key, ttlSeconds: 2 });
    timeline.advance(3000);
    const task = steps.newTask();
    requests.faultsOf.UpdateItem = ['none', toldMeanwhile(task)]; // the mark, and the transfer
    expect(await park({ key }, task)).toMatchObject({ parked: false });
    expect(task.state).toBe('succeeded');
  });
});

it('a hand-off by the schedule whose task was told, and whose ticket cannot be deleted, is counted as granted', async () => {
  const key = newKey();
  await acquire({ key, ttlSeconds: 2 });
  const { task } = await park({ key });
  timeline.advance(3000);
  requests.faultsOf.DeleteItem = ['neverSent', 'neverSent', 'neverSent'];
  expect(await repairKey(key)).toMatchObject({ granted: 1 });
  expect(task.state).toBe('succeeded');
});

it('a hand-off by the schedule to a task that was gone, which another call has passed over since, is counted as granted', async () => {
  const [key, execution] = [newKey(), steps.newExecution()];
  await acquire({ key, ttlSeconds: 2 });
  const gone = await park({ key, execution });
  timeline.advance(1);
  const next = await park({ key });
  gone.task.state = 'timedOut';
  timeline.advance(3000);
  const ended: unknown[] = [];
  const passesOver = async (send: () => Promise<unknown>) => {
    ended.push(await world.executionEnded(execution));
    return send();
  };
  requests.faultsOf.UpdateItem = ['none', passesOver];
  expect(await repairKey(key)).toMatchObject({ granted: 1 });
  expect(ended).toMatchObject([{ freed: 1 }]);
  expect(next.task.state).toBe('succeeded');
});

describe('the end of a lease whose line is empty', () => {
  /** Its mark stands, and `end` is what becomes of the write that ends the grant and takes off the mark. */
  async function emptied(end: (first: Grant) => (send: () => Promise<unknown>) => Promise<unknown>) {
    const first = await acquire({ key: newKey(), holder: 'first' });
    const { key } = first;
    const { ticket } = await park({ key });
    await cancel(key, ticket);
    requests.faultsOf.UpdateItem = ['none', end(first)]; // the mark refuses the first
    return first;
  }

  it('whose write comes too late, where others have had the lease since: it was taken', async () => {
    const first = await emptied((lease) =>
      precededBy(async () => {
        await breakLease(lease);
        await release(await acquire({ key: lease.key, holder: 'other' }));
      }),
    );
    expect(await release(first)).toEqual({ key: first.key, released: false, reason: 'taken' });
  });

  it.each(['release', 'break'])(
    'by a %s whose answer was lost, and another has the lease since: nobody knows',
    async (how) => {
      const first = await emptied(({ key }) =>
        lostAfter(async () => {
          await acquire({ key, holder: 'other' });
        }),
      );
      if (how === 'break') expect(await failure(breakLease(first))).toMatchObject({ code: 'OutcomeUnknown' });
      else expect(await release(first)).toEqual({ key: first.key, released: false, reason: 'unknown' });
    },
  );
});

describe('a withdrawal that landed without an answer', () => {
  const lost = (meanwhile: () => Promise<unknown>) => async (send: () => Promise<unknown>) => {
    await send();
    await meanwhile();
    throw networkError('ECONNRESET', 'read');
  };

  it('of a lease that another caller has taken since: nobody knows', async () => {
    const [key, asked] = [newKey(), { holder: 'first', requestId: 'r' }];
    await acquire({ key, ...asked });
    requests.faultsOf.UpdateItem = [lost(() => acquire({ key, holder: 'other' }))];
    const answer = withdraw({ key, ...asked });
    await expect(answer).rejects.toMatchObject({ code: 'OutcomeUnknown', context: { key } });
    expect(await read({ key })).toMatchObject({ holder: 'other', state: 'held' });
  });

  it('of a lease that went to a task, and then to another caller: nobody knows', async () => {
    const [key, asked] = [newKey(), { holder: 'first', requestId: 'r' }];
    await acquire({ key, ...asked });
    const { task } = await park({ key, holder: 'task' });
    const others = async () => {
      timeline.advance(11_000);
      await repair();
      await release(grantOf(task));
      await acquire({ key, holder: 'other' });
    };
    requests.faultsOf.UpdateItem = [(send) => send(), lost(others)];
    await expect(withdraw({ key, ...asked })).rejects.toMatchObject({ code: 'OutcomeUnknown' });
  });

  it('of a lease that nobody has taken since: it is withdrawn', async () => {
    const [key, asked] = [newKey(), { holder: 'first', requestId: 'r' }];
    await acquire({ key, ...asked });
    requests.faultsOf.UpdateItem = [lost(async () => {})];
    expect(await withdraw({ key, ...asked })).toMatchObject({ cancelled: true });
  });

  it('of the grant of a task that was told so, where others have had the lease since: it is withdrawn', async () => {
    for (const answered of [true, false]) {
      const [first, asked] = [await acquire({ key: newKey() }), { holder: 'task', requestId: 'r' }];
      const { key } = first;
      const { task } = await park({ key, ...asked });
      steps.faults.SendTaskSuccess = ['refused'];
      await release(first);
      const others = async () => {
        if (answered) await breakLease({ key, fence: Number((await world.rawItem(key))?.fence?.N) });
        await acquire({ key, holder: 'other' });
      };
      const beforehand = async (send: () => Promise<unknown>) => {
        await others();
        return send();
      };
      // The flag of its place, and the end of its grant.
      requests.faultsOf.UpdateItem = ['none', answered ? beforehand : lost(others)];
      expect(await withdraw({ key, ...asked })).toMatchObject({ cancelled: true });
      expect(task).toMatchObject({ state: 'failed', error: 'LeaseLost', cause: { reason: 'cancelled' } });
      expect(await read({ key })).toMatchObject({ state: 'held', holder: 'other' });
    }
  });
});

describe('a withdrawal that meets others in line', () => {
  it('and is overtaken by the release of its own grant: there is nothing left to withdraw', async () => {
    const [key, asked] = [newKey(), { holder: 'first', requestId: 'r' }];
    const grant = await acquire({ key, ...asked });
    const { task } = await park({ key, holder: 'task' });
    requests.faultsOf.UpdateItem = [
      'none', // it meets the mark
      precededBy(() => release(grant)),
    ];
    expect(await withdraw({ key, ...asked })).toMatchObject({ cancelled: false, reason: 'unknown' });
    expect(grantOf(task)).toMatchObject({ holder: 'task' });
  });
});

it('a withdrawal whose call comes in line, is granted the lease, and gives that up by the flag: it is withdrawn', async () => {
  const first = await acquire({ key: newKey(), holder: 'first' });
  const asked = { key: first.key, holder: 'b', requestId: 'r' };
  const calls: { code: string }[] = [];
  // Between its look at the line, which is empty, and the one at the record.
  requests.faultsOf.GetItem = [
    precededBy(async () => {
      await timeline.play(() => dyingAfter(3, () => acquire({ ...asked, waitSeconds: 20 })));
      timeline.advance(1);
      await park({ key: first.key, holder: 'behind' });
      await release(first);
      requests.faultsOf.UpdateItem = ['none', gives]; // the flag, and the end of the grant
    }),
  ];
  const gives = async (send: () => Promise<unknown>) => {
    calls.push(await failure(acquire(asked)));
    return send();
  };
  expect(await withdraw(asked)).toEqual({ key: first.key, requestId: 'r', cancelled: true });
  expect(calls).toMatchObject([{ code: 'LeaseLost', context: { reason: 'cancelled' } }]);
});

it('a withdrawal in a deployment that has no table of pools asks for no permit', async () => {
  const { poolsTable: _, ...alone } = world.dependencies;
  const asked = { key: newKey(), holder: 'nobody', requestId: 'r' };
  expect(await withdrawOwnRequest(alone)(asked, call())).toEqual({
    ...{ key: asked.key, requestId: 'r', cancelled: false, reason: 'unknown' },
  });
});
