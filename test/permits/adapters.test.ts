import { ScanCommand } from '@aws-sdk/client-dynamodb';
import { afterEach, describe, expect, it } from 'vitest';
import { get, httpEvent, post, throughHttp, throughTask } from '../support/stack/adapters.ts';
import { leaseWorld } from '../support/worlds/leases.ts';
import { queueWorld } from '../support/worlds/line.ts';

const { handlers, dependencies, dynamodb, clock, table } = await leaseWorld();
const { acquire, heartbeat, release, breakLease, readLeases } = handlers;

it('a permit through HTTP, and the whole way back', async () => {
  const asked = { key: 'render', holder: 'worker-1', limit: 2, requestId: 'r' };
  const granted = await post(acquire, asked);
  expect(granted).toMatchObject({
    outcome: 'ok',
    status: 201,
    body: { key: 'render', mode: 'shared', limit: 2, weight: 1, used: 1, repeated: false },
  });
  const { leaseId, fence } = granted.body as { leaseId: string; fence: number };
  expect(await post(acquire, asked)).toMatchObject({ status: 200, body: { leaseId, repeated: true } });
  expect(await post(acquire, { ...asked, holder: 'worker-2' })).toMatchObject({ status: 201, body: { used: 2 } });
  expect(await post(acquire, { ...asked, holder: 'worker-3' })).toMatchObject({
    status: 409,
    body: { code: 'LeaseHeld', used: 2, limit: 2, holders: [{ holder: 'worker-1', fence }, { holder: 'worker-2' }] },
  });
  clock.advance(1000);
  expect(await post(heartbeat, { key: 'render', leaseId })).toMatchObject({ status: 200, body: { leaseId, fence } });
  const second = await get(readLeases, { key: 'render' });
  expect(second.body).toMatchObject({ key: 'render', used: 2, limit: 2, holders: [{ fence }, { holder: 'worker-2' }] });
  expect(JSON.stringify(second.body)).not.toContain(leaseId.split('.')[2]);
  expect((await post(release, { key: 'render', leaseId })).body).toEqual({ key: 'render', released: true });
  const [, other] = second.body.holders as { fence: number }[];
  expect((await post(breakLease, { key: 'render', fence: other?.fence })).body).toMatchObject({
    ...{ key: 'render', broken: true, fence: other?.fence },
    ...{ holder: 'worker-2', ended: true },
  });
  expect((await get(readLeases, { key: 'render' })).body).toMatchObject({ used: 0, holders: [] });
});

it('a permit through a task, which is answered at once', async () => {
  const { body } = await throughTask(acquire, { key: 'task', holder: 'h', mode: 'exclusive' });
  expect(body).toMatchObject({ mode: 'exclusive', limit: null, weight: 1_000_000 });
  expect((await throughTask(acquire, { key: 'task', holder: 'i', mode: 'shared' })).outcome).toBe('LeaseHeld');
  expect((await throughTask(release, { key: 'task', leaseId: body.leaseId })).body).toMatchObject({ released: true });
});

it('tasks and a caller in line, through their functions', async () => {
  const tasks = await queueWorld();
  const { acquire: ask, release: give, cancelWaiter, repairQueues, readLeases: readIt } = tasks.handlers;
  const key = 'line';
  const first = await post(ask, { key, holder: 'x', limit: 3 });
  const [heavy, light] = [tasks.steps.newTask(), tasks.steps.newTask()];
  const parked = await throughTask(ask, { key, holder: 'heavy', limit: 3, weight: 3, taskToken: heavy.token });
  expect(parked.body).toMatchObject({ parked: true, ticket: expect.any(String) });
  tasks.clock.advance(1);
  await throughTask(ask, { key, holder: 'light', limit: 3, taskToken: light.token });
  tasks.clock.advance(1);
  const listed = await get(readIt, { key, waiters: 'true' });
  expect(listed.body).toMatchObject({ waiting: 2, waiters: [{ holder: 'heavy' }, { holder: 'light' }] });
  expect(await post(ask, { key, holder: 'late', limit: 3, waitSeconds: 1 })).toMatchObject({
    status: 409,
    body: { code: 'LeaseHeld', place: 3, waiting: 2, retryWith: { ticket: expect.any(String) } },
  });
  const cancelled = await post(cancelWaiter, { key, ticket: parked.body.ticket });
  expect(cancelled.body).toMatchObject({ cancelled: true });
  expect([heavy.state, light.state]).toEqual(['failed', 'succeeded']);
  expect((await post(give, { key, leaseId: first.body.leaseId })).body.released).toBe(true);
  expect((await throughTask(repairQueues, { key: 'line' })).outcome).toBe('ok');
  tasks.steps.stop();
});

