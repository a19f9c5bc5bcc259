import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { failure } from '../support/leases.ts';
import { networkError } from '../support/network.ts';
import { queueWorld } from '../support/queue.ts';
import { Timeline } from '../support/timeline.ts';

const timeline = new Timeline();
const { sleep } = timeline;
const world = await queueWorld({ clock: timeline });
const { acquire, release, breakLease, withdraw, read, park, cancel, repair, repairKey } = world;
const { grantOf, requests, steps } = world;
type Grant = Awaited<ReturnType<typeof acquire>>;
afterAll(() => steps.stop());
beforeEach(() => {
  requests.faultsOf = {};
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
  requests.faultsOf.UpdateItem = [
    (send) => send(),
    async (send) => {
      await send();
      await meanwhile();
      throw networkError('ECONNRESET', 'read');
    },
  ];
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
        requests.faultsOf.UpdateItem = [
          (send) => send(),
          async (send) => {
            await send();
            await sleep(500);
            throw networkError('ECONNRESET', 'read');
          },
        ];
        return withdraw({ key, requestId: 'r', holder: 'first' });
      },
    );
    expect(answer).toMatchObject({ cancelled: true });
    expect(next).toMatchObject({ holder: 'next' });
  });
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
    const first = await emptied((lease) => async (send) => {
      await breakLease(lease);
      await release(await acquire({ key: lease.key, holder: 'other' }));
      return send();
    });
    expect(await release(first)).toEqual({ key: first.key, released: false, reason: 'taken' });
  });

  it.each(['release', 'break'])(
    'by a %s whose answer was lost, and another has the lease since: nobody knows',
    async (how) => {
      const first = await emptied(({ key }) => async (send) => {
        await send();
        await acquire({ key, holder: 'other' });
        throw networkError('ECONNRESET', 'read');
      });
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
});
