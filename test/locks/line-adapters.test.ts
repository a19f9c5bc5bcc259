import { afterAll, describe, expect, it } from 'vitest';
import { get, post, throughTask } from '../support/stack/adapters.ts';
import { lineWorld } from '../support/worlds/line.ts';

const world = await lineWorld();
const { handlers, clock, steps, grantOf, rows, precededBy } = world;
const { acquire, release, breakLease, readLeases, cancelWaiter, capKey, runNext } = handlers;
const { withdraw, repairQueues, executionEnded } = handlers;
afterAll(() => steps.stop());

const executionOf = (name: string) => `arn:aws:states:us-east-1:000000000000:execution:machine:${name}`;

/** Parks a Step Functions task through the deployed handler. */
async function park(input: object) {
  const task = steps.newTask();
  clock.advance(1);
  const { outcome, body } = await throughTask(acquire, { holder: 'h', taskToken: task.token, ...input });
  expect(outcome).toBe('ok');
  return { task, ...(body as { ticket: string; parked: boolean }) };
}

it('acquire parks tasks, and release and break hand off, through the functions', async () => {
  const first = await throughTask(acquire, { key: 'chain', holder: 'first', ttlSeconds: 600 });
  const [b, overdue, c, d, e] = [
    await park({ key: 'chain', holder: 'b' }),
    await park({ key: 'chain', parkSeconds: 1 }),
    await park({ key: 'chain', holder: 'c', ttlSeconds: 2 }),
    await park({ key: 'chain', holder: 'd', ttlSeconds: 600 }),
    await park({ key: 'chain', holder: 'e' }),
  ];
  expect([b, overdue, c, d, e].map(({ parked }) => parked)).toEqual(Array(5).fill(true));
  await throughTask(release, { key: 'chain', leaseId: first.body.leaseId });
  const { leaseId } = grantOf(b.task);
  clock.advance(1500);
  await post(release, { key: 'chain', leaseId });
  expect(overdue.task).toMatchObject({ state: 'failed', error: 'LeaseHeld' });
  expect(c.task.state).toBe('succeeded');
  clock.advance(3000);
  expect((await post(acquire, { key: 'chain', holder: 'barger' })).body).toMatchObject({
    code: 'LeaseHeld',
    holder: 'd',
  });
  expect((await post(breakLease, { key: 'chain', fence: grantOf(d.task).fence })).status).toBe(200);
  expect(e.task.state).toBe('succeeded');
  const fences = [b, c, d, e].map(({ task }) => grantOf(task).fence);
  expect(fences).toEqual(fences.toSorted((one, other) => one - other));
  expect(new Set(fences).size).toBe(4);
  await post(release, { key: 'chain', leaseId: grantOf(e.task).leaseId });
  const again = await park({ key: 'chain', holder: 'e', requestId: 'once' });
  await post(release, { key: 'chain', leaseId: grantOf(again.task).leaseId });
  expect((await park({ key: 'chain', holder: 'e', requestId: 'once' })).task.error).toBe('LeaseLost');
});

it('the function break ends a holder that was never notified, and each overdue task', async () => {
  const first = await throughTask(acquire, { key: 'break', holder: 'first' });
  const unnotified = await park({ key: 'break' });
  const overdue = await park({ key: 'break', parkSeconds: 1 });
  steps.faults.SendTaskSuccess = ['refused'];
  await throughTask(release, { key: 'break', leaseId: first.body.leaseId });
  clock.advance(2000);
  const { body } = await get(readLeases, { key: 'break' });
  expect((await throughTask(breakLease, { key: 'break', fence: body.fence })).outcome).toBe('ok');
  expect([unnotified.task.error, overdue.task.error]).toEqual(['LeaseLost', 'LeaseHeld']);
  expect(await rows('break')).toEqual([]);
});

it('the function repairQueues ends a broken grant whose task was not notified', async () => {
  const first = await throughTask(acquire, { key: 'marked', holder: 'first' });
  const unnotified = await park({ key: 'marked' });
  steps.faults.SendTaskSuccess = ['refused'];
  await throughTask(release, { key: 'marked', leaseId: first.body.leaseId });
  const { fence } = (await get(readLeases, { key: 'marked' })).body;
  steps.faults.SendTaskFailure = ['refused'];
  expect((await post(breakLease, { key: 'marked', fence, wait: true })).body).toMatchObject({ ended: false });
  clock.advance(11_000);
  await throughTask(repairQueues, { key: 'marked' });
  expect(unnotified.task).toMatchObject({ error: 'LeaseLost', cause: { reason: 'broken' } });
  expect((await get(readLeases, { key: 'marked' })).body).toMatchObject({ state: 'released' });
});

