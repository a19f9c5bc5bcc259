import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { acquireOrParkLease } from '../../shared/leases/acquire.ts';
import { DEFAULT_QUOTAS } from '../../shared/line/limits/quotas.ts';
import { readWaiters } from '../../shared/line/waiters.ts';
import { acquireInput } from '../../shared/locks/inputs.ts';
import { repairLines } from '../../shared/locks/repair.ts';
import { call } from '../support/emulators/aws.ts';
import { aFew, isFull } from '../support/time/rounds.ts';
import { failure } from '../support/worlds/leases.ts';
import { queueWorld } from '../support/worlds/line.ts';

const MAX_PARKED = DEFAULT_QUOTAS.waitersPerKey;
const world = await queueWorld();
const { acquire, release, breakLease, read, park, repair, precededBy } = world;
const { joinLine, putTickets, callerRow, grantOf, rawItem, putRaw, rows, clock, requests, steps, dependencies } = world;
afterAll(() => steps.stop());
beforeEach(() => {
  requests.sent.length = 0;
  requests.faultsOf = {};
  steps.requests.length = 0;
  steps.faults = {};
});

/** A call of which this much time is left at each look. */
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
  if (record) await putRaw({ ...record, waiters: { N: String(count + 1) } });
}

describe('a queue of dead tickets', () => {
  it.each(aFew(1, ['release', 'break']))(
    'a %s ends after ten dead tickets: the lease is free, and only the line grants it',
    async (how) => {
      const key = `dead ${how}`;
      const { first, task } = await waitedFor(key, { ttlSeconds: 86_400 });
      await parkJunk(key, 35);
      requests.sent.length = 0;
      if (how === 'release') expect(await release(first)).toEqual({ key, released: true });
      else expect(await breakLease({ key, fence: first.fence })).toMatchObject({ broken: true });
      expect(requests.sent.length).toBeLessThan(50);
      expect(await rows(key)).toHaveLength(26);
      expect(await rawItem(key)).not.toHaveProperty('lease_version');
      expect(await rawItem(key)).toHaveProperty('waiters');
      expect(await rawItem(key)).not.toHaveProperty('request_id');

      expect(await failure(acquire({ key, holder: 'barger' }))).toMatchObject({ code: 'LeaseHeld' });
      expect(await rows(key)).toHaveLength(16);
      expect(task.state).toBe('waiting');
      await repair();
      expect(grantOf(task).fence).toBeGreaterThan(first.fence);
      expect(await rows(key)).toEqual([]);
    },
  );

  it.runIf(isFull)(
    'a line of dead tickets does not keep the schedule from other keys, and is gone after a few runs',
    async () => {
      for (const key of ['flooded', 'beside the flood']) await acquire({ key, ttlSeconds: 2 });
      const last = await park({ key: 'flooded' });
      const beside = await park({ key: 'beside the flood' });
      await parkJunk('flooded', 105);
      clock.advance(3000);
      await repair();
      expect(beside.task.state).toBe('succeeded');
      expect(last.task.state).toBe('waiting');
      expect(await rows('flooded')).toHaveLength(6);
      await repair();
      expect(last.task.state).toBe('succeeded');
    },
  );

  it.each([
    [5000, 'succeeded'],
    [4999, 'waiting'],
  ])(
    'a run of the schedule with %i ms left after the first ten dead tickets leaves the task behind them %s',
    async (leftMs, state) => {
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
    },
  );

  it.each([
    [99, 1],
    [100, 0],
  ])(
    'a line of %i dead callers in front of a task makes a message that looks at the line send %i more',
    async (callers, sent) => {
      const key = `behind ${callers}`;
      const { fence } = await acquire({ key, ttlSeconds: 60 });
      await park({ key });
      await parkJunk(key, callers, { keep_until: { N: String(clock.now() + 86_400_000) } });
      world.messages.length = 0;
      await world.repairKey(key, fence);
      expect(world.messages).toHaveLength(sent);
    },
  );

  it.runIf(isFull)(
    'a line of overdue tasks costs a hand-off ten messages, and the schedule ends the rest',
    async () => {
      const first = await acquire({ key: 'overdue', ttlSeconds: 600 });
      const { task } = await park({ key: 'overdue' });
      await parkJunk('overdue', 115, { deadline: { N: '1' } });
      await release(first);
      expect(task.state).toBe('succeeded'); // those before it wait no more
      expect(steps.requests.filter(({ action }) => action === 'SendTaskFailure')).toHaveLength(10);
      await repair();
      expect(await rows('overdue')).toEqual([]);
    },
  );
});

