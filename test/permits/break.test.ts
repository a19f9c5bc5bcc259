import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { networkError } from '../support/faults/network.ts';
import { Timeline } from '../support/time/timeline.ts';
import { failure } from '../support/worlds/leases.ts';
import { poolLineWorld } from '../support/worlds/permits-in-line.ts';

const world = await poolLineWorld();
const { acquire, heartbeat, release, breakPermit, read, park, grantOf, steps } = world;
const { clock, requests, rawItem, rows, precededBy, repairLine, untold } = world;

const timeline = new Timeline();
const running = await poolLineWorld({ clock: timeline });
afterAll(() => Promise.all([steps.stop(), running.steps.stop()]));

beforeEach(() => {
  requests.faultsOf = {};
  steps.faults = {};
});

const iso = (epochMs: number) => new Date(epochMs).toISOString();
const broken = { code: 'LeaseLost', context: { reason: 'broken' } };
const brokenTask = { error: 'LeaseLost', cause: { reason: 'broken' } };
const holderOf = async (key: string, fence: number) => (await read(key)).holders.find((one) => one.fence === fence);
const untoldFence = async (key: string) =>
  (await read(key)).holders.find(({ holder }) => holder === 'untold')?.fence ?? 0;

describe('a break of a permit', () => {
  it('names the bound of the former holder and its last heartbeat, also if it ends the permit at once', async () => {
    const { leaseId, fence } = await acquire({ key: 'at once', limit: 2, holder: 'worker' });
    clock.advance(20_000);
    const { expiresAt } = await heartbeat({ key: 'at once', leaseId });
    const lastHeartbeatAt = iso(clock.now());
    requests.faultsOf.UpdateItem = ['lostReply'];
    expect(await breakPermit({ key: 'at once', fence })).toEqual({
      ...{ key: 'at once', broken: true, fence, holder: 'worker', ended: true },
      ...{ holderUntil: expiresAt, lastHeartbeatAt },
    });
    const terms = { holder: null, ended: true, holderUntil: null, lastHeartbeatAt: null };
    expect(await breakPermit({ key: 'at once', fence })).toMatchObject(terms);
  });
});