it('the function withdraw fails a task that is granted the lease first', async () => {
  const first = await throughTask(acquire, { key: 'withdraw-late', holder: 'first' });
  const asked = { key: 'withdraw-late', holder: 'late', requestId: 'late' };
  let late: { task: object } | undefined;
  withdraw.requests.faultsOf.GetItem = [
    precededBy(async () => {
      late = await park(asked);
      steps.faults.SendTaskSuccess = ['refused'];
      await throughTask(release, { key: 'withdraw-late', leaseId: first.body.leaseId });
    }),
  ];
  expect((await post(withdraw, asked)).body).toMatchObject({ cancelled: true });
  expect(late?.task).toMatchObject({ error: 'LeaseLost', cause: { reason: 'cancelled' } });
});

it('the function cancelWaiter hands off a lease that came free', async () => {
  const { lambdaContext } = await import('../support/stack/adapters.ts');
  const first = await throughTask(acquire, { key: 'cancel-next', holder: 'first' });
  const next = await park({ key: 'cancel-next' });
  const behind = await park({ key: 'cancel-next', holder: 'behind' });
  await throughTask(release, { key: 'cancel-next', leaseId: first.body.leaseId }, lambdaContext(1900));
  expect(next.task.state).toBe('waiting');
  const cancelled = await post(cancelWaiter, { key: 'cancel-next', ticket: next.ticket });
  expect([cancelled, next.task.error]).toMatchObject([{ status: 200, body: { cancelled: true } }, 'LeaseLost']);
  expect(grantOf(behind.task)).toMatchObject({ holder: 'behind' });
});

it('the function capKey pauses a key, and serves the line after a lift', async () => {
  const key = 'capped';
  const first = await throughTask(acquire, { key, holder: 'first' });
  const overdue = await park({ key, parkSeconds: 1 });
  const next = await park({ key, holder: 'next' });
  const paused = await post(capKey, { key, limit: 0, reason: 'the vendor is down', forSeconds: 60 });
  expect(paused).toMatchObject({ status: 200, body: { cap: { limit: 0, reason: 'the vendor is down' }, used: 1 } });
  await throughTask(release, { key, leaseId: first.body.leaseId });
  clock.advance(2000);
  expect([next.task.state, (await get(readLeases, { key })).body]).toMatchObject(['waiting', { cap: { limit: 0 } }]);
  const refused = await post(acquire, { key, holder: 'other' });
  expect(refused).toMatchObject({ status: 409, body: { code: 'LeaseHeld', cap: { reason: 'the vendor is down' } } });
  const lifted = await throughTask(capKey, { key, limit: null });
  expect(lifted.body).toMatchObject({ cap: null, before: { limit: 0 } });
  expect(overdue.task.error).toBe('LeaseHeld');
  expect(grantOf(next.task)).toMatchObject({ holder: 'next' });
});

it('the function runNext serves the moved waiter, if the key came free', async () => {
  const { lambdaContext } = await import('../support/stack/adapters.ts');
  const key = 'moved';
  const first = await throughTask(acquire, { key, holder: 'first' });
  const overdue = await park({ key, parkSeconds: 1 });
  const next = await park({ key, holder: 'next' });
  const behind = await park({ key, holder: 'behind' });
  await throughTask(release, { key, leaseId: first.body.leaseId }, lambdaContext(1900));
  clock.advance(2000);
  const moved = await post(runNext, { key, ticket: behind.ticket });
  expect(moved).toMatchObject({ status: 200, body: { key, ticket: behind.ticket, moved: true, before: null } });
  expect(grantOf(behind.task)).toMatchObject({ holder: 'behind' });
  expect([overdue.task.error, next.task.state]).toEqual(['LeaseHeld', 'waiting']);
  const again = await throughTask(runNext, { key, ticket: behind.ticket });
  expect(again.body).toEqual({ key, ticket: behind.ticket, moved: false, reason: 'granted' });
  const { waiters } = (await get(readLeases, { key, waiters: 'true' })).body;
  expect(waiters).toMatchObject([{ holder: 'next' }]);
});

it('the function repairQueues notifies, hands off, and ends overdue tasks', async () => {
  const first = await throughTask(acquire, { key: 'repair', holder: 'first' });
  const execution = executionOf('repair');
  const gone = await park({ key: 'repair', execution, ttlSeconds: 600 });
  const next = await park({ key: 'repair' });
  const overdue = await park({ key: 'repair', parkSeconds: 1 });
  steps.faults.SendTaskSuccess = ['lost'];
  await throughTask(release, { key: 'repair', leaseId: first.body.leaseId });
  expect(gone.task.state).toBe('succeeded');
  steps.executions.set(execution, 'ABORTED');
  clock.advance(60_000);
  const { outcome, body } = await throughTask(repairQueues, {}, undefined);
  expect(outcome).toBe('ok');
  expect(body).toMatchObject({ granted: 1, notified: 0, complete: true });
  expect([next.task.state, overdue.task.error]).toEqual(['succeeded', 'LeaseHeld']);
});

