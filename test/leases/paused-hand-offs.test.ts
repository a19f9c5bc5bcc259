import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { handOff } from '../../shared/leases/hand-off.ts';
import { readRecord } from '../../shared/leases/read-record.ts';
import { deleteWaiter } from '../../shared/line/waiters.ts';
import { call } from '../support/emulators/aws.ts';
import { networkError } from '../support/faults/network.ts';
import { queueWorld } from '../support/worlds/line.ts';

// What a transfer, a release or a break does to a lease if others act between its look and its write.

const world = await queueWorld();
const { acquire, heartbeat, release, breakLease, read, park, cancel, repair, executionEnded } = world;
const { joinLine, handOn, grantOf, rawItem, putRaw, clock, requests, steps, precededBy } = world;
afterAll(() => steps.stop());
beforeEach(() => {
  requests.faultsOf = {};
  steps.faults = {};
  steps.requests.length = 0;
});

const executionOf = (name: string) => `arn:aws:states:us-east-1:123456789012:execution:machine:${name}`;
/** A lease with a mark, whose only waiter was cancelled. */
async function emptied(key: string) {
  const first = await acquire({ key });
  await cancel(key, (await park({ key })).ticket);
  requests.sent.length = 0;
  return first;
}

describe('a transfer', () => {
  it('a transfer keeps no attribute of the grant before, and the end of that execution frees no successor', async () => {
    const execution = executionOf('before');
    const own = { execution, target: executionOf('target'), data: { of: 'before' }, requestId: 'r1' };
    const first = await acquire({ key: 'bequest', ...own }, world.as('arn:before'));
    const { task } = await park({ key: 'bequest' });
    await release(first);
    const record = (await rawItem('bequest')) ?? {};
    const left = ['execution', 'target', 'data', 'principal', 'released_at', 'broken_at', 'waiters'];
    expect(Object.keys(record).filter((name) => left.includes(name))).toEqual([]);
    await executionEnded(execution, true);
    expect(await heartbeat(grantOf(task))).toMatchObject({ key: 'bequest' });
  });

  it('a transfer keeps no attribute of a broken grant, so that a repeated release counts as a release', async () => {
    const { fence } = await acquire({ key: 'mended' });
    await breakLease({ key: 'mended', fence });
    const { task } = await park({ key: 'mended' });
    for (const name of ['broken_at', 'released_at']) expect(await rawItem('mended')).not.toHaveProperty(name);
    for (const _ of ['first', 'again']) expect(await release(grantOf(task))).toEqual({ key: 'mended', released: true });
  });

  it('a transfer whose first try arrives after others have come and gone keeps the fence', async () => {
    const key = 'late-transfer';
    await acquire({ key });
    const { task } = await park({ key });
    const { task: next } = await park({ key });
    const { lease_version: _, ...free } = (await rawItem(key)) ?? {};
    await putRaw(free as never); // as the release of a third-party client leaves it
    let arrive = async (): Promise<unknown> => undefined;
    const delayed = async (send: () => Promise<unknown>) => {
      arrive = send;
      throw networkError('ECONNRESET', 'read');
    };
    requests.faultsOf.UpdateItem = [delayed];
    await repair();
    await release(grantOf(task));
    await release(grantOf(next));
    const later = await acquire({ key, holder: 'later' });
    expect(later.fence).toBeGreaterThan(grantOf(next).fence);
    await release(later);
    expect(await arrive()).toMatchObject({ response: { statusCode: 400 } });
    expect(await read({ key })).toMatchObject({ state: 'released' });
    expect((await rawItem(key))?.fence?.N).toBe(String(later.fence));
  });
});

describe('the end of a lease whose waiters are gone', () => {
  it('a release whose answer is lost ends the lease, and the mark too', async () => {
    const first = await emptied('lost-clear');
    requests.faultsOf.UpdateItem = ['none', 'lostReply'];
    expect(await release(first)).toMatchObject({ released: true });
    expect(await acquire({ key: 'lost-clear', holder: 'next' })).toMatchObject({ holder: 'next' });
  });

  it('a release hands off the lease to a task that parks at the same time', async () => {
    const first = await emptied('late-clear');
    const comes = steps.newTask();
    requests.faultsOf.UpdateItem = ['none', precededBy(() => park({ key: 'late-clear' }, comes))];
    expect(await release(first)).toMatchObject({ released: true });
    expect(grantOf(comes).fence).toBeGreaterThan(first.fence);
  });

  it('a break ends the lease, and the mark goes, without another look', async () => {
    const { key, fence } = await emptied('break, none left');
    expect(await breakLease({ key, fence })).toMatchObject({ broken: true, fence });
    expect(requests.sent).toEqual(['UpdateItem', 'Query', 'UpdateItem']);
    expect(await rawItem(key)).not.toHaveProperty('waiters');
  });
});

