import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { failure } from '../support/leases.ts';
import { networkError } from '../support/network.ts';
import { queueWorld } from '../support/queue.ts';
import { Timeline } from '../support/timeline.ts';

const timeline = new Timeline();
const { now, later } = timeline;
const world = await queueWorld({ clock: timeline });
const { acquire, release, withdraw, cancel, rows, park, requests, steps, grantOf } = world;
afterAll(() => steps.stop());
beforeEach(() => {
  requests.faultsOf = {};
});

let keys = 0;
const newKey = () => `late ${keys++}`;

describe('the first try of a new ticket', () => {
  it('that arrives after a withdrawal does not undo it', async () => {
    const key = newKey();
    await acquire({ key, holder: 'first', ttlSeconds: 60 });
    const asked = { key, holder: 'b', requestId: 'r' };
    let late: (() => Promise<unknown>) | undefined;
    requests.faultsOf.PutItem = [
      (send) => send(), // the plain acquire
      async (send) => {
        late = send;
        throw networkError('ECONNRESET', 'write');
      },
    ];
    const [refused] = await timeline.play(
      () => failure(acquire({ ...asked, waitSeconds: 20 })),
      () =>
        later(500, async () => {
          expect(await withdraw(asked)).toMatchObject({ cancelled: true });
          await late?.().catch(() => {});
        }),
    );
    expect(refused).toMatchObject({ code: 'LeaseLost', context: { reason: 'cancelled' } });
    expect(await rows(key)).toEqual([]);
  });

  it('that landed without an answer is known: the call waits, and so does a task', async () => {
    const key = newKey();
    const first = await acquire({ key, holder: 'first', ttlSeconds: 60 });
    requests.faultsOf.PutItem = [(send) => send(), 'lostReply'];
    const [grant] = await timeline.play(
      () => acquire({ key, holder: 'b', ttlSeconds: 10, waitSeconds: 20 }),
      () =>
        later(500, async () => {
          expect(await rows(key)).toHaveLength(1);
          await release(first);
        }),
    );
    expect(grant).toMatchObject({ holder: 'b', repeated: false });
    requests.faultsOf.PutItem = ['lostReply'];
    const { task, parked } = await park({ key, holder: 'task' });
    expect(parked).toBe(true);
    await release(grant);
    expect(grantOf(task)).toMatchObject({ holder: 'task' });
  });
});

describe('a call whose ticket is gone', () => {
  it('does not join again: another call of its request may have had the lease', async () => {
    const key = newKey();
    const first = await acquire({ key, holder: 'first', ttlSeconds: 60 });
    const asked = { key, holder: 'b', requestId: 'r', ttlSeconds: 30, waitSeconds: 20 };
    const [hungUp, last] = await timeline.play(
      () => failure(acquire(asked)),
      () => later(3000, () => acquire({ key, holder: 'last', ttlSeconds: 30, waitSeconds: 10 })),
      () =>
        later(4000, async () => {
          await release(first);
          // The retry is answered with the grant, and gives it back before the first call has looked.
          await release(await acquire({ ...asked, waitSeconds: 0 }));
        }),
    );
    expect(hungUp).toMatchObject({ code: 'LeaseHeld', context: { retryWith: { requestId: 'r' } } });
    expect(hungUp.context).not.toHaveProperty('place');
    expect(last).toMatchObject({ previous: { holder: 'b', ended: 'released' } });
    expect(await rows(key)).toEqual([]);
    await release(last);
    expect(await acquire({ key, holder: 'next' })).toMatchObject({ previous: { holder: 'last' } });
  });
});

describe('an operator that cancels a call which has been granted the lease and has not claimed it', () => {
  it('is seen with the grant: the lease goes to the next one at once', async () => {
    const key = newKey();
    const first = await acquire({ key, holder: 'first', ttlSeconds: 60 });
    let cancelledAt = 0;
    const [refused, next] = await timeline.play(
      () => failure(acquire({ key, holder: 'b', waitSeconds: 20 })),
      () => later(100, async () => ({ ...(await acquire({ key, holder: 'c', waitSeconds: 20 })), at: now() })),
      () =>
        later(1500, async () => {
          const [row] = await rows(key);
          await release(first);
          expect(await cancel(key, row?.ticket?.S ?? '')).toMatchObject({ cancelled: true });
          timeline.advance(1500); // less than the window, and long enough for a look at the ticket
          cancelledAt = now();
        }),
    );
    expect(refused).toMatchObject({ code: 'LeaseLost', context: { reason: 'cancelled' } });
    expect(next.at - cancelledAt).toBeLessThanOrEqual(250);
  });
});

describe('a call in line that fails', () => {
  it('names its request and its ticket, where the store does not answer', async () => {
    const key = newKey();
    await acquire({ key, holder: 'first', ttlSeconds: 60 });
    const [failed] = await timeline.play(
      () => failure(acquire({ key, holder: 'b', requestId: 'r', waitSeconds: 20 })),
      () =>
        later(500, async () => {
          requests.faultsOf.GetItem = ['error500', 'error500', 'error500'];
          requests.faultsOf.BatchGetItem = ['error500', 'error500', 'error500'];
        }),
    );
    requests.faultsOf = {};
    const [row] = await rows(key);
    expect(failed).toMatchObject({
      code: 'Unavailable',
      context: { retryWith: { requestId: 'r', ticket: row?.ticket?.S } },
    });
  });
});