it('a dead task that is first in line, and does not fit, leaves the line to a caller by a run of the schedule, through its function', async () => {
  const { handlers, steps, clock: time } = await queueWorld();
  const key = 'dead first';
  await post(handlers.acquire, { key, holder: 'reader', mode: 'shared', ttlSeconds: 600 });
  const writer = steps.newTask();
  await throughTask(handlers.acquire, { key, holder: 'writer', mode: 'exclusive', taskToken: writer.token });
  writer.state = 'timedOut';
  time.advance(60_000);
  expect((await throughTask(handlers.repairQueues, {})).outcome).toBe('ok');
  expect((await post(handlers.acquire, { key, holder: 'another reader', mode: 'shared' })).status).toBe(201);
  steps.stop();
});

it('a release ends an overdue task in line by what the pool is then, through its function', async () => {
  const { handlers, steps, clock: time } = await queueWorld();
  const [key, limit] = ['overdue', 2];
  const first = await post(handlers.acquire, { key, holder: 'first', limit });
  const second = await post(handlers.acquire, { key, holder: 'second', limit, ttlSeconds: 600 });
  const task = steps.newTask();
  await throughTask(handlers.acquire, { key, holder: 'late', limit, parkSeconds: 1, taskToken: task.token });
  time.advance(1001);
  expect((await post(handlers.release, { key, leaseId: first.body.leaseId })).body.released).toBe(true);
  const { fence } = second.body;
  expect(task).toMatchObject({ state: 'failed', error: 'LeaseHeld', cause: { key, holder: 'second', fence } });
  steps.stop();
});

it('the end of an execution, through its function', async () => {
  const world = await queueWorld();
  const { acquire: ask, executionEnded } = world.handlers;
  const execution = 'arn:aws:states:us-east-1:000000000000:execution:machine:ended';
  world.steps.executions.set(execution, 'FAILED');
  await post(ask, { key: 'ended', holder: 'h', limit: 1, execution });
  const end = async (again: boolean) => (await throughTask(executionEnded, { execution, again })).body;
  expect(await end(false)).toEqual({ execution, tickets: 0, freed: 1, graced: 0, kept: 0 });
  world.clock.advance(900_000);
  expect(await end(true)).toEqual({ execution, tickets: 0, freed: 0, graced: 0, kept: 0 });
  const { Items: rows = [] } = await world.dynamodb.send(
    new ScanCommand({ TableName: world.dependencies.waitersTable }),
  );
  expect(rows).toEqual([]); // the one that found the permit has gone
  world.steps.stop();
});

it('the longest key, holder and data go the whole way, and others wait for it in line', async () => {
  const longest = { key: 'k'.repeat(1024), data: 'd'.repeat(254), limit: 1 };
  const { status, body } = await post(acquire, { ...longest, holder: 'h'.repeat(256) });
  expect(status).toBe(201);
  const other = await post(acquire, { ...longest, holder: 'o'.repeat(256), waitSeconds: 1 });
  expect(other).toMatchObject({ status: 409, body: { code: 'LeaseHeld', place: 1 } });
  const { key, leaseId } = body;
  expect((await post(heartbeat, { key, leaseId })).status).toBe(200);
  expect((await post(release, { key, leaseId })).body).toEqual({ key, released: true });
});