it('the function repairQueues repairs only the key that a delayed message names', async () => {
  for (const key of ['beside-message', 'message']) {
    await throughTask(acquire, { key, holder: 'dead', ttlSeconds: 2 });
    await park({ key });
  }
  clock.advance(3000);
  const { outcome, body } = await throughTask(repairQueues, { key: 'message' });
  expect({ outcome, body }).toMatchObject({ outcome: 'ok', body: { keys: 1, granted: 1 } });
  expect((await get(readLeases, { key: 'beside-message' })).body).toMatchObject({ state: 'expired', waiting: 1 });
});

it('the function repairQueues counts tasks it could not notify, and notifies them later', async () => {
  const first = await throughTask(acquire, { key: 'silent', holder: 'first' });
  const next = await park({ key: 'silent', ttlSeconds: 600 });
  const overdue = await park({ key: 'silent', parkSeconds: 61 });
  const nothingGetsThrough = () => Array<'refused'>(9).fill('refused'); // enough for the tasks of other tests too
  steps.faults.SendTaskSuccess = nothingGetsThrough();
  await throughTask(release, { key: 'silent', leaseId: first.body.leaseId });
  clock.advance(61_000);
  steps.faults.SendTaskFailure = nothingGetsThrough();
  expect((await throughTask(repairQueues, {})).body).toMatchObject({ notified: 0, unanswered: 2 });
  expect([next.task.state, overdue.task.state]).toEqual(['waiting', 'waiting']);
  steps.faults = {};
  expect((await throughTask(repairQueues, {})).body).toMatchObject({ notified: 1, unanswered: 0 });
  expect([next.task.state, overdue.task.error]).toEqual(['succeeded', 'LeaseHeld']);
});

it('the function repairQueues stops in time, and says so', async () => {
  await post(acquire, { key: 'in-time', holder: 'first' });
  await park({ key: 'in-time' });
  const { lambdaContext } = await import('../support/stack/adapters.ts');
  const { body } = await throughTask(repairQueues, {}, lambdaContext(5000));
  expect(body).toEqual({ keys: 0, granted: 0, notified: 0, unanswered: 0, complete: false });
});

it('the function executionEnded frees the lease, and serves the next task', async () => {
  const [execution, target] = [executionOf('ended'), executionOf('target')];
  steps.executions.set(execution, 'TIMED_OUT');
  steps.executions.set(target, 'SUCCEEDED');
  await throughTask(acquire, { key: 'ended', holder: 'first', execution, target, ttlSeconds: 600 });
  await park({ key: 'ended', execution });
  const overdue = await park({ key: 'ended', parkSeconds: 1 });
  const next = await park({ key: 'ended' });
  clock.advance(1000);
  const { body } = await throughTask(executionEnded, { execution });
  expect(body).toEqual({ execution, tickets: 1, freed: 1, graced: 0, kept: 0 });
  expect([overdue.task.error, next.task.state]).toEqual(['LeaseHeld', 'succeeded']);
});

it('executionEnded is the first pass unless it is said to be the second', async () => {
  const [execution, target] = [executionOf('passes'), executionOf('not-there-yet')];
  steps.executions.set(execution, 'FAILED');
  await throughTask(acquire, { key: 'passes', holder: 'first', execution, target });
  expect((await throughTask(executionEnded, { execution })).body).toMatchObject({ freed: 0, kept: 1 });
  expect((await throughTask(executionEnded, { execution, again: true })).body).toMatchObject({ freed: 1, kept: 0 });
});

it('executionEnded takes the status and the time of the end from the event', async () => {
  const execution = executionOf('event');
  steps.executions.set(execution, 'RUNNING'); // DescribeExecution lags
  const asked = { holder: 'wf', execution, graceSeconds: 60, ttlSeconds: 600 };
  await throughTask(acquire, { ...asked, key: 'event, before' });
  const stopDate = clock.now();
  clock.advance(1000);
  await throughTask(acquire, { ...asked, key: 'event, later' });
  const { body } = await throughTask(executionEnded, { execution, status: 'ABORTED', stopDate });
  expect(body).toEqual({ execution, tickets: 0, freed: 0, graced: 1, kept: 0 });
  for (const [field, value] of Object.entries({ status: 'RUNNING', stopDate: 'yesterday' }))
    expect((await throughTask(executionEnded, { execution, [field]: value })).body).toMatchObject({
      issues: [{ path: field }],
    });
});

