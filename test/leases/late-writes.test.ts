import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { networkError } from '../support/faults/network.ts';
import { Timeline } from '../support/time/timeline.ts';
import { failure } from '../support/worlds/leases.ts';
import { queueWorld } from '../support/worlds/line.ts';

const timeline = new Timeline();
const { later } = timeline;
const world = await queueWorld({ clock: timeline });
const { acquire, release, withdraw, rows, rawItem, requests, steps } = world;
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

it('a call that joins where TTL deletes the record, and another takes the lease in that moment, is counted late and has its turn', async () => {
  const key = newKey();
  await acquire({ key, holder: 'first', ttlSeconds: 60 });
  let other: Awaited<ReturnType<typeof acquire>> | undefined;
  requests.faultsOf.UpdateItem = [
    async (send) => {
      await world.deleteRaw(key);
      try {
        return await send();
      } finally {
        other = await acquire({ key, holder: 'other', ttlSeconds: 60 });
      }
    },
  ];
  const [grant, marked] = await timeline.play(
    () => acquire({ key, holder: 'b', waitSeconds: 5 }),
    () => later(500, () => rawItem(key)),
    () => later(1000, async () => void (other && (await release(other)))),
  );
  expect(marked).toMatchObject({ holder: { S: 'other' }, waiters: { N: '1' } });
  expect(grant).toMatchObject({ holder: 'b', previous: { holder: 'other', ended: 'released' } });
});