describe('bad input is refused by name, and nothing is written', () => {
  afterEach(async () => {
    for (const name of [table, dependencies.waitersTable]) {
      const { Items: items = [] } = await dynamodb.send(new ScanCommand({ TableName: name }));
      expect(items.filter(({ key }) => key?.S === 'bad')).toEqual([]);
    }
  });

  const ABROAD = 'arn:aws:states:eu-west-1:123456789012:execution:a:b';
  const BAD: [payload: object, issues: Record<string, string>][] = [
    [{ limit: 0 }, { limit: 'must be at least 1' }],
    [{ limit: -1 }, { limit: 'must be at least 1' }],
    [{ limit: [2] }, { limit: 'must be a whole number' }],
    [{ limit: 2, weight: null }, { weight: 'must be a whole number' }],
    [{ mode: null }, { mode: 'must be one of shared, exclusive' }],
    [{ mode: 'constructor' }, { mode: 'must be one of shared, exclusive' }],
    [{ limit: 201 }, { limit: 'must be at most 200' }],
    [{ limit: 2.5 }, { limit: 'must be a whole number' }],
    [{ limit: '2' }, { limit: 'must be a whole number' }],
    [{ limit: null }, { limit: 'must be a whole number' }],
    [{ weight: 2 }, { weight: 'needs a limit or a mode' }],
    [{ limit: 5, weight: 6 }, { weight: 'must be at most the limit' }],
    [{ limit: 5, weight: 0 }, { weight: 'must be at least 1' }],
    [{ mode: 'shared', weight: 201 }, { weight: 'must be at most 200' }],
    [{ mode: 'alone' }, { mode: 'must be one of shared, exclusive' }],
    [
      { mode: 'exclusive', limit: 2, weight: 1 },
      { limit: 'cannot be combined with mode exclusive', weight: 'cannot be combined with mode exclusive' },
    ],
    [{ limit: 2, data: 'x'.repeat(255) }, { data: 'must be at most 256 bytes of JSON with limit or mode' }],
    [{ limit: 2, taskToken: 't', waitSeconds: 1 }, { waitSeconds: 'cannot be combined with taskToken' }],
    [{ limit: 2, parkSeconds: 60 }, { parkSeconds: 'needs a taskToken or a callbackId' }],
    [{ limit: 2, ticket: 't' }, { ticket: 'needs a requestId' }],
    [
      { mode: 'shared', execution: ABROAD },
      { execution: 'must be an execution in the account and region of this deployment' },
    ],
    [{ limit: 2, target: ABROAD }, { target: 'needs an execution' }],
    [{ limit: 2, graceSeconds: 60 }, { graceSeconds: 'needs an execution' }],
  ];

  const told = (body: Record<string, unknown>) =>
    Object.fromEntries(
      (body.issues as { path: string; message: string }[]).map(({ path, message }) => [path, message]),
    );

  it.each(BAD)('acquire %j', async (payload, issues) => {
    const asked = { key: 'bad', holder: 'h', ...payload };
    const http = await throughHttp(acquire, httpEvent('POST', { body: JSON.stringify(asked) }));
    const task = await throughTask(acquire, asked);
    for (const { outcome, body } of [http, task]) {
      expect(outcome).toBe('InvalidRequest');
      expect(told(body)).toEqual(issues);
    }
  });

  it('a body of two megabytes, and a key one byte too long', async () => {
    const large = { key: 'bad', holder: 'h', limit: 2, data: 'x'.repeat(2_000_000) };
    const { outcome, status } = await throughHttp(acquire, httpEvent('POST', { body: JSON.stringify(large) }));
    expect([outcome, status]).toEqual(['PayloadTooLarge', 413]);
    const { body } = await throughTask(acquire, { ...large, data: 1, key: 'k'.repeat(1025) });
    expect(told(body)).toEqual({ key: 'must be at most 1,024 bytes of UTF-8' });
  });

  it('data that is as deep as it is long', async () => {
    const data = JSON.parse('['.repeat(4900) + ']'.repeat(4900));
    const { outcome, body } = await throughTask(acquire, { key: 'bad', holder: 'h', limit: 2, data });
    expect([outcome, told(body)]).toEqual(['InvalidRequest', { data: 'must be at most 32 levels deep' }]);
  });

  it('a heartbeat takes no field of an acquire', async () => {
    const leaseId = 'p.0123456789abcdef.00000000-0000-4000-8000-000000000000';
    expect(told((await post(heartbeat, { key: 'bad', leaseId, limit: 2 })).body)).toEqual({
      limit: 'is not a known field',
    });
  });

  it('a read of a key takes no limit', async () => {
    expect(told((await get(readLeases, { key: 'bad', limit: '5' })).body)).toEqual({
      limit: 'cannot be combined with key',
    });
  });
});