it('executionEnded takes the time of the end in ISO 8601 from Lambda', async () => {
  const execution = executionOf('iso');
  steps.executions.set(execution, 'RUNNING');
  const asked = { holder: 'wf', execution, ttlSeconds: 600 };
  await throughTask(acquire, { ...asked, key: 'iso, before' });
  const stopDate = new Date(clock.now()).toISOString();
  clock.advance(1000);
  await throughTask(acquire, { ...asked, key: 'iso, later' });
  const { body } = await throughTask(executionEnded, { execution, status: 'STOPPED', stopDate });
  expect(body).toMatchObject({ freed: 1, kept: 0 });
});

it('the functions acquire, cancelWaiter and withdraw serve a call in line', async () => {
  const key = 'line';
  const own = { key, holder: 'b', requestId: 'r' };
  await post(acquire, { ...own, ttlSeconds: 60 });
  const { outcome, body } = await post(acquire, { key, holder: 'c', requestId: 'q', waitSeconds: 3 });
  expect({ outcome, body }).toMatchObject({ outcome: 'LeaseHeld', body: { place: 1, waiting: 0 } });
  const { ticket } = body.retryWith as { ticket: string };
  expect(await post(cancelWaiter, { key, ticket })).toMatchObject({ outcome: 'ok', body: { cancelled: true } });
  const again = await post(acquire, { key, holder: 'c', requestId: 'q', waitSeconds: 3, ticket });
  expect(again).toMatchObject({ outcome: 'LeaseLost', body: { reason: 'cancelled' } });
  const [overdue, next] = [await park({ key, parkSeconds: 1 }), await park({ key })];
  clock.advance(2000);
  expect(await post(withdraw, own)).toMatchObject({ outcome: 'ok', body: { cancelled: true } });
  expect([overdue.task.error, next.task.state]).toEqual(['LeaseHeld', 'succeeded']);
  expect(await post(withdraw, own)).toMatchObject({ body: { cancelled: false, reason: 'unknown' } });
  const waits = { key, holder: 'd', requestId: 'w' };
  expect((await post(acquire, { ...waits, waitSeconds: 1 })).body).toMatchObject({ code: 'LeaseHeld', place: 1 });
  expect((await post(withdraw, waits)).body).toMatchObject({ cancelled: true });
  await post(release, { key, leaseId: grantOf(next.task).leaseId });
});

describe('inconsistent input', () => {
  const execution = executionOf('x');
  const durable = 'arn:aws:lambda:us-east-1:000000000000:function:f:$LATEST/durable-execution/a/b';
  it.each([
    [{ taskToken: 't', parkSeconds: 0 }, 'parkSeconds'],
    [{ taskToken: 't', parkSeconds: 604_801 }, 'parkSeconds'],
    [{ taskToken: '' }, 'taskToken'],
    [{ sleepMs: 1 }, 'sleepMs'],
    [{ sleepMs: 300_001, waitSeconds: 1 }, 'sleepMs'],
    [{ sleepMs: 1, waitSeconds: 1, fair: false }, 'sleepMs'],
    [{ sleepMs: 1, taskToken: 't' }, 'sleepMs'],
    [{ sleepMs: 1, callbackId: 'aWQ=', execution: durable }, 'sleepMs'],
    [{ execution: 'arn:aws:states:us-east-1:123456789012:stateMachine:m' }, 'execution'],
  ])('acquire refuses input that does not fit together: %o', async (input, path) => {
    const { outcome, body } = await post(acquire, { key: 'k', holder: 'h', ...input });
    expect(outcome).toBe('InvalidRequest');
    expect(body.issues).toEqual([{ path, message: expect.any(String) }]);
  });

  it.each([
    [readLeases, { waiters: 'true' }, 'waiters'],
    [readLeases, { key: 'k', waiters: 'yes' }, 'waiters'],
  ])('the call read is refused with input that does not fit together: %#', async (handler, query, path) => {
    const { outcome, body } = await get(handler, query);
    expect(outcome).toBe('InvalidRequest');
    expect(body.issues).toMatchObject([{ path }]);
  });

  it('cancel, repair and the end of an execution refuse input that does not fit', async () => {
    for (const [handler, payload] of [
      [cancelWaiter, { key: 'k' }],
      [runNext, { key: 'k' }],
      [repairQueues, { key: '' }],
      [withdraw, { key: 'k', requestId: 'r' }],
      [executionEnded, { execution: 'x' }],
      [executionEnded, { execution, again: 'yes' }],
    ] as const)
      expect((await throughTask(handler, payload)).outcome).toBe('InvalidRequest');
  });
});
