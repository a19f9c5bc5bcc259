import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { liftFences } from '../../deployment/lift-fences.ts';
import { renew } from '../../shared/leases/marks.ts';
import { readRecord } from '../../shared/leases/read-record.ts';
import type { Leased } from '../../shared/leases/record.ts';
import { deleteWaiter } from '../../shared/line/waiters.ts';
import { call } from '../support/emulators/aws.ts';
import { queueWorld } from '../support/worlds/line.ts';

const world = await queueWorld();
const { acquire, release, park, joinLine, handOn, grantOf, rawItem, putRaw, clock, requests, steps } = world;
afterAll(() => steps.stop());
beforeEach(() => {
  requests.faultsOf = {};
});

const record = (key: string) => readRecord(world.dependencies, key, call());

describe('a fence that rises while a call stands still between its look and its write', () => {
  it('a fence that rises while a call is paused stays: of a held lease, lifted by the command for restored tables', async () => {
    const key = 'lifted under a holder';
    const first = await acquire({ key });
    const { task } = await park({ key });
    let lifted = 0;
    requests.faultsOf.UpdateItem = [
      'none', // the release loses by the mark
      async (send) => {
        await liftFences(world.dependencies.dynamodb, world.dependencies.table, clock.now());
        lifted = Number((await rawItem(key))?.fence?.N);
        return send();
      },
    ];
    expect(await release(first)).toMatchObject({ released: true });
    expect(grantOf(task).fence).toBeGreaterThan(lifted);
  });

  it.each([
    ['free', {}],
    ['expired', { lease_version: { S: 'v' }, lease_expiry: { N: '1' } }],
  ])(
    'a fence that rises while a call is paused, or has another type, of a record that is %s: no condition fits, as for acquire',
    async (state, attributes) => {
      const key = `fence of another type, ${state}`;
      await putRaw({ key: { S: key }, ...attributes, fence: { S: '9999999999999' } } as never);
      await expect(acquire({ key })).rejects.toMatchObject({ code: 'Unavailable' });
      await expect(park({ key })).rejects.toMatchObject({ code: 'Unavailable' });
      expect((await rawItem(key))?.fence).toEqual({ S: '9999999999999' });
    },
  );
});

describe('a call that stood still, by what was absent', () => {
  it('a paused call does not follow a key without a record that another caller has held since', async () => {
    clock.advance(1000);
    const task = steps.newTask();
    let between = 0;
    requests.faultsOf.UpdateItem = [
      'none', // there is no record, so the mark is refused
      async (send) => {
        clock.advance(-400); // the clock of another machine is behind, so its fence is below that of the late write
        const second = await acquire({ key: 'never before', holder: 'second' });
        between = second.fence;
        await release(second);
        clock.advance(400);
        return send();
      },
    ];
    await park({ key: 'never before', holder: 'parked' }, task);
    expect(task.output).toMatchObject({ holder: 'parked', previous: { holder: 'second' } });
    expect(grantOf(task).fence).toBeGreaterThan(between);
  });

  it('a paused call does not remove the mark that began again if the mark before named no waiter', async () => {
    const key = 'free again, unnamed';
    await release(await acquire({ key }));
    await putRaw({ ...(await rawItem(key)), waiters: { N: '1' } } as never); // as the schedule marks, which names no ticket
    let newcomer: Awaited<ReturnType<typeof joinLine>> | undefined;
    requests.faultsOf.UpdateItem = [
      async (send) => {
        expect(await handOn(key, 'free')).toMatchObject({ end: 'empty' });
        newcomer = await joinLine(key, 'newcomer');
        expect((await rawItem(key))?.waiters).toEqual({ N: '1' });
        return send();
      },
    ];
    expect(await handOn(key, 'free')).toMatchObject({ end: 'granted', moved: [newcomer?.ticket] });
  });
});

it('a call that stood still does not clear the mark that began again on a lease that stays held', async () => {
  const key = 'held, and marked again';
  const first = await acquire({ key, ttlSeconds: 2 });
  const gone = await joinLine(key, 'gone');
  await deleteWaiter(world.dependencies, { key, ticket: gone.ticket }, call());
  clock.advance(2000 + 501);
  requests.faultsOf.UpdateItem = [
    async (send) => {
      expect(await handOn(key, 'expired')).toMatchObject({ end: 'empty' });
      clock.advance(-1000); // to the clock of the newcomer the lease runs
      await joinLine(key, 'newcomer');
      expect((await rawItem(key))?.waiters).toEqual({ N: '1' });
      clock.advance(1000);
      return send();
    },
  ];
  await handOn(key, 'expired');
  expect(await rawItem(key)).toMatchObject({ waiters: { N: '1' }, fence: { N: String(first.fence) } });
});

it('a renewal that stood still does not extend the grant of the next holder', async () => {
  const key = 'renewed late';
  const first = await acquire({ key });
  const { task } = await park({ key, ttlSeconds: 3600 });
  await park({ key, ttlSeconds: 3600 });
  await release(first);
  const seen = await record(key);
  await release(grantOf(task));
  clock.advance(60_000);
  const item = await rawItem(key);
  expect(await renew(world.dependencies, { record: seen as Leased }, call())).toMatchObject({ won: false });
  expect(await rawItem(key)).toEqual(item);
});

describe('a request that finds its grant unclaimed', () => {
  /** A caller in line has been given the lease, and its call has died. */
  async function unclaimed(key: string) {
    const first = await acquire({ key, holder: 'first' });
    await joinLine(key, 'r');
    await release(first);
    requests.sent.length = 0;
    return { key, holder: 'caller', requestId: 'r', ttlSeconds: 10 };
  }

  it('a request that finds its grant unclaimed claims it by one write, and deletes its ticket', async () => {
    const again = await acquire(await unclaimed('claimed at once'));
    expect(again).toMatchObject({ repeated: true, remainingMs: 10_000, previous: { holder: 'first' } });
    expect(requests.sent).toEqual(['PutItem', 'UpdateItem', 'DeleteItem']);
  });

  it('a request that is paused before it claims, until another caller has the lease, is answered with LeaseLost', async () => {
    const asked = await unclaimed('claimed late');
    requests.faultsOf.UpdateItem = [
      async (send) => {
        clock.advance(2000 + 501);
        await acquire({ key: asked.key, holder: 'other' });
        return send();
      },
    ];
    await expect(acquire(asked)).rejects.toMatchObject({ code: 'LeaseHeld', context: { holder: 'other' } });
  });
});
