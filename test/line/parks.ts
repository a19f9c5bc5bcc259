import { expect, it } from 'vitest';
import { failure } from '../support/worlds/leases.ts';
import type { LineWorld } from './world.ts';

/** An acquire with a task token: the task is granted the lock, waits for it, or fails. */
export async function parks(lineWorld: LineWorld) {
  const world = await lineWorld();
  const { acquire, heartbeat, release, breakGrant, cancel, repair, grantOf, see, rows, isMarked } = world;
  const { parkNext: park, as, precededBy, lostAfter, requests, steps, heldKey, newKey, timeline } = world;
  const gone = () => Object.assign(steps.newTask(), { state: 'timedOut' as const });
  const successes = (token: string) =>
    steps.requests.filter((one) => one.action === 'SendTaskSuccess' && one.token === token).length;
  /** A held lock, and a task in line for it. */
  const held = async (asked: object = {}) => {
    const { key, first } = await heldKey({ holder: 'first', ttlSeconds: 60 });
    const parked = await park({ key, holder: 'b', ttlSeconds: 60, ...asked });
    return { ...parked, key, first };
  };

  it('a task receives a free lock at once, with what acquire would answer', async () => {
    const key = newKey();
    const { task, parked, ticket } = await park({ key, holder: 'a', ttlSeconds: 30, data: { run: 7 } });
    expect({ parked, ticket }).toEqual({ parked: false, ticket: expect.stringMatching(/^\d{15}-[0-9a-f-]{36}$/) });
    const [leaseId, version] = [expect.any(String), expect.any(String)];
    expect(task.output).toMatchObject({
      ...{ key, holder: 'a', fence: expect.any(Number), data: { run: 7 }, leaseId, version },
      acquiredAt: new Date(timeline.now()).toISOString(),
      expiresAt: new Date(timeline.now() + 30_000).toISOString(),
      ...{ remainingMs: 30_000, waitedMs: 0, repeated: false, previous: null },
    });
    expect([await rows(key), await isMarked(key)]).toEqual([[], false]);
    expect(await heartbeat(grantOf(task))).toMatchObject({ holder: 'a' });
    expect(await release(grantOf(task))).toMatchObject({ released: true });
  });

  it('a release grants the lock to a task, with how long it waited', async () => {
    const { key, first, task, parked } = await held();
    expect({ parked, state: task.state }).toEqual({ parked: true, state: 'waiting' });
    timeline.advance(5000);
    expect(await release(first)).toEqual({ key, released: true });
    expect(grantOf(task)).toMatchObject({ holder: 'b', waitedMs: 5000, remainingMs: 60_000 });
    expect(grantOf(task).fence).toBeGreaterThan(first.fence);
    expect([await rows(key), await isMarked(key)]).toEqual([[], false]);
  });

  it('a task receives an expired lock at once, in the millisecond after the margin', async () => {
    const key = newKey();
    const { fence } = await acquire({ key, ttlSeconds: 2 });
    timeline.advance(2500);
    const { task } = await park({ key });
    expect(grantOf(task)).toMatchObject({ previous: { fence, ended: 'expired' } });
  });

  it('a plain caller hands an expired lock off to the next task', async () => {
    const { key, first, task } = await held({ ttlSeconds: 2 });
    const third = await park({ key, holder: 'third' });
    await release(first);
    expect(task.state).toBe('succeeded');
    timeline.advance(2501);
    expect((await failure(acquire({ key, holder: 'barger' }))).code).toBe('LeaseHeld');
    expect([third.task.state, (await see(key)).holder]).toEqual(['succeeded', 'third']);
    expect(await release(grantOf(task))).toMatchObject({ released: false });
    await release(grantOf(third.task));
    expect(await acquire({ key, holder: 'barger' })).toMatchObject({ holder: 'barger' });
  });

  it('an overdue task receives LeaseHeld, and those behind wait on', async () => {
    const { key, first } = await heldKey({ holder: 'long', ttlSeconds: 600 });
    const impatient = await park({ key, parkSeconds: 30 });
    const patient = await park({ key });
    const late = await park({ key, parkSeconds: 60 });
    timeline.advance(29_000);
    await repair(key);
    expect(impatient.task.state).toBe('waiting');
    timeline.advance(1001);
    await repair(key);
    const cause = { code: 'LeaseHeld', status: 409, key, holder: 'long', fence: first.fence };
    expect(impatient.task).toMatchObject({ state: 'failed', error: 'LeaseHeld', cause });
    timeline.advance(30_000);
    steps.faults.SendTaskFailure = ['refused'];
    expect(await repair(key)).toMatchObject({ notified: 0, unanswered: 1 });
    expect(await repair(key)).toMatchObject({ notified: 0, unanswered: 0 });
    expect([patient.task.state, late.task.state]).toEqual(['waiting', 'failed']);
    expect((await rows(key)).map(({ ticket }) => ticket?.S)).toEqual([patient.ticket]);
    await release(first);
    expect(patient.task.state).toBe('succeeded');
  });

  it('a retried task receives the grant of its request, then LeaseLost', async () => {
    const asked = { key: newKey(), requestId: 'r' };
    const first = await acquire(asked);
    const { task, parked } = await park(asked);
    expect([parked, task.output]).toMatchObject([false, { leaseId: first.leaseId, repeated: true }]);
    expect(grantOf(task)).not.toMatchObject({ version: (first as object as { version: string }).version });
    await release(first);
    const again = await park(asked);
    expect([again.parked, again.task]).toMatchObject([false, { error: 'LeaseLost', cause: { reason: 'released' } }]);
    expect(await rows(asked.key)).toEqual([]);
  });

  it('a task with the request id of a caller with another principal waits', async () => {
    const key = newKey();
    const first = await acquire({ key, requestId: 'r' }, as('arn:one'));
    const { task } = await park({ key, requestId: 'r' });
    expect(task.state).toBe('waiting');
    await release(first);
    expect(task.state).toBe('succeeded');
  });

  it('a task whose own grant has expired waits for the margin', async () => {
    const asked = { key: newKey(), requestId: 'r', ttlSeconds: 2 };
    const { fence } = await acquire(asked);
    timeline.advance(1999);
    const { task, parked } = await park(asked);
    expect([parked, task.state]).toEqual([true, 'waiting']);
    timeline.advance(501);
    await repair(asked.key);
    expect(grantOf(task)).toMatchObject({ repeated: false, previous: { fence, ended: 'expired' } });
  });

  it('a reader sees which tasks wait, without their tokens', async () => {
    const { key, first, ticket } = await held({ parkSeconds: 60 });
    const [parkedAt, deadline] = [0, 60_000].map((ms) => new Date(timeline.now() + ms).toISOString());
    const c = await park({ key, holder: 'c' });
    const seen = await see(key);
    expect(seen).toMatchObject({ waiting: 2, waiters: [{}, { ticket: c.ticket, holder: 'c' }] });
    expect(seen.waiters[0]).toMatchObject({ kind: 'task', ticket, holder: 'b', execution: null, parkedAt, deadline });
    expect(JSON.stringify(seen)).not.toContain('token-');
    await release(first);
    expect(await see(key)).toMatchObject({ holder: 'b', waiters: [{ ticket: c.ticket }] });
  });

  it('a cancelled task receives LeaseLost, and the next task the next grant', async () => {
    const { key, first, task, ticket } = await held();
    const c = await park({ key });
    expect(await cancel(key, ticket)).toEqual({ key, ticket, cancelled: true });
    const cause = {
      reason: 'cancelled',
      status: 412,
      key,
      detail: 'an operator cancelled the waiter, or the caller withdrew it',
    };
    expect(task).toMatchObject({ state: 'failed', error: 'LeaseLost', cause });
    expect(await cancel(key, ticket)).toMatchObject({ cancelled: false, reason: 'unknown' });
    await release(first);
    expect(c.task.state).toBe('succeeded');
    expect(await cancel(key, c.ticket)).toMatchObject({ cancelled: false, reason: 'granted' });
  });

  it('a cancelled task keeps its ticket if Step Functions does not answer', async () => {
    const { key, task, ticket } = await held();
    steps.faults.SendTaskFailure = ['refused'];
    const { code, context } = await failure(cancel(key, ticket));
    expect([code, context]).toMatchObject(['Unavailable', { retryAfterMs: 1000 }]);
    expect(await rows(key)).toHaveLength(1);
    task.state = 'timedOut';
    expect(await cancel(key, ticket)).toMatchObject({ cancelled: false, reason: 'gone' });
    const made = await park({ key }, { token: 'made up', state: 'waiting' });
    expect(await cancel(key, made.ticket)).toMatchObject({ cancelled: false, reason: 'gone' });
    expect(await rows(key)).toEqual([]);
  });

  it('a cancellation names the grant that the task receives during the cancellation', async () => {
    const { key, first, task, ticket } = await held();
    steps.onTheWay = async (action) => void (action === 'SendTaskFailure' && (await release(first)));
    expect(await cancel(key, ticket)).toMatchObject({ cancelled: false, reason: 'granted' });
    expect(await release(grantOf(task))).toMatchObject({ released: true });
  });

  it('the task is notified once if a release grants the lock to the task', async () => {
    const { key, first } = await held({ parkSeconds: 1 });
    timeline.advance(2000); // the mark of this task stays, so the release reads the line
    requests.faultsOf.UpdateItem = [precededBy(() => release(first))];
    const { task, parked } = await park({ key, holder: 'c' });
    expect([parked, grantOf(task)]).toMatchObject([false, { holder: 'c', repeated: false }]);
    expect([successes(task.token), await rows(key)]).toEqual([1, []]);
  });

  it('a task that has ended stops waiting, and the lock stays free', async () => {
    const key = newKey();
    expect(await park({ key }, gone())).toMatchObject({ parked: false });
    expect(await see(key)).toMatchObject({ holder: undefined, waiting: 0 });
  });

  it('the task stops waiting if an operator cancels its ticket', async () => {
    const key = newKey();
    const cancelOnly = async () => cancel(key, (await rows(key))[0]?.ticket?.S ?? '');
    requests.faultsOf.UpdateItem = [precededBy(cancelOnly)];
    const { task, parked } = await park({ key });
    expect([parked, task.error, await see(key)]).toMatchObject([false, 'LeaseLost', { holder: undefined }]);
  });

  it('the task receives LeaseLost if an operator breaks the expired grant of its request', async () => {
    const asked = { key: newKey(), requestId: 'r', ttlSeconds: 2 };
    const first = await acquire(asked);
    timeline.advance(2200); // expired, and within the margin
    requests.faultsOf.UpdateItem = ['none', precededBy(() => breakGrant(first))]; // the first mark finds its own grant
    const { task, parked } = await park(asked);
    expect([parked, task]).toMatchObject([false, { error: 'LeaseLost', cause: { reason: 'broken' } }]);
    expect(await rows(asked.key)).toEqual([]);
  });

  it('the task receives the grant that a heartbeat has extended', async () => {
    const asked = { key: newKey(), requestId: 'r', ttlSeconds: 60 };
    const { leaseId } = await acquire(asked);
    timeline.advance(1000);
    requests.faultsOf.UpdateItem = ['none', precededBy(() => heartbeat({ key: asked.key, leaseId }))];
    const { parked, task } = await park(asked);
    expect([parked, grantOf(task)]).toMatchObject([false, { leaseId, repeated: true, remainingMs: 60_000 }]);
    expect(await rows(asked.key)).toEqual([]);
  });

  it('a task that parks is found by the caller that took the lock', async () => {
    const key = newKey();
    const others: { leaseId: string; key: string }[] = [];
    const takes = async () => others.push(await acquire({ key, holder: 'other' }));
    requests.faultsOf.UpdateItem = [precededBy(takes)];
    const { task, parked } = await park({ key });
    expect([parked, await isMarked(key)]).toEqual([true, true]);
    for (const other of others) await release(other);
    expect(task.state).toBe('succeeded');
  });

  it('a grant stays if its task comes again with another token', async () => {
    const asked = { holder: 'b', requestId: 'tried twice', ttlSeconds: 60 };
    const { key, first, task: old } = await held(asked);
    old.state = 'timedOut';
    const again = steps.newTask();
    requests.faultsOf.UpdateItem = ['none', lostAfter(() => park({ key, ...asked }, again))]; // the release, and the grant
    await release(first);
    expect(await see(key)).toMatchObject({ holder: 'b', fence: grantOf(again).fence });
    expect(await release(grantOf(again))).toMatchObject({ released: true });
  });

  it('a call hands off after a release that did not read the line', async () => {
    const { key, first, task } = await held();
    requests.faultsOf.Query = ['error500', 'error500', 'error500'];
    expect(await release(first)).toEqual({ key, released: true });
    expect([task.state, await see(key)]).toMatchObject(['waiting', { holder: undefined, waiting: 1 }]);
    expect((await failure(acquire({ key, holder: 'c' }))).code).toBe('LeaseHeld');
    expect(grantOf(task)).toMatchObject({ holder: 'b' });
  });

  it('a hand-off passes up to ten tasks that have ended', async () => {
    const { key, first, ...dead } = await held();
    const tasks = [dead.task];
    for (let nth = 1; nth < 10; nth++) tasks.push((await park({ key, holder: `d${nth}` })).task);
    const next = await park({ key, holder: 'c' });
    for (const task of tasks) task.state = 'timedOut';
    await release(first);
    expect([next.task.state, (await see(key)).holder]).toEqual(['waiting', undefined]);
    await repair(key);
    expect(grantOf(next.task)).toMatchObject({ holder: 'c' });
  });

  const lost: 'lostReply'[] = ['lostReply', 'lostReply', 'lostReply'];

  it.each([
    ['of the ticket', 'PutItem'],
    ['of the mark', 'UpdateItem'],
  ] as const)('a task can park again after the write %s had no answer', async (name, command) => {
    for (const requestId of [undefined, `mine ${name}`]) {
      const key = newKey();
      if (name === 'of the mark') await acquire({ key, holder: 'before' });
      requests.faultsOf[command] = [...lost];
      const tried = steps.newTask();
      const { code, context } = await failure(park({ key, ...(requestId && { requestId }) }, tried));
      tried.state = 'timedOut'; // a call that fails ends its try of the task
      expect(code).toBe('OutcomeUnknown');
      expect(context.retryWith).toEqual({ requestId: requestId ?? expect.stringMatching(/^[0-9a-f-]{36}$/) });
      const again = await park({ key, ...(context.retryWith as object) });
      if (name === 'of the mark') expect(again.parked).toBe(true);
      else expect(again.task.state).toBe('succeeded');
    }
  });

  it.each(['of the hand-off', 'of a renewal', 'of a deletion'])(
    'a task receives its grant after the write %s had no answer',
    async (name) => {
      const asked = { key: newKey(), requestId: 'r' };
      if (name !== 'of the hand-off') await park(asked);
      if (name === 'of a deletion') requests.faultsOf.DeleteItem = [...lost];
      else requests.faultsOf.UpdateItem = ['none', ...lost];
      const { code, context } = await failure(park(asked));
      expect([code, context.retryWith]).toEqual(['OutcomeUnknown', { requestId: 'r' }]);
      expect(grantOf((await park(asked)).task)).toMatchObject({ repeated: true });
    },
  );
}