describe('a line that is longer than one page', () => {
  /** Behind all others. */
  const crowd = (key: string) =>
    Array.from({ length: 14 }, (_, index) =>
      callerRow(key, `crowd ${index}`, { ticket: { S: `999999999999999-${String(index).padStart(2, '0')}` } }),
    );

  it('a line of more than a page costs a hand-off one page, and the record counts the rows that the hand-off has deleted', async () => {
    const key = 'longer than a page';
    const first = await acquire({ key });
    await joinLine(key, 'own');
    const [own = {}] = await rows(key);
    await release(first);
    const grant = await acquire({ key, holder: 'caller', requestId: 'own' });
    await joinLine(key, 'next');
    const [now, later] = [{ N: String(clock.now()) }, { N: String(clock.now() + 5000) }];
    const ofRequest = { holder: own.holder, request_id: own.request_id } as never;
    const { keep_until: _, ...task } = callerRow(key, 'overdue', { deadline: now });
    await putTickets([
      own, // its deletion was lost. It has left the line with its grant
      callerRow(key, 'again', ofRequest),
      callerRow(key, 'and again', ofRequest),
      callerRow(key, 'over', { deadline: now, keep_until: now }),
      callerRow(key, 'absent', { deadline: now, keep_until: later }),
      { ...task, task_token: { S: 'token-none' } },
      ...crowd(key),
    ]);
    requests.sent.length = 0;
    await release(grant);
    expect(requests.sent.filter((sent) => sent === 'Query')).toHaveLength(1);
    expect(await rawItem(key)).toMatchObject({ request_id: { S: 'next' }, line_out: { N: '5' } });
    expect((await rows(key)).map(({ holder }) => holder?.S)).toEqual(
      expect.arrayContaining(['absent', 'caller', 'crowd 0', 'crowd 13']),
    );
    expect(await rows(key)).toHaveLength(16);
  });

  it('a line of more than a page counts the task that took LeaseHeld in place of its grant', async () => {
    const key = 'longer than a page, and untold';
    const { first, task } = await waitedFor(key, { ttlSeconds: 30, parkSeconds: 50 });
    steps.faults.SendTaskSuccess = ['refused'];
    await release(first);
    clock.advance(60_000);
    await joinLine(key, 'next');
    await putTickets(crowd(key));
    await world.handOn(key, 'expired');
    expect(task).toMatchObject({ state: 'failed', error: 'LeaseHeld' });
    expect(await rawItem(key)).toMatchObject({ request_id: { S: 'next' }, line_out: { N: '2' } });
  });
});

describe('a line that cannot be read', () => {
  const denied = { name: 'AccessDeniedException', status: 400 };

  it.each([
    ['release', 'released'],
    ['break', 'broken'],
  ])(
    'a %s ends the lease although the line cannot be read, and keeps the mark: only the line grants it',
    async (how, done) => {
      const key = `unread ${how}`;
      const { first, task } = await waitedFor(key);
      requests.faultsOf.Query = [denied];
      const ended = how === 'release' ? release(first) : breakLease({ key, fence: first.fence });
      expect(await ended).toMatchObject({ key, [done]: true });
      expect(await read({ key })).toMatchObject({ state: 'released' });
      expect(await rawItem(key)).toHaveProperty('waiters');
      expect((await failure(acquire({ key, holder: 'overtaker' }))).code).toBe('LeaseHeld');
      expect(task.state).toBe('succeeded'); // that call found it free, and handed it on
    },
  );

  it('a call that would take over an expired lease fails if the line cannot be read, and changes no record', async () => {
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
    ['once', [denied], 'granted'],
    ['twice', [denied, denied], 'free'],
  ])(
    'a line that cannot be read %s does not keep the lease from its end by a holder that was in line itself',
    async (often, faults, state) => {
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
      const { request_id: request, lease_version: version } = (await rawItem(key)) ?? {};
      expect([request?.S, version === undefined]).toEqual(state === 'granted' ? ['next', false] : ['own', true]);
    },
  );
});