describe('a break', () => {
  it('a break serves the next waiter, and a repeat says who has the lease', async () => {
    const { fence, expiresAt } = await acquire({ key: 'break', holder: 'stuck' });
    const { task } = await park({ key: 'break', holder: 'next' });
    expect(await breakLease({ key: 'break', fence })).toEqual({
      ...{ key: 'break', broken: true, fence, holder: 'stuck', ended: true },
      ...{ holderUntil: expiresAt, lastHeartbeatAt: null },
    });
    expect(task.state).toBe('succeeded');
    const again = breakLease({ key: 'break', fence });
    await expect(again).rejects.toMatchObject({ code: 'Conflict', context: { actual: { holder: 'next' } } });
  });

  it('a break that comes right after the release of the holder says who has the lease', async () => {
    const first = await acquire({ key: 'break too late' });
    const { task } = await park({ key: 'break too late', holder: 'next' });
    requests.faultsOf.UpdateItem = ['none', precededBy(() => release(first))]; // the mark refuses the first write
    const broken = breakLease({ key: 'break too late', fence: first.fence });
    await expect(broken).rejects.toMatchObject({ code: 'Conflict', context: { actual: { holder: 'next' } } });
    expect(await heartbeat(grantOf(task))).toMatchObject({ holder: 'next' });
  });

  it('a break has broken the lease that went to a task that was gone, and that another call handed off from there', async () => {
    const key = 'break, and gone';
    const execution = executionOf('gone');
    const { fence } = await acquire({ key });
    const gone = await park({ key, execution });
    const next = await park({ key, holder: 'next' });
    gone.task.state = 'timedOut';
    steps.executions.set(execution, 'ABORTED');
    const freed: unknown[] = [];
    const passesOver = precededBy(async () => freed.push(await executionEnded(execution)));
    requests.faultsOf.UpdateItem = ['none', 'none', passesOver]; // its end, and the transfer to the task that is gone
    expect(await breakLease({ key, fence })).toMatchObject({ broken: true, fence });
    expect([freed, next.task.output]).toMatchObject([[{ freed: 1 }], { holder: 'next' }]);
  });
});

it('a call that races behind an overdue task that cannot be notified receives the lease with its first try', async () => {
  const { expiresAt } = await acquire({ key: 'unreachable', ttlSeconds: 2 });
  await park({ key: 'unreachable', parkSeconds: 1 });
  clock.set(Date.parse(expiresAt) + 501); // the first moment at which the lease can be had
  steps.faults.SendTaskFailure = Array(100).fill('refused');
  const waits = acquire({ key: 'unreachable', holder: 'patient', waitSeconds: 1, fair: false });
  expect(await waits).toMatchObject({ holder: 'patient', waitedMs: 0 });
  expect(steps.requests).toHaveLength(1);
});

describe('a call that was paused between its look and its write', () => {
  it('a paused release does not remove the mark of a newcomer from a record that stays held', async () => {
    const key = 'restarted';
    const first = await emptied(key);
    const late = steps.newTask();
    const restarts = precededBy(async () => {
      clock.advance(60_000 + 501);
      const record = await readRecord(world.dependencies, key, call());
      await handOff(world.dependencies, { record, ending: 'expired' }, call());
      expect(await rawItem(key)).not.toHaveProperty('waiters');
      clock.advance(-500); // to the clock of the newcomer the margin is not over
      await park({ key }, late);
    });
    requests.faultsOf.UpdateItem = ['none', restarts]; // the mark refuses the first write
    expect(await release(first)).toMatchObject({ released: true });
    expect(late.output).toMatchObject({ previous: { holder: 'tester', ended: 'released' } });
  });

  it('a paused hand-off does not remove the mark of a newcomer that joined a line which was empty in between', async () => {
    const key = 'free again';
    await release(await acquire({ key }));
    const gone = await joinLine(key, 'gone');
    await deleteWaiter(world.dependencies, { key, ticket: gone.ticket }, call());
    const newcomers: string[] = [];
    const restarts = precededBy(async () => {
      expect(await handOn(key, 'free')).toMatchObject({ end: 'empty' });
      newcomers.push((await joinLine(key, 'newcomer')).ticket);
      expect((await rawItem(key))?.waiters).toEqual({ N: '1' }); // as the paused call has seen it
    });
    requests.faultsOf.UpdateItem = [restarts];
    expect(await handOn(key, 'free')).toMatchObject({ end: 'granted', moved: newcomers });
  });

  it('a paused task does not follow a free record that another has held since', async () => {
    const key = 'between';
    await release(await acquire({ key, holder: 'first' }));
    clock.advance(1000);
    const task = steps.newTask();
    const another = precededBy(async () => {
      clock.advance(-400); // by another machine
      await release(await acquire({ key, holder: 'second' }));
      clock.advance(400);
    });
    requests.faultsOf.UpdateItem = ['none', another]; // the lease is free, so the mark is refused
    await park({ key, holder: 'parked' }, task);
    expect(task.output).toMatchObject({ holder: 'parked', previous: { holder: 'second' } });
  });
});
