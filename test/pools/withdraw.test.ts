import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { flagCancelled } from '../../shared/leases/queue/caller-tickets.ts';
import { lineOf } from '../../shared/leases/queue/tickets.ts';
import { post } from '../support/adapters.ts';
import { call } from '../support/aws.ts';
import { failure } from '../support/leases.ts';
import { dyingAfter } from '../support/mortal.ts';
import { poolLineWorld } from '../support/pool-line.ts';
import { Timeline } from '../support/timeline.ts';

const timeline = new Timeline();
const { now, later } = timeline;
const world = await poolLineWorld({ clock: timeline });
const { acquire, release, withdraw, park, grantOf, read, rows, rawItem, requests, steps, as, handlers } = world;
afterAll(() => steps.stop());
beforeEach(() => {
  requests.faultsOf = {};
  steps.faults = {};
});

const owner = as('arn:aws:iam::1:user/owner');
let keys = 0;
const newKey = () => `withdraw ${keys++}`;
const cancelled = { code: 'LeaseLost', context: { reason: 'cancelled' } };
/** A call of the owner whose function dies once it is in line. */
const dieInLine = async (asked: object) => {
  await timeline.play(() => dyingAfter(4, () => acquire({ holder: 'b', limit: 1, waitSeconds: 20, ...asked }, owner)));
  timeline.advance(1); // a later ticket
};