describe('a message that Step Functions throttles', () => {
  it('a message that Step Functions throttles is sent again, so a ticket without a task is passed over', async () => {
    const key = 'throttled junk';
    const first = await acquire({ key });
    await park({ key, ttlSeconds: 86_400 }, { token: 'token-of-no-task', state: 'waiting' });
    const { task } = await park({ key });
    steps.faults.SendTaskSuccess = ['throttled'];
    await release(first);
    expect(task.state).toBe('succeeded');
  });

  it('a message that Step Functions throttles arrives with the whole ttl, and not after the third pause', async () => {
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
    expect(await world.repairKey(key)).toMatchObject({ told: 0, unanswered: 1 });
    expect(next.state).toBe('waiting');
    await world.repairKey(key);
    // Until the message. The rest of the ttl counts from that moment too.
    expect(next.output).toMatchObject({ waitedMs: clock.now() - startedAt, remainingMs: 30_000 });
  });

  it('a throttled message that would have ended the task leaves the task in line', async () => {
    const key = 'throttled failure';
    await acquire({ key });
    const { task, ticket } = await park({ key });
    steps.faults.SendTaskFailure = ['throttled'];
    expect(await failure(world.cancel(key, ticket))).toMatchObject({ code: 'Unavailable' });
    expect([task.state, (await rows(key)).length]).toEqual(['waiting', 1]);
    expect(await world.cancel(key, ticket)).toMatchObject({ cancelled: true });
  });

  it('a message that Step Functions throttles is not waited for if the invocation is nearly over', async () => {
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
});

it('a message that Step Functions refuses for another reason is sent once', async () => {
  const key = 'denied';
  const { first, task } = await waitedFor(key);
  const startedAt = clock.now();
  steps.faults.SendTaskSuccess = ['denied'];
  await release(first);
  expect([task.state, clock.now() - startedAt, steps.requests.length]).toEqual(['waiting', 0, 1]);
});

describe('when the time of the invocation is nearly up', () => {
  it('a lease is granted to no waiter if the invocation is nearly over: the lease is free, with its mark', async () => {
    const { first, task } = await waitedFor('late');
    expect(await release(first, withTime(1999))).toEqual({ key: 'late', released: true });
    expect(task.state).toBe('waiting');
    expect(steps.requests).toEqual([]);
    expect(await rawItem('late')).not.toHaveProperty('lease_version');
    expect(await rawItem('late')).toHaveProperty('waiters');
    await repair();
    expect(task.state).toBe('succeeded');
  });

  it('a hand-off grants the lease if just enough of the invocation is left for the message to the task', async () => {
    const { first, task } = await waitedFor('just enough');
    expect(await release(first, withTime(5000, 500))).toMatchObject({ released: true });
    expect(task.state).toBe('succeeded');
  });

  it('a task that parks for a free lease, and can no longer be notified, is parked', async () => {
    const task = steps.newTask();
    const asked = acquireInput().parse({ key: 'parked late', holder: 'h', taskToken: task.token });
    const answer = await acquireOrParkLease(dependencies)(asked, withTime(5000, 499));
    expect(answer).toMatchObject({ parked: true });
    expect(steps.requests).toEqual([]);
    await repair();
    expect(task.state).toBe('succeeded');
  });

  it('a grant ends again if the invocation is nearly over after the transfer, and its task keeps its position', async () => {
    const { first, task } = await waitedFor('too late', { holder: 'h', requestId: 'r' });
    const next = await park({ key: 'too late' });
    expect(await release(first, withTime(5000, 499))).toEqual({ key: 'too late', released: true });
    expect(steps.requests).toEqual([]);
    expect(await rawItem('too late')).not.toHaveProperty('lease_version');
    await repair();
    expect([task.state, next.task.state]).toEqual(['succeeded', 'waiting']);
    await release(grantOf(task));
    expect(next.task.state).toBe('succeeded');
  });

  it.each(['release', 'break', 'withdrawal'])(
    'a %s has taken effect if another caller has the lease before the grant of the transfer ends',
    async (how) => {
      const key = `too late for a ${how}`;
      const own = { key, holder: 'own', requestId: 'own' };
      const first = await acquire(own);
      const { task } = await park({ key, holder: 'h' });
      requests.faultsOf.UpdateItem = [
        'none', // its own end, which the mark refuses
        'none', // the transfer
        precededBy(async () => {
          await breakLease({ key, fence: Number((await rawItem(key))?.fence?.N) });
          await acquire({ key, holder: 'other' });
        }),
      ];
      const late = withTime(5000, 499);
      if (how === 'release') expect(await release(first, late)).toEqual({ key, released: true });
      else if (how === 'break') expect(await breakLease(first, late)).toMatchObject({ broken: true });
      else expect(await world.withdraw(own, late)).toMatchObject({ cancelled: true });
      expect(task).toMatchObject({ state: 'failed', error: 'LeaseLost', cause: { reason: 'broken' } });
      expect(await read({ key })).toMatchObject({ holder: 'other' });
    },
  );

  it('a break ends without handing on, and says that it was one', async () => {
    const { fence } = await acquire({ key: 'late break' });
    const { task } = await park({ key: 'late break' });
    expect(await breakLease({ key: 'late break', fence }, withTime(1000))).toMatchObject({ broken: true });
    expect(await rawItem('late break')).toHaveProperty('broken_at');
    expect(await breakLease({ key: 'late break', fence })).toMatchObject({ broken: true });
    expect(task.state).toBe('waiting');
    await repair();
    expect(task.state).toBe('succeeded');
  });

  it('an expired lease stays as it is', async () => {
    await acquire({ key: 'late expiry', ttlSeconds: 2 });
    const { task } = await park({ key: 'late expiry' });
    clock.advance(3000);
    const before = await rawItem('late expiry');
    expect((await failure(acquire({ key: 'late expiry', holder: 'other' }, withTime(1000)))).code).toBe('LeaseHeld');
    expect(await rawItem('late expiry')).toEqual(before);
    expect(task.state).toBe('waiting');
  });
});

describe('a hand-off that fails after it met a dead ticket', () => {
  const denied = { name: 'AccessDeniedException', status: 400 };

  /** The line of a lease that is about to be released: the first task is gone, and what comes after it cannot be read. */
  async function brokenOff(key: string) {
    const first = await acquire({ key, holder: 'first' });
    const dead = await park({ key, ttlSeconds: 86_400, requestId: 'r' });
    const next = await park({ key });
    dead.task.state = 'timedOut';
    requests.faultsOf.Query = ['none', denied];
    return { first, next };
  }

  it('a hand-off that fails after it met a dead ticket leaves the key without a holder, and only the line grants the key', async () => {
    const { first, next } = await brokenOff('broken off');
    expect(await release(first)).toMatchObject({ released: true });
    expect(await rawItem('broken off')).not.toHaveProperty('lease_version');
    expect(await rawItem('broken off')).not.toHaveProperty('request_id');
    expect(await rawItem('broken off')).toHaveProperty('waiters');
    await repair();
    expect(grantOf(next.task)).toMatchObject({ previous: { holder: 'first', fence: first.fence, ended: 'released' } });
  });

  it('a hand-off that fails after it met a dead ticket has released the lease of its caller, although the last write fails too', async () => {
    const { first } = await brokenOff('broken off twice');
    requests.faultsOf.UpdateItem = ['none', 'none', denied];
    expect(await release(first)).toMatchObject({ released: true });
  });
});

describe('a queue that is full', () => {
  it('a full line refuses the next task, ends it, and leaves no ticket', async () => {
    const first = await acquire({ key: 'full', ttlSeconds: 600 });
    await park({ key: 'full' });
    await parkJunk('full', MAX_PARKED - 2);
    const last = await park({ key: 'full' });
    expect(last.task.state).toBe('waiting');
    requests.sent.length = 0;
    const refused = steps.newTask();
    const { code, context } = await failure(park({ key: 'full' }, refused));
    expect({ code, context }).toEqual({
      code: 'QueueFull',
      context: { key: 'full', quota: 'maxWaitersPerKey', limit: MAX_PARKED, retryAfterMs: 5000 },
    });
    expect(refused).toMatchObject({ state: 'failed', error: 'QueueFull', cause: { status: 429 } });
    expect(requests.sent).toEqual(['PutItem', 'UpdateItem', 'Query', 'DeleteItem']); // it was told, so nobody asks whether it was granted
    expect((await failure(park({ key: 'full' }, { token: 'token-none', state: 'waiting' }))).code).toBe('QueueFull');
    expect(await rows('full')).toHaveLength(MAX_PARKED);
    expect(await release(first)).toMatchObject({ released: true });
  });

  it('a full line lets a task in that cannot be notified, or that has just been granted the lease', async () => {
    await acquire({ key: 'brim', ttlSeconds: 600 });
    await park({ key: 'brim' });
    await parkJunk('brim', MAX_PARKED - 1);
    steps.faults.SendTaskFailure = ['refused'];
    expect(await park({ key: 'brim' })).toMatchObject({ parked: true });
    expect(await rows('brim')).toHaveLength(MAX_PARKED + 1);

    const granted = steps.newTask();
    granted.state = 'succeeded';
    steps.onTheWay = async (action) => {
      if (action !== 'SendTaskFailure') return;
      const mine = (await rows('brim')).find(({ task_token: token }) => token?.S === granted.token);
      await putRaw({ ...(await rawItem('brim')), ticket: mine?.ticket ?? { S: '' } } as never);
    };
    expect(await park({ key: 'brim' }, granted)).toMatchObject({ parked: false });
    steps.onTheWay = async () => {};
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

/** What the client asks of the table of tickets in the meantime. */
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

it('a line is read in growing pages, each from the end of the page before, and its rows consistently', async () => {
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

it('a row without a holder, written by another client, keeps no waiter in its line from the lease', async () => {
  const { first, task } = await waitedFor('odd row', { holder: 'b' });
  const { holder: _, ...odd } = callerRow('odd row', 'odd');
  await putTickets([odd]);
  expect(await read({ key: 'odd row', waiters: true })).toMatchObject({ waiters: [{ holder: '' }, { holder: 'b' }] });
  await release(first);
  clock.advance(10_000);
  await repairLines(dependencies)({ key: 'odd row' }, call());
  expect(grantOf(task)).toMatchObject({ holder: 'b' });
});
