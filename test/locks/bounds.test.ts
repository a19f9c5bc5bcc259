import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { repairLines } from '../../shared/locks/calls/repair.ts';
import { readWaiters } from '../../shared/locks/line/waiters.ts';
import { call } from '../support/emulators/aws.ts';
import { failure } from '../support/worlds/leases.ts';
import { lineWorld } from '../support/worlds/line.ts';

const world = await lineWorld();
const { acquire, release, read, park, repair, precededBy } = world;
const { joinLine, putTickets, callerRow, grantOf, rawItem, putRaw, rows, clock, requests, steps, dependencies } = world;
afterAll(() => steps.stop());
beforeEach(() => {
  requests.sent.length = 0;
  requests.faultsOf = {};
  steps.requests.length = 0;
  steps.faults = {};
});

/** A call with these remaining times, one for each time that it asks. The last one stays. */
const withTime = (...left: number[]) => call({ timeLeftMs: () => (left.length > 1 ? left.shift() : left[0]) ?? 0 });

/** A lease that is held, and a task in line. */
async function waitedFor(key: string, more: object = {}) {
  const first = await acquire({ key });
  return { first, task: (await park({ key, ...more })).task };
}

/** Tickets whose tokens no task ever had, as they stand in the table, and the mark as it would be after they were parked. */
async function parkJunk(key: string, count: number, overrides: object = {}) {
  const template = (await rows(key))[0] ?? {};
  const items = Array.from({ length: count }, (_, index) => {
    const ticket = `000000000000001-${String(index).padStart(6, '0')}`;
    const own = { ticket: { S: ticket }, task_token: { S: `token-junk-${index}` }, request_id: { S: `junk ${index}` } };
    return { ...template, ...own, ...overrides };
  });
  await putTickets(items);
  const record = await rawItem(key);
  if (record) await putRaw({ ...record, mark: { S: 'junk' }, arrivals: { N: String(count + 1) } });
}

it.each([
  [5000, 'succeeded'],
  [4999, 'waiting'],
])('a run with %i ms left after ten dead tickets leaves the task %s', async (leftMs, state) => {
  const key = `dead with ${leftMs}`;
  await acquire({ key, ttlSeconds: 2 });
  const { task } = await park({ key });
  await parkJunk(key, 10);
  clock.advance(3000);
  let left = 60_000;
  requests.faultsOf.DeleteItem = [
    ...Array(9).fill('none'),
    precededBy(async () => {
      left = leftMs;
    }),
  ];
  await repairLines(dependencies)({ key }, call({ timeLeftMs: () => left }));
  expect(task.state).toBe(state);
});

it.each([
  [99, 1],
  [100, 0],
])('a message that passes %i dead callers sends %i more', async (callers, sent) => {
  const key = `behind ${callers}`;
  await acquire({ key, ttlSeconds: 60 });
  await park({ key });
  await parkJunk(key, callers, { keep_until: { N: String(clock.now() + 86_400_000) } });
  world.messages.length = 0;
  await world.repairKey(key);
  expect(world.messages).toHaveLength(sent);
});

describe('unreadable lines', () => {
  const denied = { name: 'AccessDeniedException', status: 400 };

  it('a call does not take over a lease whose line cannot be read', async () => {
    const key = 'unread and expired';
    await acquire({ key, ttlSeconds: 2 });
    await park({ key });
    clock.advance(10_000);
    const before = await rawItem(key);
    requests.faultsOf.Query = [denied];
    expect((await failure(acquire({ key, holder: 'next' }))).code).toBe('Unavailable');
    expect(await rawItem(key)).toEqual(before);
  });

  it.each([
    ['once', [denied], 'held'],
    ['twice', [denied, denied], 'released'],
  ])('a line that is unreadable %s does not keep a lease from its end', async (often, faults, state) => {
    const key = `unread ${often}`;
    const first = await acquire({ key });
    for (const requestId of ['own', 'next']) {
      clock.advance(1);
      await joinLine(key, requestId);
    }
    await release(first);
    const own = await acquire({ key, holder: 'caller', requestId: 'own' });
    expect(own.leaseId).toContain('+');
    requests.faultsOf.Query = faults;
    expect(await release(own)).toEqual({ key, released: true });
    expect(requests.faultsOf.Query).toEqual([]);
    expect(await read({ key })).toMatchObject({ state });
  });
});