describe('a withdrawal of a request for a permit', () => {
  it('ends the call that waits, and those behind it come in', async () => {
    const key = newKey();
    await acquire({ key, holder: 'first', limit: 2, ttlSeconds: 60 });
    const heavy = { key, holder: 'heavy', requestId: 'w1', limit: 2, weight: 2, waitSeconds: 20 };
    const [refused, light, withdrawn] = await timeline.play(
      async () => ({ ...(await failure(acquire(heavy, owner))), at: now() }),
      () => later(100, () => acquire({ key, holder: 'light', limit: 2, waitSeconds: 20 })),
      () =>
        later(3000, async () => ({ ...(await withdraw({ key, requestId: 'w1', holder: 'heavy' }, owner)), at: now() })),
    );
    expect(withdrawn).toMatchObject({ key, requestId: 'w1', cancelled: true });
    expect(refused).toMatchObject(cancelled);
    expect(refused.at - withdrawn.at).toBeLessThanOrEqual(1250);
    expect(light.waitedMs).toBeLessThan(3500);
    expect(await rows(key)).toEqual([]);
    expect(await rawItem(key)).not.toHaveProperty('waiters');
  });

  it('ends a permit, and the request is refused from then on', async () => {
    const key = newKey();
    const asked = { key, holder: 'b', requestId: 'w2', limit: 1 };
    await acquire(asked, owner);
    expect(await withdraw({ key, requestId: 'w2', holder: 'b' }, owner)).toMatchObject({ cancelled: true });
    expect(await read(key)).toMatchObject({ used: 0, holders: [] });
    expect(await failure(acquire(asked, owner))).toMatchObject({ code: 'LeaseLost', context: { reason: 'released' } });
    expect(await withdraw({ key, requestId: 'w2', holder: 'b' }, owner)).toMatchObject({
      cancelled: false,
      reason: 'unknown',
    });
  });

  it('ends a permit from the line that its call has not claimed, and gives its room to the next', async () => {
    const key = newKey();
    const first = await acquire({ key, holder: 'first', limit: 1 });
    await dieInLine({ key, requestId: 'w3' });
    const { task } = await park({ key, holder: 'task', limit: 1 });
    await release(first);
    expect((await read(key)).holders).toMatchObject([{ holder: 'b' }]);
    expect(await withdraw({ key, requestId: 'w3', holder: 'b' }, owner)).toMatchObject({ cancelled: true });
    expect(grantOf(task)).toMatchObject({ holder: 'task' });
  });

  it('of a task that has not heard of its permit ends the task', async () => {
    const key = newKey();
    const first = await acquire({ key, holder: 'first', limit: 1 });
    const { task } = await park({ key, holder: 'task', requestId: 'w4', limit: 1 });
    steps.faults.SendTaskSuccess = ['refused', 'refused', 'refused'];
    await release(first);
    expect([task.state, (await read(key)).holders]).toMatchObject(['waiting', [{ holder: 'task' }]]);
    steps.faults = { SendTaskFailure: ['refused', 'refused', 'refused'] };
    const asked = { key, requestId: 'w4', holder: 'task' };
    expect((await failure(withdraw(asked))).code).toBe('Unavailable');
    steps.faults = {};
    expect(await withdraw(asked)).toMatchObject({ cancelled: true });
    expect(task).toMatchObject({ state: 'failed', error: 'LeaseLost', cause: { key, reason: 'cancelled' } });
    expect([(await read(key)).used, await rows(key)]).toEqual([0, []]);
  });

  it('reaches only requests of its own caller and holder', async () => {
    const key = newKey();
    const grant = await acquire({ key, holder: 'b', requestId: 'w5', limit: 1 }, owner);
    await dieInLine({ key, holder: 'd', requestId: 'w6' });
    for (const [requestId, holder, who] of [
      ['w5', 'b', as('arn:aws:iam::1:user/other')],
      ['w5', 'b', call()],
      ['w5', 'c', owner],
      ['w7', 'b', owner],
      ['w6', 'd', as('another')],
    ] as const)
      expect(await withdraw({ key, requestId, holder }, who)).toMatchObject({ cancelled: false, reason: 'unknown' });
    expect((await rows(key))[0]).not.toHaveProperty('cancelled_at');
    expect(await release(grant)).toMatchObject({ released: true });
  });

  it('that crosses a claim is seen by it: the permit is given back', async () => {
    const key = newKey();
    const first = await acquire({ key, holder: 'first', limit: 1 });
    const [, refused] = await timeline.play(
      () =>
        later(100, async () => {
          await release(first);
          // The flag lands between the claim and the deletion of the ticket, and the claim after the withdrawal has read the record.
          requests.faultsOf.DeleteItem = [
            async (send) => {
              const [row] = await rows(key);
              const name = { key: lineOf(key), ticket: row?.ticket?.S ?? '' };
              await flagCancelled(world.dependencies, { name }, call());
              return send();
            },
          ];
        }),
      () => failure(acquire({ key, holder: 'second', requestId: 'w8', limit: 1, waitSeconds: 20 })),
    );
    expect(refused).toMatchObject(cancelled);
    expect(await read(key)).toMatchObject({ used: 0 });
  });

  it('of a call that has left is seen when it asks again', async () => {
    const key = newKey();
    const first = await acquire({ key, holder: 'first', limit: 1 });
    const asked = { key, holder: 'b', requestId: 'w9', limit: 1, waitSeconds: 1 };
    const [refused] = await timeline.play(() => failure(acquire(asked, owner)));
    const { ticket } = refused.context.retryWith as { ticket: string };
    await withdraw({ key, requestId: 'w9', holder: 'b' }, owner);
    const [again] = await timeline.play(() => failure(acquire({ ...asked, ticket }, owner)));
    expect(again).toMatchObject(cancelled);
    await release(first);
    expect(await failure(acquire({ ...asked, ticket }, owner))).toMatchObject(cancelled);
    expect(await read(key)).toMatchObject({ used: 0 });
  });

  it('whose answers are lost, or that dies after any of its writes: asked again it is done', async () => {
    for (let writes = 1, survived = false; !survived; writes++) {
      const key = newKey();
      const first = await acquire({ key, holder: 'first', limit: 1 });
      await dieInLine({ key, requestId: 'r' });
      const { task } = await park({ key, holder: 'task', limit: 1 });
      await release(first);
      const asked = { key, requestId: 'r', holder: 'b' };
      ({ survived } = await dyingAfter(writes, () => withdraw(asked, owner)));
      requests.faultsOf.UpdateItem = ['lostReply'];
      await withdraw(asked, owner);
      requests.faultsOf = {};
      timeline.advance(11_000);
      await world.repairLine(key);
      expect(grantOf(task)).toMatchObject({ holder: 'task' });
      expect((await read(key)).holders).toMatchObject([{ holder: 'task' }]);
    }
  });
});

it('through its function: a permit, and the lease of another key first', async () => {
  const { acquire: ask, withdraw: function_ } = handlers;
  await post(ask, { key: 'both', holder: 'h', requestId: 'permit', limit: 1 });
  await post(ask, { key: 'both', holder: 'h', requestId: 'lease' });
  for (const requestId of ['permit', 'lease'])
    expect(await post(function_, { key: 'both', holder: 'h', requestId })).toMatchObject({ body: { cancelled: true } });
  expect(await post(function_, { key: 'both', holder: 'h', requestId: 'lease' })).toMatchObject({
    body: { cancelled: false, reason: 'unknown' },
  });
  expect(await read('both')).toMatchObject({ used: 0 });
});
