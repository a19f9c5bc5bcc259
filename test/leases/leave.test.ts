import { afterAll, describe, expect, it } from 'vitest';
import { leaseLock } from '../../shared/leases/lock.ts';
import { readRecord } from '../../shared/leases/read-record.ts';
import { leave, refuse } from '../../shared/line/leave.ts';
import { call } from '../support/emulators/aws.ts';
import { throughTask } from '../support/stack/adapters.ts';
import { failure } from '../support/worlds/leases.ts';
import { queueWorld } from '../support/worlds/line.ts';

const world = await queueWorld();
const { acquire, release, park, joinLine, putTickets, callerRow, rawItem, rows, clock, requests, steps } = world;
const { dependencies, withdraw, handlers } = world;
afterAll(() => steps.stop());

/** With so little time left, a release leaves the line to others: the lease is free, and keeps its mark. */
const late = call({ timeLeftMs: () => 1999 });

const asking = (key: string) => {
  const request = { key, holder: 'caller', requestId: 'own', ttlSeconds: 10 };
  return { dependencies, lock: leaseLock(dependencies, request, call()), call: call() };
};

describe('a call that leaves the line of a free lease', () => {
  it('a call that leaves the line of a free lease hands it off once: behind rows that one hand-off does not pass, it is answered with LeaseHeld', async () => {
    const key = 'once';
    const first = await acquire({ key });
    const { ticket } = await joinLine(key, 'own');
    await release(first, late);
    const over = { deadline: { N: '1' }, keep_until: { N: String(clock.now()) } };
    await putTickets(Array.from({ length: 850 }, (_, index) => callerRow(key, `over ${index}`, over)));
    const { code, context } = await failure(leave(asking(key), ticket));
    expect([code, context.retryWith]).toEqual(['LeaseHeld', { requestId: 'own', ticket }]);
    expect(await rows(key)).toHaveLength(841);
  });

  it('a call that leaves the line of a free lease ends the task that was not notified of the grant before', async () => {
    const key = 'unheard';
    const first = await acquire({ key });
    const { task } = await park({ key });
    clock.advance(1);
    const { ticket } = await joinLine(key, 'own');
    steps.faults.SendTaskSuccess = ['refused'];
    await release(first);
    await release({ key, leaseId: (await rawItem(key))?.lease_id?.S ?? '' }, late);
    expect(task.state).toBe('waiting');
    const refusing = { record: await readRecord(dependencies, key, call()), ticket };
    const { code } = await failure(refuse(asking(key), { ...refusing, reason: 'cancelled' }));
    expect([code, task.state, task.error]).toEqual(['LeaseLost', 'failed', 'LeaseLost']);
    expect(await rows(key)).toEqual([]);
  });

  it('a call that leaves a free lease reads no line if there is no mark', async () => {
    const key = 'unmarked';
    await release(await acquire({ key }));
    const record = await readRecord(dependencies, key, call());
    requests.sent.length = 0;
    const refusing = { record, ticket: 'gone', reason: 'released' as const };
    expect(await failure(refuse(asking(key), refusing))).toMatchObject({ code: 'LeaseLost' });
    expect(requests.sent).toEqual(['DeleteItem']);
  });
});

it('a withdrawal that names the ticket of its call costs a write and a read, however long the line is', async () => {
  const key = 'long';
  await acquire({ key, holder: 'first', ttlSeconds: 600 });
  await putTickets(Array.from({ length: 150 }, (_, at) => callerRow(key, `before-${at}`)));
  clock.advance(1);
  const { ticket } = await joinLine(key, 'r');
  requests.sent.length = 0;
  expect(await withdraw({ key, holder: 'caller', requestId: 'r', ticket })).toMatchObject({ cancelled: true });
  expect(requests.sent).toEqual(['UpdateItem', 'GetItem']);
  const flagged = (await rows(key)).filter(({ cancelled_at: at }) => at !== undefined);
  expect(flagged.map((row) => row.ticket?.S)).toEqual([ticket]);
});

it('the withdrawal of a task that was not notified of its grant ends the task, through the function', async () => {
  const key = 'not notified';
  const first = await acquire({ key });
  const { task } = await park({ key, requestId: 'task' });
  steps.faults.SendTaskSuccess = ['refused', 'refused', 'refused'];
  await release(first);
  steps.faults = {};
  expect([task.state, await rows(key)]).toMatchObject(['waiting', [{}]]);
  const asked = { key, requestId: 'task', holder: 'tester' };
  expect((await throughTask(handlers.withdraw, asked)).body).toMatchObject({ cancelled: true });
  expect([task.state, task.error, await rows(key)]).toEqual(['failed', 'LeaseLost', []]);
});