it('a throttled message arrives with the whole ttl within three pauses', async () => {
  const key = 'throttled';
  const { first, task } = await waitedFor(key, { ttlSeconds: 30 });
  const { task: next } = await park({ key, ttlSeconds: 30 });
  const startedAt = clock.now();
  steps.faults.SendTaskSuccess = ['throttled', 'throttled', 'throttled'];
  await release(first);
  expect([task.state, clock.now() - startedAt]).toEqual(['succeeded', 700]);
  expect(task.output?.remainingMs).toBeGreaterThanOrEqual(29_500);
  steps.faults.SendTaskSuccess = ['throttled', 'throttled', 'throttled', 'throttled'];
  await release(grantOf(task));
  expect([next.state, clock.now() - startedAt]).toEqual(['waiting', 1400]);
  clock.advance(10_001);
  steps.faults.SendTaskSuccess = ['throttled', 'throttled', 'throttled', 'throttled'];
  expect(await world.repairKey(key)).toMatchObject({ notified: 0, unanswered: 1 });
  expect(next.state).toBe('waiting');
  await world.repairKey(key);
  // The wait ended with the message, and the ttl began with it.
  expect(next.output).toMatchObject({ waitedMs: clock.now() - startedAt, remainingMs: 30_000 });
});

it('a throttled message is not waited for at the end of the invocation', async () => {
  const key = 'throttled late';
  const { first, task } = await waitedFor(key);
  const startedAt = clock.now();
  steps.faults.SendTaskSuccess = ['throttled', 'throttled'];
  await release(first, withTime(2000, 500, 600));
  expect([task.state, clock.now() - startedAt, steps.faults.SendTaskSuccess]).toEqual(['waiting', 0, ['throttled']]);
  steps.faults.SendTaskSuccess = [];
  clock.advance(10_001);
  await repair();
  expect(task.state).toBe('succeeded');
});

describe('dead tickets', () => {
  const denied = { name: 'AccessDeniedException', status: 400 };

  /** A lease that is about to be released, with two tasks in line. The first is gone, and the line cannot be read again behind it. */
  async function brokenOff(key: string) {
    const first = await acquire({ key, holder: 'first' });
    const dead = await park({ key, ttlSeconds: 86_400, requestId: 'r' });
    const next = await park({ key });
    dead.task.state = 'timedOut';
    requests.faultsOf.Query = ['none', denied];
    return { first, next };
  }

  it('a hand-off that fails after a dead ticket leaves the key to its line', async () => {
    const { first, next } = await brokenOff('broken off');
    expect(await release(first)).toMatchObject({ released: true });
    expect(await rawItem('broken off')).not.toHaveProperty('lease_version');
    expect(await rawItem('broken off')).toHaveProperty('mark');
    await repair();
    expect(grantOf(next.task)).toMatchObject({ previous: { holder: 'first', fence: first.fence, ended: 'released' } });
  });
});

it('a read of a key does not read its whole line', async () => {
  await acquire({ key: 'looked at', ttlSeconds: 600 });
  const { ticket } = await park({ key: 'looked at' });
  await parkJunk('looked at', 240);
  requests.sent.length = 0;
  expect(await read({ key: 'looked at' })).toMatchObject({ waiting: 100 });
  const listed = await read({ key: 'looked at', waiters: true, limit: 150 });
  expect(listed).toMatchObject({ waiting: 150, waiters: expect.objectContaining({ length: 150 }) });
  expect(requests.sent).toEqual(['GetItem', 'Query', 'GetItem', 'Query']);
  const all = await read({ key: 'looked at', waiters: true, limit: 1000 });
  expect(all).toMatchObject({ waiting: 241 });
  expect('waiters' in all && all.waiters?.at(-1)?.ticket).toBe(ticket);
});

/** The inputs of the requests of one command that are sent while `act` runs. */
async function askedOf(command: string, act: () => Promise<unknown>) {
  const inputs: Record<string, unknown>[] = [];
  world.dynamodb.middlewareStack.add(
    (next, { commandName }) =>
      (args) => {
        const { TableName: table } = args.input as { TableName?: string };
        if (commandName === command && table === dependencies.waitersTable) inputs.push({ ...args.input });
        return next(args);
      },
    { step: 'initialize', name: 'asked' },
  );
  await act().finally(() => world.dynamodb.middlewareStack.remove('asked'));
  return inputs;
}

it('a line is read consistently, in growing pages', async () => {
  const names = Array.from({ length: 8 }, (_, index) => `caller ${index}`);
  await putTickets(names.map((name) => callerRow('paged', name)));
  for (const [firstPage, limits] of [
    [1, [1, 2, 4, 8]],
    [undefined, [undefined]],
  ] as const) {
    const found: string[] = [];
    const queries = await askedOf('QueryCommand', async () => {
      const line = readWaiters(dependencies, { key: 'paged', ...(firstPage && { firstPage }) }, call());
      for await (const { holder } of line) found.push(holder);
    });
    expect([found, queries.map(({ Limit: limit }) => limit)]).toEqual([names, limits]);
    expect(queries.every(({ ConsistentRead: isConsistent }) => isConsistent)).toBe(true);
  }
  const { ticket } = callerRow('paged', 'caller 0');
  const gets = await askedOf('GetItemCommand', () => world.cancel('paged', ticket.S));
  expect(gets).toMatchObject([{ ConsistentRead: true }]);
});
