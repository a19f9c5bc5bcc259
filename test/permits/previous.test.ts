import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { poolLineWorld } from '../support/worlds/permits-in-line.ts';

const world = await poolLineWorld();
const { acquire, release, breakPermit, park, grantOf, repairLine, rawItem, keepWaiting, clock, steps, requests } =
  world;
afterAll(() => steps.stop());
beforeEach(() => {
  steps.faults = {};
  requests.faultsOf = {};
});

const expired = (holder: string) => ({ holder, ended: 'expired', fence: expect.any(Number), at: expect.any(String) });

/** The attribute of its only holder. */
const entryOf = async (key: string) =>
  Object.entries((await rawItem(key)) ?? {}).find(([name]) => /^h.{16}$/.test(name));

async function changeEntry(key: string, parts: object): Promise<void> {
  const [name = '', entry] = (await entryOf(key)) ?? [];
  await world.setRaw(key, name, { M: { ...entry?.M, ...parts } });
}

/** Nobody else ends them in between. */
const expire = () => clock.advance(2501);

describe('previous of a permit', () => {
  it('`previous` of a permit is null if there was room all along, or if a release or a break made the room', async () => {
    const first = await acquire({ key: 'room', limit: 1 });
    const { task } = await park({ key: 'room', holder: 'b', limit: 1 });
    await release(first);
    expect([first.previous, grantOf(task).previous]).toEqual([null, null]);
    await breakPermit({ key: 'room', fence: grantOf(task).fence });
    expect((await acquire({ key: 'room', holder: 'c', limit: 1 })).previous).toBeNull();
  });

  it('`previous` of a permit names each holder once: the last to end to the first in line', async () => {
    const key = 'several';
    // v, w and x end at once, and before y.
    const [ends, holders] = [clock.now() + 4000, ['y', 'v', 'w', 'x']];
    for (const holder of holders) {
      await acquire({ key, holder, limit: 4, ttlSeconds: holder === 'y' ? 4 : 2 });
    }
    const parked = [];
    for (const holder of ['b', 'c', 'd']) parked.push((await park({ key, holder, limit: 4 })).task);
    clock.set(ends + 501);
    await repairLine(key);
    expect(parked.map((task) => grantOf(task).previous)).toEqual([expired('y'), expired('x'), expired('w')]);
  });

  it('`previous` of a permit reaches a call that waits, and is removed from the record once the call has claimed its permit', async () => {
    const key = 'waits';
    await acquire({ key, holder: 'x', limit: 1, ttlSeconds: 2 });
    const granted = await acquire({ key, holder: 'b', limit: 1, waitSeconds: 10, requestId: 'r' });
    expect(granted.previous).toEqual(expired('x'));
    expect(JSON.stringify(await rawItem(key))).not.toContain('"q"');
    expect(await acquire({ key, holder: 'b', limit: 1, requestId: 'r' })).toMatchObject({
      repeated: true,
      previous: null,
    });
  });

  it('`previous` of a permit reaches a task that the schedule notifies, because the call that granted its permit exited', async () => {
    const key = 'schedule';
    await acquire({ key, holder: 'x', limit: 1, ttlSeconds: 2 });
    const { task } = await park({ key, holder: 'b', limit: 1 });
    expire();
    steps.faults.SendTaskSuccess = ['refused', 'refused', 'refused'];
    await repairLine(key);
    expect(task.state).toBe('waiting');
    steps.faults = {};
    clock.advance(11_000);
    await repairLine(key);
    expect(grantOf(task).previous).toEqual(expired('x'));
  });

  it.each(['h', 'e', 'f', 'a'])(
    '`previous` of a permit is null if another client has left out its part %s',
    async (part) => {
      const key = `without ${part}`;
      await acquire({ key, holder: 'x', limit: 1, ttlSeconds: 2 });
      const { task } = await park({ key, holder: 'b', limit: 1 });
      expire();
      steps.faults.SendTaskSuccess = ['refused'];
      await repairLine(key);
      const { [part]: _, ...rest } = (await entryOf(key))?.[1].M?.q?.M ?? {};
      await changeEntry(key, { q: { M: rest } });
      clock.advance(11_000);
      await repairLine(key);
      expect(grantOf(task)).toMatchObject({ holder: 'b', previous: null });
    },
  );

  it('`previous` of a permit skips a call that did not claim its permit, and a task that was gone', async () => {
    const key = 'passed on';
    await acquire({ key, holder: 'x', limit: 1, ttlSeconds: 2 });
    const dead = await park({ key, holder: 'gone', limit: 1 });
    const next = await park({ key, holder: 'b', limit: 1 });
    dead.task.state = 'timedOut';
    expire();
    await repairLine(key);
    expect(grantOf(next.task).previous).toEqual(expired('x'));

    const other = 'passed on by a call';
    const asked = acquire({ key: other, holder: 'x', limit: 1, ttlSeconds: 2 });
    await asked;
    requests.faultsOf.GetItem = Array(50).fill(() => Promise.reject(new Error('this call has died in line')));
    await acquire({ key: other, holder: 'dead', limit: 1, waitSeconds: 5 }).catch(() => {});
    requests.faultsOf = {};
    const [row] = await world.rows(other);
    await keepWaiting(other, row?.ticket?.S ?? '', clock.now() + 60_000);
    const { task } = await park({ key: other, holder: 'c', limit: 1 });
    expire();
    await repairLine(other);
    expect(task.state).toBe('waiting');
    clock.advance(2501);
    await repairLine(other);
    expect(grantOf(task).previous).toEqual(expired('x'));
  });
});
