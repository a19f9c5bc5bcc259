import { afterAll, describe, expect, it } from 'vitest';
import { acquireOrParkLease } from '../../shared/leases/acquire.ts';
import { acquireInput } from '../../shared/locks/inputs.ts';
import { call } from '../support/emulators/aws.ts';
import { dyingAfter } from '../support/faults/mortal.ts';
import { Timeline } from '../support/time/timeline.ts';
import { failure } from '../support/worlds/leases.ts';
import { queueWorld } from '../support/worlds/line.ts';

// Calls that meet another call of their request, a withdrawal, or the next holder of a lease. See also test/line/requests.ts.

const timeline = new Timeline();
const { later } = timeline;
const world = await queueWorld({ clock: timeline });
const { acquire, heartbeat, release, breakLease, withdraw, park, grantOf, read, repair } = world;
const { rows, rawItem, putRaw, requests, steps, precededBy } = world;
afterAll(() => steps.stop());

type Grant = Awaited<ReturnType<typeof acquire>>;
type Send = () => Promise<unknown>;

let keys = 0;
const newKey = () => `own key ${keys++}`;
const first = () => acquire({ key: newKey(), holder: 'first' });
const ofB = (key: string) => ({ key, holder: 'b', requestId: 'r' });
const lost = (reason: string) => ({ code: 'LeaseLost', context: { reason } });

/** Its holder releases it, and another takes it. A third-party client has dropped the mark, so the release looks at no line. */
async function passedOn(key: string) {
  const { waiters: _, ...unmarked } = (await rawItem(key)) ?? {};
  await putRaw(unmarked);
  await release({ key, leaseId: unmarked.lease_id?.S ?? '' });
  return acquire({ key, holder: 'next' });
}

describe('a withdrawal', () => {
  it('a withdrawal ends a grant that is extended in that moment', async () => {
    const { key, leaseId } = await acquire(ofB(newKey()));
    timeline.advance(1000);
    requests.faultsOf.UpdateItem = [precededBy(() => heartbeat({ key, leaseId }))];
    expect(await withdraw(ofB(key))).toMatchObject({ cancelled: true });
    expect(await read({ key })).toMatchObject({ state: 'released' });
  });

  it('a withdrawal hands off a lease that is extended in that moment', async () => {
    const { key, leaseId } = await acquire(ofB(newKey()));
    const { task } = await park({ key, holder: 'task' });
    timeline.advance(1000);
    requests.faultsOf.UpdateItem = ['none', precededBy(() => heartbeat({ key, leaseId }))]; // it meets the mark
    expect(await withdraw(ofB(key))).toMatchObject({ cancelled: true });
    expect(task.output).toMatchObject({ holder: 'task', previous: { holder: 'b', ended: 'released' } });
  });

  it('a withdrawal has no effect if the grant is released, and another grant has come and gone since', async () => {
    const grant = await acquire(ofB(newKey()));
    const { key } = grant;
    const others = precededBy(async () => {
      await release(grant);
      await release(await acquire({ key, holder: 'other' }));
    });
    requests.faultsOf.UpdateItem = [others];
    expect(await withdraw(ofB(key))).toMatchObject({ cancelled: false, reason: 'unknown' });
    expect(await read({ key })).toMatchObject({ state: 'released', holder: 'other' });
  });

  it('a retry releases the lease of a call that exited after its claim, if a withdrawal exited after its flag', async () => {
    const held = await first();
    const { key } = held;
    await timeline.play(
      () => later(10, () => release(held)),
      () => dyingAfter(5, () => acquire({ ...ofB(key), waitSeconds: 20 })),
    );
    const ticket = (await rows(key))[0]?.ticket?.S ?? '';
    expect(await read({ key })).toMatchObject({ state: 'held', holder: 'b' });
    const { sent } = await dyingAfter(2, () => withdraw(ofB(key)));
    expect(sent).toEqual(['Query', 'UpdateItem']);
    expect(await failure(acquire({ ...ofB(key), ticket }))).toMatchObject(lost('cancelled'));
    expect(await read({ key })).toMatchObject({ state: 'released' });
  });

  it('a withdrawal of a call without a grant is not remembered: a later try is a new acquisition', async () => {
    const held = await first();
    const { key } = held;
    const [refused] = await timeline.play(
      () => failure(acquire({ ...ofB(key), waitSeconds: 20 })),
      () => later(500, () => withdraw(ofB(key))),
    );
    expect(refused).toMatchObject(lost('cancelled'));
    await release(held);
    expect(await acquire(ofB(key))).toMatchObject({ holder: 'b', repeated: false });
    expect(await withdraw(ofB(key))).toMatchObject({ cancelled: true }); // a grant is remembered
    expect((await failure(acquire(ofB(key)))).code).toBe('LeaseLost');
  });
});