describe('a break of a permit that waits for the holder', () => {
  it('marks the permit, and its holder is told at its next heartbeat, which extends nothing', async () => {
    const { key, leaseId, fence, expiresAt } = await acquire({ key: 'marked', limit: 1, holder: 'worker' });
    clock.advance(5000);
    const answer = await breakPermit({ key, fence, wait: true });
    expect(answer).toEqual({
      ...{ key, broken: true, fence, holder: 'worker', ended: false },
      ...{ holderUntil: expiresAt, lastHeartbeatAt: null },
    });
    expect(await breakPermit({ key, fence, wait: true })).toEqual(answer);
    for (const more of [{}, { ttlSeconds: 600 }])
      expect(await failure(heartbeat({ key, leaseId, ...more }))).toMatchObject(broken);
    expect(await holderOf(key, fence)).toMatchObject({ state: 'held', ending: true, expiresAt });
    expect(await failure(acquire({ key, limit: 1, holder: 'next' }))).toMatchObject({ code: 'LeaseHeld' });
  });

  it('lets no heartbeat revive the permit when the ttl has ended', async () => {
    const { key, leaseId, fence } = await acquire({ key: 'no revival', limit: 1, holder: 'worker' });
    await breakPermit({ key, fence, wait: true });
    clock.advance(60_501);
    expect(await failure(heartbeat({ key, leaseId }))).toMatchObject(broken);
    expect(await acquire({ key, limit: 1, holder: 'next' })).toMatchObject({ previous: { fence, ended: 'expired' } });
  });

  it('refuses a repeat of the request of the holder, before and after the end of the ttl', async () => {
    const asked = { key: 'repeat', limit: 2, holder: 'worker', requestId: 'r' };
    const { fence } = await acquire(asked);
    await breakPermit({ key: 'repeat', fence, wait: true });
    expect(await failure(acquire(asked))).toMatchObject(broken);
    clock.advance(60_501);
    expect(await failure(acquire(asked))).toMatchObject(broken);
    const { task, parked } = await park(asked);
    expect([parked, task]).toMatchObject([false, brokenTask]);
    expect(await rows('repeat')).toEqual([]);
  });

  it('ends the permit at once when the operator breaks it again without wait', async () => {
    const { key, leaseId, fence, expiresAt } = await acquire({ key: 'then now', limit: 1, holder: 'worker' });
    await breakPermit({ key, fence, wait: true });
    expect(await breakPermit({ key, fence })).toMatchObject({ ended: true, holderUntil: expiresAt });
    expect(await failure(heartbeat({ key, leaseId }))).toMatchObject(broken);
    expect(await acquire({ key, limit: 1, holder: 'next' })).toMatchObject({ used: 1 });
  });

  it('leaves the room to the line at the release of the holder, or at the end of the ttl', async () => {
    for (const how of ['release', 'ttl'] as const) {
      const key = `line, ${how}`;
      const first = await acquire({ key, limit: 1, holder: 'worker' });
      const { task } = await park({ key, limit: 1, holder: 'next' });
      await breakPermit({ key, fence: first.fence, wait: true });
      expect(task.state).toBe('waiting');
      if (how === 'release') expect(await release(first)).toMatchObject({ released: true });
      clock.advance(how === 'ttl' ? 60_501 : 0);
      await repairLine(key);
      expect(task.output).toMatchObject({ holder: 'next', used: 1 });
      clock.advance(1);
      expect(await heartbeat(grantOf(task))).toMatchObject({ holder: 'next' });
    }
  });

  it('leaves the room to a waiting call at the end of the ttl', async () => {
    const asked = { key: 'waiting call', limit: 1, ttlSeconds: 10 };
    const first = await running.acquire({ ...asked, holder: 'worker' });
    await running.breakPermit({ key: first.key, fence: first.fence, wait: true });
    const [next] = await timeline.play(() => running.acquire({ ...asked, holder: 'next', waitSeconds: 20 }));
    expect(Date.parse(next.acquiredAt) - Date.parse(first.expiresAt)).toBeGreaterThan(500);
  });

  it('ends an expired permit at once, because no caller holds it', async () => {
    const { key, fence } = await acquire({ key: 'expired', limit: 1 });
    clock.advance(60_501);
    expect(await breakPermit({ key, fence, wait: true })).toMatchObject({ ended: true });
    expect(await read(key)).toMatchObject({ used: 0 });
  });

  it('ends a permit at once that its caller has not claimed', async () => {
    const key = 'unclaimed';
    const first = await acquire({ key, limit: 1 });
    const { task } = await park({ key, limit: 1, holder: 'next' });
    await world.putTicket(world.callerRow(key, 'caller', { limit: { N: '1' }, weight: { N: '1' } }));
    await release(first);
    const [{ holder, fence } = { holder: '', fence: 0 }] = (await read(key)).holders;
    expect([holder, task.state]).toEqual(['caller', 'waiting']);
    expect(await breakPermit({ key, fence, wait: true })).toMatchObject({ ended: true, holder: 'caller' });
    expect(task.output).toMatchObject({ holder: 'next', used: 1 });
  });

  it('waits for the holder of an expired permit that a heartbeat revives in between', async () => {
    const { key, leaseId, fence } = await acquire({ key: 'revived', limit: 1 });
    clock.advance(60_501);
    requests.faultsOf.UpdateItem = [precededBy(() => heartbeat({ key, leaseId }))];
    expect(await breakPermit({ key, fence, wait: true })).toMatchObject({ ended: false });
    expect(await holderOf(key, fence)).toMatchObject({ state: 'held', ending: true });
  });

  it('refuses a heartbeat that was sent before the mark and lands after it', async () => {
    const { key, leaseId, fence, expiresAt } = await acquire({ key: 'race', limit: 1 });
    clock.advance(5000);
    requests.faultsOf.UpdateItem = [precededBy(() => breakPermit({ key, fence, wait: true }))];
    expect(await failure(heartbeat({ key, leaseId }))).toMatchObject(broken);
    expect(await holderOf(key, fence)).toMatchObject({ expiresAt });
  });

  it('answers the same if the answer to its first try is lost, and NotFound if the holder has released the permit', async () => {
    const first = await acquire({ key: 'lost', limit: 1 });
    const { key, fence } = first;
    requests.faultsOf.UpdateItem = ['lostReply'];
    expect(await breakPermit({ key, fence, wait: true })).toMatchObject({ ended: false });
    await release(first);
    expect(await failure(breakPermit({ key, fence, wait: true }))).toMatchObject({ code: 'NotFound' });
    const next = await acquire({ key, limit: 1 });
    requests.faultsOf.UpdateItem = [
      async (send) => {
        await send();
        requests.faultsOf = {};
        await release(next);
        throw networkError('ECONNRESET', 'read');
      },
    ];
    const late = breakPermit({ key, fence: next.fence, wait: true });
    expect(await failure(late)).toMatchObject({ code: 'OutcomeUnknown' });
  });

  it('reports a part of the entry that another client wrote with another type', async () => {
    const { key, fence } = await acquire({ key: 'odd', limit: 1 });
    const [name, value] = Object.entries((await rawItem(key)) ?? {}).find(([one]) => one.startsWith('h')) ?? [];
    await world.setRaw(key, name ?? '', { M: { ...value?.M, c: { S: 'odd' } } });
    expect(await failure(breakPermit({ key, fence, wait: true }))).toMatchObject({ code: 'Unavailable' });
  });
});

