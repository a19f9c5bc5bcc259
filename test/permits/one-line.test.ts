import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { flagCancelled } from '../../shared/line/waiting-calls.ts';
import { worldIds } from '../support/chance/seed.ts';
import { call } from '../support/emulators/aws.ts';
import { dyingAfter } from '../support/faults/mortal.ts';
import { Timeline } from '../support/time/timeline.ts';
import { failure } from '../support/worlds/leases.ts';
import { poolLineWorld } from '../support/worlds/permits-in-line.ts';

// Rules of a call in line that permits share with leases (docs/protocols/queue.md#wait).

const timeline = new Timeline();
const world = await poolLineWorld({ clock: timeline, ids: { ...worldIds(), random: () => 0 } });
const { acquire, release, heartbeat, park, read, rows, grantOf, sent, dependencies, requests, steps } = world;
const { answeredLate } = world;
afterAll(() => steps.stop());
beforeEach(() => {
  requests.faultsOf = {};
  requests.sent.length = 0;
});

/** With so little time left, a release leaves the line to others. */
const late = call({ timeLeftMs: () => 1999 });

const waits = (key: string, more: object = {}) => acquire({ key, limit: 1, waitSeconds: 20, ...more });
/** A call that joins the line, and then exits. @returns its ticket */
const dieInLine = async (key: string, more: object = {}) => {
  await timeline.play(() => dyingAfter(3, () => waits(key, { holder: 'dead', ...more })));
  timeline.advance(1); // a later ticket
  return (await rows(key)).at(-1)?.ticket?.S ?? '';
};

it.each([4100, 9999])('a claim of a permit that is answered %i ms late is renewed to its whole ttl', async (lateMs) => {
  const key = `late claim ${lateMs}`;
  const first = await acquire({ key, limit: 1 });
  const [grant] = await timeline.play(
    () => waits(key, { holder: 'next', ttlSeconds: 8 }),
    () =>
      timeline.later(1000, async () => {
        await release(first);
        requests.faultsOf.UpdateItem = [answeredLate(lateMs)];
      }),
  );
  expect(grant).toMatchObject({ holder: 'next', repeated: false, remainingMs: 8000 });
});

it('the position in LeaseHeld does not count a waiter that has its permit', async () => {
  const key = 'granted row';
  const first = await acquire({ key, limit: 1 });
  await dieInLine(key);
  await release(first);
  const [refused] = await timeline.play(() => failure(waits(key, { waitSeconds: 1 })));
  expect(refused).toMatchObject({ code: 'LeaseHeld', context: { place: 1, waiting: 0 } });
});

it('a repeated acquire does not extend a permit that came from the line', async () => {
  const key = 'not prolonged';
  const first = await acquire({ key, limit: 1 });
  await dieInLine(key, { requestId: 'r' });
  await release(first);
  const again = () => acquire({ key, holder: 'dead', requestId: 'r', limit: 1, ttlSeconds: 10 });
  const claimed = await again();
  timeline.advance(6000);
  expect(await again()).toMatchObject({ repeated: true, expiresAt: claimed.expiresAt, remainingMs: 4000 });
  expect(await heartbeat({ key, leaseId: claimed.leaseId })).toMatchObject({ remainingMs: 10_000 });
});

it.each(['with its ticket', 'without it'])(
  'a withdrawn call gives up its claimed permit if the call asks again %s',
  async (how) => {
    const key = `flagged, ${how}`;
    const first = await acquire({ key, limit: 1 });
    const ticket = await dieInLine(key, { requestId: 'r' });
    await release(first);
    const asked = { key, holder: 'dead', requestId: 'r', limit: 1 };
    await dyingAfter(2, () => acquire(asked)); // exits between its claim and the deletion of the row
    expect(await flagCancelled(dependencies, { name: { key: key, ticket } }, call())).toBe(true);
    const again = how === 'without it' ? asked : { ...asked, ticket, waitSeconds: 20 };
    expect(await failure(acquire(again))).toMatchObject({ code: 'LeaseLost', context: { reason: 'cancelled' } });
    expect(await read(key)).toMatchObject({ used: 0 });
  },
);

describe('a line whose next waiter is too heavy for the free room', () => {
  const heavyFirst = async (key: string) => {
    for (const holder of ['a', 'b', 'c']) await acquire({ key, holder, limit: 4, ttlSeconds: 600 });
    await park({ key, holder: 'heavy', limit: 4, weight: 2 });
    timeline.advance(1); // a later ticket
    requests.sent.length = 0;
  };

  it('a light call behind a heavy waiter reads the line no more than once a second', async () => {
    await heavyFirst('light');
    const [refused] = await timeline.play(() => failure(waits('light', { limit: 4 })));
    expect(refused).toMatchObject({ code: 'LeaseHeld', context: { place: 2 } });
    expect(sent('Query')).toBeLessThan(25);
  });

  it('a call that races while a heavy waiter is next tries no more than once a second', async () => {
    await heavyFirst('racer');
    const [refused] = await timeline.play(() => failure(waits('racer', { limit: 4, fair: false })));
    expect(refused).toMatchObject({ code: 'LeaseHeld' });
    expect([sent('UpdateItem') < 25, sent('Query') < 25]).toEqual([true, true]);
  });

  it('a light call is served within two seconds after the deadline of a heavy call that has exited', async () => {
    const key = 'heavy dies';
    for (const holder of ['a', 'b', 'c']) await acquire({ key, holder, limit: 4, ttlSeconds: 600 });
    const beganAt = timeline.now();
    const [, light] = await timeline.play(
      () => dyingAfter(3, () => waits(key, { holder: 'heavy', limit: 4, weight: 2, waitSeconds: 5 })),
      () => timeline.later(100, () => waits(key, { limit: 4 })),
    );
    expect(light).toMatchObject({ used: 4 });
    expect(timeline.now() - beganAt).toBeLessThan(7000);
  });
});

it('a call in line that ends with LeaseLost hands off the free room', async () => {
  const key = 'hands on';
  const first = await acquire({ key, limit: 1 });
  const asked = { holder: 'twice', requestId: 'r', ttlSeconds: 10 };
  const task = steps.newTask();
  const [refused] = await timeline.play(
    () => failure(waits(key, asked)),
    () => timeline.later(10, () => park({ key, holder: 'behind', limit: 1 }, task)),
    () =>
      timeline.later(500, async () => {
        await release(first);
        await release(await acquire({ key, limit: 1, ...asked }), late);
        expect(task.state).toBe('waiting');
      }),
  );
  expect(refused).toMatchObject({ code: 'LeaseLost', context: { reason: 'released' } });
  expect(task.state).toBe('succeeded');
});

it('a waiter that is not next sleeps no longer than its patience', async () => {
  const key = 'patience';
  const first = await acquire({ key, limit: 1 });
  const { task } = await park({ key, holder: 'next', limit: 1 });
  timeline.advance(1); // a later ticket
  const asked = { holder: 'behind', waitSeconds: 1 };
  const [left] = await timeline.play(() => failure(waits(key, asked)));
  let releasedAt = 0;
  await timeline.play(
    // A call that asks again does not know its position, so it looks each 150 ms.
    () => failure(waits(key, { ...asked, ...(left?.context.retryWith as object), waitSeconds: 5 })),
    () =>
      timeline.later(1080, async () => {
        await release(first, late);
        releasedAt = timeline.now();
      }),
  );
  const { acquiredAt } = grantOf(task) as unknown as { acquiredAt: string };
  expect(Date.parse(acquiredAt) - releasedAt).toBeLessThanOrEqual(200);
});