describe('a call in line for the request of a task', () => {
  /** A task of the request waits behind a holder. */
  async function withTask(more: object = {}) {
    const held = await first();
    const { task } = await park({ ...ofB(held.key), ...more });
    return { key: held.key, held, task };
  }

  it('a call shares the grant of the task, which the schedule notifies', async () => {
    const { key, held, task } = await withTask();
    steps.faults.SendTaskSuccess = ['refused']; // its ticket stays
    const [, grant] = await timeline.play(
      () => later(300, () => release(held)),
      () => later(10, () => acquire({ ...ofB(key), waitSeconds: 20 })),
    );
    expect(grant).toMatchObject({ holder: 'b', repeated: true });
    expect(await read({ key })).toMatchObject({ state: 'held', fence: grant.fence });
    expect(await rawItem(key)).toHaveProperty('answered_at');
    timeline.advance(10_000);
    await repair();
    expect(task.output).toMatchObject({ leaseId: grant.leaseId });
  });

  it('a call receives no grant of the next holder if the lease is transferred while the call claims', async () => {
    const { key, held } = await withTask();
    steps.faults.SendTaskSuccess = ['refused']; // its ticket stays
    const next: Grant[] = [];
    const [, refused] = await timeline.play(
      () =>
        later(300, async () => {
          await release(held);
          requests.faultsOf.UpdateItem = [precededBy(async () => next.push(await passedOn(key)))];
        }),
      () => later(10, () => failure(acquire({ ...ofB(key), waitSeconds: 1 }))),
    );
    expect(refused).toMatchObject({ code: 'LeaseHeld', context: { holder: 'next', fence: next[0]?.fence } });
    expect(await read({ key })).toMatchObject({ holder: 'next', fence: next[0]?.fence });
  });

  it.each(['releases', 'loses'])(
    'a call receives no grant of the next holder if the task %s the lease',
    async (how) => {
      const { key, held, task } = await withTask();
      const [, refused, next] = await timeline.play(
        () =>
          later(300, async () => {
            requests.faultsOf.DeleteItem = ['neverSent', 'neverSent', 'neverSent']; // the call that notified the task exits here
            await release(held);
            const end = () =>
              how === 'releases' ? release(grantOf(task)) : breakLease({ key, fence: grantOf(task).fence });
            requests.faultsOf = { UpdateItem: [precededBy(end)] };
          }),
        () => later(10, () => failure(acquire({ ...ofB(key), waitSeconds: 5 }))),
        () => later(20, () => acquire({ key, holder: 'next', waitSeconds: 20 })),
      );
      expect(refused).toMatchObject({ code: 'LeaseHeld', context: { holder: 'next', fence: next.fence } });
      expect(next.fence).toBeGreaterThan(grantOf(task).fence);
    },
  );

  it('a call receives no grant of the next holder if its look shows an old record', async () => {
    const old = await acquire(ofB(newKey()));
    const { key } = old;
    const seen = await rawItem(key);
    await release(old);
    const next = await acquire({ key, holder: 'next' });
    let looks = 0;
    type Send = (args: { input: { ConsistentRead?: boolean } }) => Promise<unknown>;
    const anOldLook =
      (send: Send, context: { commandName?: string }): Send =>
      async (args) => {
        const isLook = context.commandName === 'GetItemCommand' && !args.input.ConsistentRead;
        return isLook && looks++ === 0 ? { output: { Item: seen, $metadata: {} }, response: {} } : send(args);
      };
    world.dynamodb.middlewareStack.add(anOldLook as never, { step: 'initialize', name: 'anOldLook' });
    const [refused] = await timeline.play(() => later(1, () => failure(acquire({ ...ofB(key), waitSeconds: 1 }))));
    world.dynamodb.middlewareStack.remove('anOldLook');
    expect(looks).toBeGreaterThan(0);
    expect(refused).toMatchObject({ code: 'LeaseHeld', context: { holder: 'next', fence: next.fence } });
  });

  it('a call that leaves while the lease is transferred names the next holder', async () => {
    const { key, held } = await withTask();
    steps.faults.SendTaskSuccess = ['refused']; // its ticket stays
    const next: Grant[] = [];
    const deadline = timeline.now() + 1010;
    let reads = 0;
    requests.faultsOf.GetItem = Array(50).fill(async (send: Send) => {
      if (timeline.now() < deadline || ++reads !== 2) return send();
      await release(held);
      requests.faultsOf.UpdateItem = [precededBy(async () => next.push(await passedOn(key)))];
      return send();
    });
    const [refused] = await timeline.play(() => later(10, () => failure(acquire({ ...ofB(key), waitSeconds: 1 }))));
    requests.faultsOf = {};
    expect(refused).toMatchObject({ code: 'LeaseHeld', context: { holder: 'next', fence: next[0]?.fence } });
  });

  it('a repeated request is answered with its lease while that lease is extended, unless the lease is extended at each of twenty tries', async () => {
    const asked = ofB(newKey());
    const { leaseId, fence } = grantOf((await park(asked)).task);
    const extended = precededBy(() => {
      timeline.advance(1);
      return heartbeat({ key: asked.key, leaseId });
    });
    requests.faultsOf.UpdateItem = [extended];
    expect(await acquire(asked)).toMatchObject({ leaseId, fence, repeated: true });
    requests.faultsOf.UpdateItem = Array.from({ length: 20 }, () => [extended]).flat();
    expect(await failure(acquire(asked))).toMatchObject({ code: 'LeaseHeld', context: { holder: 'b', fence } });
    expect(await acquire(asked)).toMatchObject({ leaseId, repeated: true });
  });

  it.each(['has no time left', 'exits after its write'])(
    'an unclaimed grant has the whole ttl of the task of its request, even if the call of the task %s',
    async (why) => {
      const held = await first();
      const asked = { ...ofB(held.key), ttlSeconds: 3600 };
      await timeline.play(() => dyingAfter(3, () => acquire({ ...asked, waitSeconds: 20 })));
      await release(held);
      timeline.advance(500);
      const task = steps.newTask();
      const parking = acquireInput().parse({ ...asked, taskToken: task.token });
      const late = call({ timeLeftMs: () => 499 });
      if (why.startsWith('exits')) await dyingAfter(3, () => park(asked, task));
      else expect(await acquireOrParkLease(world.dependencies)(parking, late)).toMatchObject({ parked: true });
      const seconds = Math.ceil(timeline.now() / 1000) + 3600;
      expect(await rawItem(held.key)).toMatchObject({
        ...{ expires_at: { N: String(timeline.now() + 3_600_000) }, lease_expiry: { N: String(seconds) } },
      });
      expect(task.state).toBe('waiting');
      timeline.advance(10_000);
      await repair();
      expect(grantOf(task)).toMatchObject({ holder: 'b', remainingMs: 3_600_000 });
    },
  );

  it('an unnotified task whose grant a duplicate call released keeps its place if it cannot be notified of that', async () => {
    const { key, held, task } = await withTask();
    timeline.advance(1);
    const { task: next } = await park({ key, holder: 'next' });
    steps.faults.SendTaskSuccess = ['refused'];
    await release(held);
    const grant = await acquire(ofB(key));
    steps.faults.SendTaskFailure = ['refused'];
    await release(grant);
    expect([task.state, await rows(key)]).toMatchObject(['waiting', [{}]]);
    await release(grantOf(next));
    const other = await acquire({ key, holder: 'other' });
    await repair();
    await release(other);
    expect(grantOf(task)).toMatchObject({ holder: 'b', repeated: false });
  });
});