describe('a break that waits, of a permit whose task was never notified', () => {
  const terms = { limit: 1, ttlSeconds: 60 };

  it('fails the task with LeaseLost and ends the permit at once', async () => {
    const key = 'unnotified';
    const { task } = await untold(await acquire({ key, ...terms }), { ...terms, requestId: 'r' });
    const next = await park({ key, holder: 'next', ...terms });
    const fence = await untoldFence(key);
    steps.faults.SendTaskFailure = ['refused'];
    expect(await breakPermit({ key, fence, wait: true })).toMatchObject({ broken: true, ended: false });
    expect(await breakPermit({ key, fence, wait: true })).toMatchObject({ ended: true, holder: 'untold' });
    expect(task).toMatchObject(brokenTask);
    expect(next.task.output).toMatchObject({ holder: 'next', used: 1 });
    expect(await rows(key)).toEqual([]);
  });

  it('is finished by the schedule if the break died before it looked at the ticket', async () => {
    const key = 'died';
    const { task } = await untold(await acquire({ key, ...terms }), { ...terms, requestId: 'r' });
    const next = await park({ key, holder: 'next', ...terms });
    steps.faults.SendTaskFailure = ['refused'];
    const fence = await untoldFence(key);
    expect(await breakPermit({ key, fence, wait: true })).toMatchObject({ broken: true, ended: false });
    clock.advance(10_001);
    await repairLine(key);
    expect(task).toMatchObject(brokenTask);
    expect(next.task.output).toMatchObject({ holder: 'next', used: 1 });
  });
});

it('a break at once of a permit whose task cannot be notified ends the permit, and the next in line has it', async () => {
  const key = 'cannot be notified';
  const terms = { limit: 1, ttlSeconds: 60 };
  const { task } = await untold(await acquire({ key, ...terms }), terms);
  const next = await park({ key, holder: 'next', ...terms });
  steps.faults.SendTaskFailure = ['denied', 'denied', 'denied'];
  expect(await breakPermit({ key, fence: await untoldFence(key) })).toMatchObject({ broken: true, ended: true });
  expect([task.state, next.task.output]).toMatchObject(['waiting', { holder: 'next' }]);
  steps.faults = {};
});
